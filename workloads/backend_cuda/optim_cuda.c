/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/optim_cuda.h"

#include "base/arena.h"

#define ALIGN 64

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t n_chunks_of(const struct opt_segment *segment)
{
    return (segment->count + OPTIM_CHUNK - 1) / OPTIM_CHUNK;
}

struct optim_scratch optim_scratch(const struct opt_args *args)
{
    char *at = args->workspace;
    return (struct optim_scratch){
        .step = (void *)at, .parts = (void *)(at + aligned((int64_t)sizeof(struct optim_step)))};
}

static int64_t scratch_bytes(const struct optim_table *table)
{
    return aligned((int64_t)sizeof(struct optim_step)) +
           aligned(table->n_chunks * (int64_t)sizeof(struct optim_part));
}

static int check_segments(const struct opt_args *args, struct err *err)
{
    for (int i = 0; i < args->n_segments; i++) {
        const struct opt_segment *segment = &args->segments[i];
        bool has_type =
            segment->param_type == DT_F32 || (segment->param_type == DT_F16 && segment->has_master);
        if (!has_type || segment->wide_type != DT_F32) {
            return err_set(
                err, ERR_WORKLOAD,
                "parameter %d is %s with %s as master, expected f32, or f16 with a master of f32",
                i, dtype_name((enum dtype)segment->param_type),
                dtype_name((enum dtype)segment->wide_type));
        }
        /* The kernels move 4 elements at a time. */
        if (segment->param % 16 != 0 || segment->grad % 16 != 0 || segment->wide % 16 != 0) {
            return err_set(err, ERR_INTERNAL, "parameter %d is not aligned to 16 bytes", i);
        }
    }
    return 0;
}

/* The table as it is on the device, filled on the host. */
static void fill(const struct opt_args *args, struct optim_chunk *chunks)
{
    int64_t n = 0;
    for (int i = 0; i < args->n_segments; i++) {
        for (int64_t k = 0; k < n_chunks_of(&args->segments[i]); k++) {
            chunks[n++] = (struct optim_chunk){.segment = i, .first = (int32_t)k};
        }
    }
}

static int copy_table(void **ret_device, const void *host, size_t bytes)
{
    if (cudaMalloc(ret_device, bytes > 0 ? bytes : 1) != cudaSuccess) {
        *ret_device = NULL;
        return -1;
    }
    return cudaMemcpy(*ret_device, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess ? 0 : -1;
}

static void free_table(struct cuda *cuda, struct optim_table *table)
{
    if (table) {
        cuda_ok(cuda, cudaFree(table->segments), "cudaFree");
        cuda_ok(cuda, cudaFree(table->chunks), "cudaFree");
        free(table);
    }
}

static int prepare_update(void *self, struct opt_args *args, struct err *err)
{
    struct cuda *cuda = self;
    int64_t n_chunks = 0;
    if (check_segments(args, err) < 0) {
        return -1;
    }
    for (int i = 0; i < args->n_segments; i++) {
        n_chunks += n_chunks_of(&args->segments[i]);
    }
    if (n_chunks > INT32_MAX) {
        return err_set(err, ERR_WORKLOAD, "%" PRId64 " chunks of parameters are too many",
                       n_chunks);
    }
    struct optim_table *table = xcalloc(1, sizeof(*table));
    struct optim_chunk *chunks = xcalloc((size_t)n_chunks + 1, sizeof(*chunks));
    fill(args, chunks);
    table->n_chunks = (int)n_chunks;
    bool is_there =
        copy_table((void **)&table->segments, args->segments,
                   (size_t)args->n_segments * sizeof(*args->segments)) == 0 &&
        copy_table((void **)&table->chunks, chunks, (size_t)n_chunks * sizeof(*chunks)) == 0;
    free(chunks);
    if (!is_there) {
        free_table(cuda, table);
        return err_set(err, ERR_WORKLOAD, "the optimiser's tables: %s",
                       cudaGetErrorString(cudaGetLastError()));
    }
    args->prepared = table;
    args->workspace_bytes = scratch_bytes(table);
    return 0;
}

static void unprepare_update(void *self, struct opt_args *args)
{
    free_table(self, args->prepared);
    args->prepared = NULL;
}

static void set_hyper(void *self, const struct opt_args *args, const struct opt_hyper *hyper)
{
    struct cuda *cuda = self;
    if (cuda->err.code == ERR_NONE) {
        optim_set_lr(cuda, args->state, hyper->lr);
    }
}

static void add_gradients(void *self, const struct opt_args *args, bool is_first)
{
    struct cuda *cuda = self;
    if (cuda->err.code == ERR_NONE) {
        optim_add_gradients(cuda, args, is_first);
    }
}

static void update(void *self, const struct opt_args *args)
{
    struct cuda *cuda = self;
    if (cuda->err.code == ERR_NONE) {
        optim_update(cuda, args);
    }
}

void cuda_fill_optim(struct backend *backend)
{
    backend->prepare_update = prepare_update;
    backend->unprepare_update = unprepare_update;
    backend->set_hyper = set_hyper;
    backend->add_gradients = add_gradients;
    backend->update = update;
}
