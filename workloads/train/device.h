/* SPDX-License-Identifier: Apache-2.0 */
/* The backend of a run: by the name of its device, opened and closed in one place. */
#pragma once

#include "graph/graph.h"
#include "train/options.h"

#define DEVICE_TEXT_MAX 256
#define DEVICE_MARKS    (2 * (AHEAD_MAX + 1)) /* of an asynchronous one */

/* Description of the device; texts that do not apply are empty. */
struct device_about {
    char gpu[DEVICE_TEXT_MAX], driver[DEVICE_TEXT_MAX], libraries[DEVICE_TEXT_MAX];
    char runtime[16];
    int64_t memory_bytes;
};

struct device {
    void *opened; /* owned: a struct cpu or a struct cuda */
    void (*close)(void *opened);
    struct device_about about;
};

/* "cpu", "cuda". */
bool device_is_known(const char *name);

/* False for a device that is not in this build. */
bool device_is_built(const char *name);

/* The device of opts; *ret_backend borrows it until device_close. On failure nothing is owned. */
MUST_CHECK int device_open(struct device *device, const struct train_opts *opts,
                           struct backend *ret_backend, struct err *err);
void device_close(struct device *device);
static inline void device_cleanup(struct device *device)
{
    device_close(device);
}

/* The types in which values are stored there. */
struct graph_types device_types(const struct train_opts *opts);

/* device_cuda.c; only where REPERF_HAVE_CUDA is defined. */
MUST_CHECK int device_open_cuda(struct device *device, const struct train_opts *opts,
                                struct backend *ret_backend, struct err *err);
