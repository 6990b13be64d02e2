/* SPDX-License-Identifier: Apache-2.0 */
/* Our own kernels, one function a kernel id with the contract of core/kernel.h; each enqueues its work on the call's stream and
   returns. A new one needs a line here and a row in the table in dispatch.c.

   A channel vector (gamma, mean, ...) has as many
   floats as an image has stored channels; those past C are 0. If there is a function NAME_workspace, it says how much
   args->workspace the call needs; calls that may run at the same time (on different streams) need workspaces of their own. */
#pragma once

#include "backend_cuda/cuda.h"

/* elementwise.cu */
void cuda_relu_fwd(void *self, const struct kernel_args *args);
void cuda_add_fwd(void *self, const struct kernel_args *args);
void cuda_elem_bwd(void *self, const struct kernel_args *args); /* of both */
void cuda_concat_fwd(void *self, const struct kernel_args *args);
void cuda_concat_bwd(void *self, const struct kernel_args *args);

/* batch_norm.cu, batch_norm_bwd.cu. Those with _check report what they cannot do: norm over several ranks. */
MUST_CHECK int cuda_bn_check(const struct cuda *cuda, const struct kernel_args *args,
                             struct err *err);
int64_t cuda_bn_workspace(const struct cuda *cuda, const struct kernel_args *args);
int64_t cuda_bn_sums_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_bn_fwd(void *self, const struct kernel_args *args); /* K_BN_FWD, K_BN_ADD_FWD */
void cuda_bn_bwd(void *self, const struct kernel_args *args); /* K_BN_BWD, K_BN_ADD_BWD */
void cuda_bn_finalize(void *self, const struct kernel_args *args);
void cuda_bn_apply(void *self, const struct kernel_args *args);
void cuda_bn_bwd_apply(void *self, const struct kernel_args *args);

/* dropout.cu */
void cuda_dropout(void *self, const struct kernel_args *args); /* forward and backward */

/* pool.cu */
void cuda_maxpool_fwd(void *self, const struct kernel_args *args);
void cuda_maxpool_bwd(void *self, const struct kernel_args *args);
void cuda_avgpool_fwd(void *self, const struct kernel_args *args);
void cuda_avgpool_bwd(void *self, const struct kernel_args *args);

/* resize.cu */
void cuda_upsample_fwd(void *self, const struct kernel_args *args);
void cuda_upsample_bwd(void *self, const struct kernel_args *args);

/* loss.cu, upsample_loss.cu */
MUST_CHECK int cuda_loss_check(const struct cuda *cuda, const struct kernel_args *args,
                               struct err *err); /* of all four */
int64_t cuda_loss_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_loss_fwd(void *self, const struct kernel_args *args);
void cuda_loss_bwd(void *self, const struct kernel_args *args);
int64_t cuda_upsample_loss_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_upsample_loss_fwd(void *self, const struct kernel_args *args);
void cuda_upsample_loss_bwd(void *self, const struct kernel_args *args);

/* curves.cu */
void cuda_gelu_fwd(void *self, const struct kernel_args *args);
void cuda_gelu_bwd(void *self, const struct kernel_args *args);
void cuda_tanh_fwd(void *self, const struct kernel_args *args);
void cuda_tanh_bwd(void *self, const struct kernel_args *args);

/* layer_norm.cu, also with dropout and addition; the workspace is of backward */
int64_t cuda_layer_norm_workspace(const struct cuda *cuda, const struct kernel_args *args);
MUST_CHECK int cuda_layer_norm_check(const struct cuda *cuda, const struct kernel_args *args,
                                     struct err *err);
void cuda_layer_norm_fwd(void *self, const struct kernel_args *args);
void cuda_layer_norm_bwd(void *self, const struct kernel_args *args);

/* embed.cu, gather.cu; the workspace is of backward */
MUST_CHECK int cuda_embed_check(const struct cuda *cuda, const struct kernel_args *args,
                                struct err *err);
int64_t cuda_embed_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_embed_fwd(void *self, const struct kernel_args *args);
void cuda_embed_bwd(void *self, const struct kernel_args *args);
void cuda_gather_fwd(void *self, const struct kernel_args *args);
void cuda_gather_bwd(void *self, const struct kernel_args *args);

/* row_loss.cu; its check is cuda_loss_check */
int64_t cuda_row_loss_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_row_loss(void *self, const struct kernel_args *args);

/* attention.cu; the workspace is of backward */
MUST_CHECK int cuda_attention_check(const struct cuda *cuda, const struct kernel_args *args,
                                    struct err *err);
int64_t cuda_attention_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_attention_fwd(void *self, const struct kernel_args *args);
void cuda_attention_bwd(void *self, const struct kernel_args *args);

/* depthwise.cu, depthwise_weight.cu: K_CONV_* where groups, C and K are the same; the workspace is of the filter's gradient */
MUST_CHECK int cuda_depthwise_check(const struct cuda *cuda, const struct kernel_args *args,
                                    struct err *err);
int64_t cuda_depthwise_workspace(const struct cuda *cuda, const struct kernel_args *args);
void cuda_depthwise_fwd(void *self, const struct kernel_args *args);
void cuda_depthwise_bwd_data(void *self, const struct kernel_args *args);
void cuda_depthwise_bwd_weight(void *self, const struct kernel_args *args);
