/* SPDX-License-Identifier: Apache-2.0 */
/* What dnn.h and lt.h have in common: how a plan for a call is chosen, and what is reported of it. A plan is one of a library's
   ways to perform a call: an engine with its settings. */
#pragma once

#include "core/kernel.h"

/* Half precision has fast plans that need little. Without tensor cores the fast plans for N, H, W, C transpose the images first,
   and need room for all of them: 1.03 GB for ResNet-50's largest at batch 256 (cuDNN 9.19, planning for an H100). */
#define PLAN_WORKSPACE_MAX_BYTES     (INT64_C(256) << 20)
#define PLAN_WORKSPACE_F32_MAX_BYTES (INT64_C(1) << 30)
#define PLAN_NAME_MAX                160

struct plan_opts {
    bool
        is_tuned; /* candidates are timed on buffers of the call's size; else the library's first is taken */
    bool has_tune_limit;
    int64_t
        tune_limit_s; /* limit on the time from the first choice on, where has_tune_limit; later ones take the library's
                         first */
    bool allows_compiled; /* cuDNN: also engines that are compiled on request, 0.2 to 1.5 s each */
    bool allows_nondeterministic; /* cuDNN: also fused convolutions, whose sums by channel differ in
                                     their last bits from run to run */
    const char
        *cache_folder; /* where choices are kept; NULL: nowhere. Borrowed until cuda_init returns */
    const char *
        device_json; /* cuDNN: plan for the device described, without a real one; nothing can run. Borrowed likewise */
};

struct plan_info {
    char name
        [PLAN_NAME_MAX]; /* "cudnn 62 tile=3 splitk=1": the same in every run that chooses the same */
    int64_t workspace_bytes;
    int64_t time_ns; /* the median by which it was chosen; 0: it was not timed */
    bool is_from_cache;
    bool is_deterministic;
    bool is_compiled; /* compiled when the plan was made, not delivered with the library */
};
