/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt behind the contract of core/kernel.h: K_LINEAR_FWD, K_LINEAR_BWD_DATA, K_LINEAR_BWD_WEIGHT with bias, dbias and +=.
   x (N, C), w (K, C), y (N, K) lie as their shapes say, nothing rounded up; but with geom.linear.is_rounded the product is made with
   K rounded up, zeros of w and the bias included, so that each row of y begins at 16 bytes. DT_F32 (full precision unless cuda->has_tf32), or
   DT_F16 with sums in float. Everything runs on the call's stream and can be captured. One thread. */
#pragma once

#include "backend_cuda/cuda.h"
#include "backend_cuda/plans.h"

/* As in dnn.h, for cuda->lt. */
MUST_CHECK int lt_open(struct cuda *cuda, const struct plan_opts *opts, struct err *err);
void lt_close(struct cuda *cuda);
const char *lt_version(const struct cuda *cuda); /* "cublaslt 13.0.2" */
MUST_CHECK int lt_prepare(struct cuda *cuda, struct kernel_args *args, struct err *err);
void lt_unprepare(struct cuda *cuda, struct kernel_args *args);
void lt_run(void *self, const struct kernel_args *args);
struct plan_info lt_plan_info(const struct kernel_args *args);
