/* SPDX-License-Identifier: Apache-2.0 */
/* One step in half precision, call by call on a device and on the CPU, which computes in double and rounds each result
   to the type in which the device stores it. No CUDA header here.

   Between two halves the device, which sums in float, may take the other one than the CPU. Both are right, but a
   network amplifies one such bit like any rounding: after a few batch norms two steps that differ in it agree only in
   the exact result. So where the device's half is within one step of the exact result (or, of an element that cancels,
   within one step at the size of the others) the CPU continues with it, and both remain the same network to the end. Attention also rounds in its middle: a result within its tolerance is taken
   over whole. */
#pragma once

#include "tests/cuda/nets.h"

#define ROUNDED_NAME_MAX (GRAPH_NAME_MAX + 80)

/* Norm of the difference from the CPU's rounded result, over the norm of that result. The same as each kernel has in half precision
   (held.c); seen on the emulated device: 3e-4 of attention, which rounds between its products, 2e-5 of the rest. */
#define ROUNDED_NORM_MAX 2e-3
/* An element's difference, over its size and the mean square of all: detects one missing element among many. */
#define ROUNDED_ELEMENT_MAX 0.02
/* In addition a result may be off by the smallest step of its type: gradients that are 0 in theory are left-over
   rounding. For integers the share that differs, and for halves the share that the CPU rounded otherwise: truncation
   differs in half of all cases. */
#define ROUNDED_INTEGER_MAX 0.02
#define ROUNDED_OTHER_MAX   0.1

struct rounded_worst {
    double value;
    char name[ROUNDED_NAME_MAX];
};
struct rounded_report {
    int n_calls, n_outputs, n_bad;
    struct rounded_worst
        off; /* of the output that is furthest off, as a share of the allowed error */
    struct rounded_worst
        other; /* share of an output's halves that the CPU rounded otherwise, the same */
    char first[ROUNDED_NAME_MAX]; /* that is off or rounded otherwise by more than allowed; "" */
    int n_planted,
        n_missed; /* faults planted in calls' outputs, and those that would have been accepted */
    char missed[ROUNDED_NAME_MAX + 40];
};

/* Device and host have the same parameters and inputs, the same calls, one stream. The host's type is DT_F64. Gradients carry
   grad_scale. The failure is the device's. */
MUST_CHECK int rounded_step(struct trial *device, struct trial *host, double grad_scale,
                            struct rounded_report *ret_report, struct err *err);
