/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel call in a test: its operands in doubles, their roles and types, and their rounding. */
#ifndef UNIT_EMU_JOB_H
#define UNIT_EMU_JOB_H

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/cpu.h"
#include "backend_cuda/kernels.h"
#include "backend_cuda/layout.h"
#include "base/arena.h"
#include "base/rng.h"
#include "core/half.h"
#include "emu.h"
#include "tests/cuda/elements.h"

/* Relative norm of the difference. FP32: sums of up to some thousand terms in float, 6e-8 each. FP16: the result's rounding is 2^-11 at most
   (2.8e-4 in the mean square); the rest is for what kernels store in half precision in between. */
#define TOLERANCE_F32 1e-5
#define TOLERANCE_F16 2e-3

#define OK(call) assert_int_equal(call, cudaSuccess)

enum slot_type {
    ELEM,  /* args.dtype */
    FLOAT, /* float on the device */
    INT32,
    INT64,
};

struct slot {
    bool is_there;
    bool is_kept; /* an output that is read as well though it is not added to */
    enum slot_type type;
    struct tensor_desc desc; /* of the device; dtype is filled in by the run */
    int64_t count;
    double *values; /* owned */
};

struct job {
    struct kernel_args args;
    struct slot in[KERNEL_IN_MAX], out[KERNEL_OUT_MAX];
    void (*run)(void *self, const struct kernel_args *args);
    int64_t (*workspace)(const struct cuda *cuda, const struct kernel_args *args);
    int in_place; /* out[0] lies in the memory of in[in_place - 1]; 0: it does not */
    float loss_scale;
    struct rng rng;
    double errors[KERNEL_OUT_MAX]; /* of the last run */
};

static inline struct job job_new(enum kernel_id id,
                                 void (*run)(void *self, const struct kernel_args *args))
{
    struct job job = {.args = {.id = id}, .run = run};
    rng_init(&job.rng, (uint64_t)id + 1);
    return job;
}

static inline void slot_init(struct slot *slot, enum slot_type type, enum role role,
                             struct shape shape)
{
    int64_t count = shape_count(&shape);
    free(slot->values);
    *slot = (struct slot){.is_there = true,
                          .type = type,
                          .desc = {shape, DT_F32, role},
                          .count = count,
                          .values = xcalloc((size_t)count, sizeof(double))};
}

static inline void fill_normal(struct job *job, struct slot *slot, double mean, double deviation)
{
    for (int64_t i = 0; i < slot->count; i++) {
        slot->values[i] = mean + deviation * rng_normal(&job->rng);
    }
}

static inline struct slot *job_in(struct job *job, int idx, enum slot_type type, enum role role,
                                  struct shape shape)
{
    slot_init(&job->in[idx], type, role, shape);
    fill_normal(job, &job->in[idx], 0.0, 1.0);
    job->args.has_in |= 1U << idx;
    return &job->in[idx];
}

static inline struct slot *job_out(struct job *job, int idx, enum slot_type type, enum role role,
                                   struct shape shape)
{
    slot_init(&job->out[idx], type, role, shape);
    fill_normal(job, &job->out[idx], 0.0, 1.0);
    return &job->out[idx];
}

static inline void job_release(struct job *job)
{
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        free(job->in[i].values);
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(job->out[i].values);
    }
}

/* ---- types ---- */

static inline enum dtype slot_dtype(const struct slot *slot, enum dtype elem)
{
    switch (slot->type) {
    case ELEM:
        return elem;
    case FLOAT:
        return elem == DT_F64 ? DT_F64 : DT_F32;
    case INT32:
        return DT_I32;
    case INT64:
        break;
    }
    return DT_I64;
}

static inline double rounded(double value, enum dtype dtype)
{
    if (dtype == DT_F16) {
        return (double)half_to_float(half_from_float((float)value));
    }
    return dtype == DT_F32 ? (double)(float)value : value;
}

#endif
