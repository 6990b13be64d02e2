/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPUs of this machine can do, all at once: one process each (bench/gpu_worker.c) that executes orders received over a
   socket, and one that sends them (bench/gpus.c). Every repeat begins on all GPUs together and takes as long as the slowest. */
#ifndef BENCH_GPUS_H
#define BENCH_GPUS_H

#include "base/err.h"

#include <signal.h>

#define GPU_TEXT_MAX 384
#define GPUS_MAX     64

enum gpu_measure { GPU_COPY, GPU_PRODUCT_HALF, GPU_PRODUCT_FLOAT, GPU_ALL_REDUCE, GPU_MEASURES };

/* PREPARE takes memory, fills it, and makes passes until their time is known; RUN makes the given number of passes; END checks the
   result and frees the memory. */
enum gpu_verb { GPU_PREPARE, GPU_RUN, GPU_END };

struct gpu_order {
    enum gpu_verb verb;
    enum gpu_measure measure;
    int64_t count; /* passes */
};

/* Also sent once unasked, when the GPU is open: text is then its name, driver and libraries. */
struct gpu_reply {
    int64_t ns;   /* by the GPU's clock: of one pass, of all passes */
    int64_t work; /* of one pass: bytes or operations */
    bool is_failure;
    char text[GPU_TEXT_MAX]; /* why */
};

struct gpu_place {
    int gpu, n_gpus;
    int port;             /* of this machine, where the first meets the others */
    int listener;         /* of the first: there; of the others 0 */
    int64_t memory_bytes; /* that a measure may take; 0: no limit */
    int64_t sample_ns;    /* target of PREPARE */
    const volatile sig_atomic_t *stop;
};

/* Both open the driver, which does not survive a fork: in a process of their own. */
MUST_CHECK int gpu_count(int *ret_n, struct err *err);
/* Serves orders until the other end closes; its exit status. */
int gpu_worker(const struct gpu_place *place, int fd);

#endif
