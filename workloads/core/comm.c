/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/comm.h"

struct comm comm_self(void)
{
    return (struct comm){.name = "self", .n_ranks = 1};
}

/* True if an operation on so many bytes has anything to do. */
static bool begins(struct comm *comm, int64_t bytes)
{
    ASSERT(bytes >= 0);
    if (comm->n_ranks == 1 || comm->err.code != ERR_NONE) {
        return false;
    }
    comm->n_calls++;
    comm->n_bytes += bytes;
    return true;
}

/* The error is in comm->err, where callers look for it. */
static void ends(const struct comm *comm, int status)
{
    ASSERT((status < 0) == (comm->err.code != ERR_NONE));
}

void comm_all_reduce(struct comm *comm, void *data, int64_t count, enum dtype dtype)
{
    ASSERT(dtype == DT_F32 || dtype == DT_F64);
    if (begins(comm, count * dtype_bytes(dtype))) {
        ends(comm, comm->all_reduce(comm->self, data, count, dtype, &comm->err));
    }
}

void comm_all_gather(struct comm *comm, void *data, int64_t bytes)
{
    if (begins(comm, bytes * comm->n_ranks)) {
        ends(comm, comm->all_gather(comm->self, data, bytes, &comm->err));
    }
}

void comm_broadcast(struct comm *comm, void *data, int64_t bytes, int root)
{
    ASSERT(root >= 0 && root < comm->n_ranks);
    if (begins(comm, bytes)) {
        ends(comm, comm->broadcast(comm->self, data, bytes, root, &comm->err));
    }
}

void comm_barrier(struct comm *comm)
{
    double nothing = 0.0; /* its sum needs every rank */
    comm_all_reduce(comm, &nothing, 1, DT_F64);
}

bool comm_has_failed(struct comm *comm)
{
    return comm_fails_waiting(comm, 0);
}

/* ---- on a device ---- */

bool comm_fails_waiting(struct comm *comm, int64_t waited_ns)
{
    if (comm->n_ranks > 1 && comm->err.code == ERR_NONE) {
        ends(comm, comm->check(comm->self, &comm->err));
    }
    if (comm->device.self && comm->err.code == ERR_NONE) {
        ends(comm, comm->device.check(comm->device.self, waited_ns, &comm->err));
    }
    return comm->err.code != ERR_NONE;
}

void comm_device_sum(struct comm *comm, const struct comm_run *runs, int n_runs, void *stream)
{
    const struct comm_device *device = &comm->device;
    int64_t bytes = 0;
    for (int i = 0; i < n_runs; i++) {
        enum dtype dtype = runs[i].dtype;
        ASSERT(dtype == DT_F16 || dtype == DT_F32 || dtype == DT_F64);
        bytes += runs[i].count * dtype_bytes(dtype);
    }
    if (begins(comm, bytes)) {
        ends(comm, device->sum(device->self, runs, n_runs, stream, &comm->err));
    }
}

void comm_device_gather(struct comm *comm, void *data, int64_t bytes, void *stream)
{
    const struct comm_device *device = &comm->device;
    if (begins(comm, bytes * comm->n_ranks)) {
        ends(comm, device->gather(device->self, data, bytes, stream, &comm->err));
    }
}

void comm_device_broadcast(struct comm *comm, void *data, int64_t bytes, int root, void *stream)
{
    const struct comm_device *device = &comm->device;
    ASSERT(root >= 0 && root < comm->n_ranks);
    if (begins(comm, bytes)) {
        ends(comm, device->broadcast(device->self, data, bytes, root, stream, &comm->err));
    }
}

void comm_device_count(struct comm *comm)
{
    if (comm->device.self) {
        comm->device.count(comm->device.self);
    }
}

void comm_device_abort(struct comm *comm)
{
    if (comm->device.self) {
        comm->device.abort(comm->device.self);
    }
}
