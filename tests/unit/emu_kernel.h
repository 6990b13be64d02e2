/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a CUDA kernel in the emulator against the same call of the CPU backend in double: inputs are rounded to what the
   device stores first, so that what differs is the device's arithmetic and the rounding of its results.

   Every call runs four times: on a device of 2 and of 132 multiprocessors, each with two orders of threads, blocks and queued
   work; equal devices must give equal bits. Outputs that are not added to begin as NaN; what rounding up channels adds must be 0. */
#ifndef UNIT_EMU_KERNEL_H
#define UNIT_EMU_KERNEL_H

#include "emu_device.h"

/* ---- the oracle ---- */

/* expected[i]: values of out[i] */
static inline void job_expect(struct job *job, double *expected[KERNEL_OUT_MAX])
{
    struct cpu cpu;
    struct backend backend;
    struct kernel_args args = job->args;
    PASSES(cpu_init(&cpu, CPU_PLAIN, 1, &backend, ERR));
    args.dtype = DT_F64;
    PASSES(backend.prepare(backend.self, &args, ERR));
    args.workspace = xcalloc((size_t)args.workspace_bytes + 1, 1);
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        const struct slot *slot = &job->in[i];
        args.in[i] = slot->is_there
                         ? to_elements(slot->values, slot->count, slot_dtype(slot, DT_F64))
                         : NULL;
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct slot *slot = &job->out[i];
        args.out[i] = slot->is_there
                          ? to_elements(slot->values, slot->count, slot_dtype(slot, DT_F64))
                          : NULL;
    }
    assert_non_null(backend.run[args.id]);
    backend.run[args.id](backend.self, &args);
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct slot *slot = &job->out[i];
        expected[i] = NULL;
        if (slot->is_there) {
            expected[i] = to_doubles(args.out[i], slot->count, slot_dtype(slot, DT_F64));
        }
        free(args.out[i]);
    }
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        free((void *)(uintptr_t)args.in[i]);
    }
    free(args.workspace);
    cpu_release(&cpu);
}

/* ---- comparing ---- */

static inline double relative_error(const double *actual, const double *expected, int64_t count)
{
    double difference = 0.0;
    double norm = 0.0;
    for (int64_t i = 0; i < count; i++) {
        difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    if (norm > 0.0) {
        return sqrt(difference / norm);
    }
    return difference > 0.0 || isnan(difference) ? (double)INFINITY : 0.0;
}

static inline void round_slots(struct job *job, enum dtype elem)
{
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        struct slot *slot = &job->in[i];
        for (int64_t k = 0; k < slot->count; k++) {
            slot->values[k] = rounded(slot->values[k], slot_dtype(slot, elem));
        }
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        struct slot *slot = &job->out[i];
        for (int64_t k = 0; k < slot->count; k++) {
            slot->values[k] = rounded(slot->values[k], slot_dtype(slot, elem));
        }
    }
}

static inline void compare(struct job *job, const struct device_run *run,
                           double *const expected[KERNEL_OUT_MAX], enum dtype elem)
{
    double tolerance = elem == DT_F16 ? TOLERANCE_F16 : TOLERANCE_F32;
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        const struct slot *slot = &job->out[i];
        if (!slot->is_there) {
            continue;
        }
        job->errors[i] = relative_error(run->values[i], expected[i], slot->count);
        bool is_exact = slot->type == INT32 || slot->type == INT64;
        if (!(job->errors[i] <= (is_exact ? 0.0 : tolerance))) {
            print_error("%s, %s: out[%d] is off by %.3g, expected at most %.3g\n",
                        kernel_name(job->args.id), dtype_name(elem), i, job->errors[i],
                        is_exact ? 0.0 : tolerance);
        }
        assert_true(job->errors[i] <= (is_exact ? 0.0 : tolerance));
    }
}

/* One type: rounds the job's values to it. */
static inline void job_check_as(struct job *job, enum dtype elem)
{
    static const int sizes[] = {2, 132};
    double *expected[KERNEL_OUT_MAX];
    cudaStream_t stream;
    round_slots(job, elem);
    job_expect(job, expected);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        struct device_run first = {0};
        for (uint64_t seed = 1; seed <= 2; seed++) {
            emu_seed(seed);
            OK(cudaStreamCreate(&stream));
            struct cuda cuda = {.channel_pad = elem == DT_F16 ? 8 : 4,
                                .is_amp = elem == DT_F16,
                                .n_multiprocessors = sizes[k],
                                .n_streams = 1,
                                .streams = {stream}};
            struct device_run run = job_on_device(job, &cuda);
            compare(job, &run, expected, elem);
            for (int i = 0; seed > 1 && i < KERNEL_OUT_MAX; i++) {
                if (run.raw[i]) {
                    assert_memory_equal(run.raw[i], first.raw[i], run.bytes[i]);
                }
            }
            device_run_release(&first);
            first = run;
            OK(cudaStreamDestroy(stream));
        }
        device_run_release(&first);
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(expected[i]);
    }
}

/* Both types; float first, as rounding to half is a rounding of float, too. */
static inline void job_check(struct job *job)
{
    job_check_as(job, DT_F32);
    job_check_as(job, DT_F16);
}

#endif
