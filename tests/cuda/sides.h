/* SPDX-License-Identifier: Apache-2.0 */
/* The device and the CPU that it is checked against. Includes the CUDA backend: for test programs alone. */
#pragma once

#include "base/base.h"

#include "backend_cpu/cpu.h"
#include "backend_cuda/cuda.h"
#include "tests/cuda/tap.h"

struct sides {
    struct cuda cuda;
    struct cpu cpu;
    struct backend device, host;
    struct graph_types types; /* of the device */
    const char *mode;
};

/* is_any_order: also convolutions whose sums may differ in their last bits from run to run. */
static inline void sides_open(struct sides *s, bool is_amp, bool is_any_order)
{
    struct err err = {0};
    const struct cuda_opts opts = {.is_amp = is_amp,
                                   .n_streams = CUDA_STREAMS_MAX,
                                   .n_marks = 2,
                                   .plan = {.allows_nondeterministic = is_any_order}};
    *s = (struct sides){.types = {is_amp ? DT_F16 : DT_F32, DT_F32, DT_F32},
                        .mode = is_amp ? "amp" : "fp32"};
    if (cuda_init(&s->cuda, &opts, &s->device, &err) < 0 ||
        cpu_init(&s->cpu, CPU_PLAIN, 0, &s->host, &err) < 0) {
        tap_bail("%s", err.msg);
    }
}

static inline void sides_close(struct sides *s)
{
    cuda_release(&s->cuda);
    cpu_release(&s->cpu);
}
