/* SPDX-License-Identifier: Apache-2.0 */
/* Two lists of calls for the same part of a step, one plain and one fused: a backend says which is faster (struct
   backend, compare). Values only. */
#pragma once

#include "core/kernel.h"

#define FORM_CALLS_MAX   12
#define FORM_BUFFERS_MAX 40
#define FORM_ABSENT      (-1)

struct form_call {
    struct kernel_args args;                    /* as for prepare: no addresses, has_in is set */
    int in[KERNEL_IN_MAX], out[KERNEL_OUT_MAX]; /* index of a buffer, or FORM_ABSENT */
};

struct form {
    struct form_call calls[FORM_CALLS_MAX]; /* in the order of the step */
    int n_calls;
};

struct forms {
    struct form plain, fused;
    struct tensor_desc buffers[FORM_BUFFERS_MAX];
    int n_buffers;
};

struct form_times {
    int64_t plain_ns, fused_ns; /* medians; 0: not timed, or kept from an earlier run */
};
