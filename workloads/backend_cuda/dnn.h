/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN behind the contract of core/kernel.h: K_CONV_FWD, K_CONV_BWD_DATA, K_CONV_BWD_WEIGHT, K_CONV_STATS_FWD,
   K_CONV_BWD_DATA_BN and K_NORM_CONV_BWD_WEIGHT, including dbias and +=, by the graph API. On
   Volta (compute capability 7.0) it has no fused forms. Depthwise convolution has a kernel of ours instead.

   Images (N, H, W, C) and filters (K, R, S, C/G), channels rounded up by cuda_channels; vectors over channels are as
   long as the rounded channels. DT_F32, or DT_F16 with sums in float. DT_F32 keeps to full precision unless
   cuda->has_tf32.

   Everything runs on the call's stream and can be captured. One thread. */
#pragma once

#include "backend_cuda/cuda.h"
#include "backend_cuda/plans.h"

/* Loads the library and creates cuda->dnn; cuda's device, streams and settings must be set. Missing, too old, of another
   major version, or an unsupported device: an error that says what was found where and what is expected. */
MUST_CHECK int dnn_open(struct cuda *cuda, const struct plan_opts *opts, struct err *err);
void dnn_close(struct cuda *cuda); /* cuda->dnn is NULL then; NULL is allowed */

/* "cudnn 9.19.0"; lives as long as cuda->dnn. */
const char *dnn_version(const struct cuda *cuda);

/* Whether there is any plan for this call. Reads only id, dtype, geometry, has_bias, has_in and accumulate. Costs
   milliseconds. */
bool dnn_supports(struct cuda *cuda, const struct kernel_args *args);

/* The backend's prepare and unprepare for these ids. Sets args->prepared and args->workspace_bytes. Plans are shared among equal
   calls. No plan within PLAN_WORKSPACE_MAX_BYTES: an error with the layer's shape. */
MUST_CHECK int dnn_prepare(struct cuda *cuda, struct kernel_args *args, struct err *err);
void dnn_unprepare(struct cuda *cuda, struct kernel_args *args);

/* One function for all ids, as struct backend's run; self is the struct cuda. A failure goes into cuda->err. */
void dnn_run(void *self, const struct kernel_args *args);
