/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of each kernel id (held_case_fn), by family: cases_image.c, cases_plane.c, cases_rows.c. */
#ifndef CUDA_CASES_H
#define CUDA_CASES_H

#include "tests/cuda/held.h"

#include <math.h>

bool case_conv_fwd(struct held_call *call, int idx);
bool case_conv_bwd_data(struct held_call *call, int idx);
bool case_conv_bwd_weight(struct held_call *call, int idx);
bool case_bn_fwd(struct held_call *call, int idx);
bool case_bn_bwd(struct held_call *call, int idx);
bool case_bn_add_fwd(struct held_call *call, int idx);
bool case_bn_add_bwd(struct held_call *call, int idx);
bool case_bn_finalize(struct held_call *call, int idx);
bool case_bn_apply(struct held_call *call, int idx);
bool case_bn_bwd_apply(struct held_call *call, int idx);
bool case_conv_stats_fwd(struct held_call *call, int idx);
bool case_conv_bwd_data_bn(struct held_call *call, int idx);
bool case_norm_conv_bwd_weight(struct held_call *call, int idx);

bool case_relu_fwd(struct held_call *call, int idx);
bool case_relu_bwd(struct held_call *call, int idx);
bool case_add_fwd(struct held_call *call, int idx);
bool case_add_bwd(struct held_call *call, int idx);
bool case_maxpool_fwd(struct held_call *call, int idx);
bool case_maxpool_bwd(struct held_call *call, int idx);
bool case_avgpool_fwd(struct held_call *call, int idx);
bool case_avgpool_bwd(struct held_call *call, int idx);
bool case_dropout_fwd(struct held_call *call, int idx);
bool case_dropout_bwd(struct held_call *call, int idx);
bool case_upsample_fwd(struct held_call *call, int idx);
bool case_upsample_bwd(struct held_call *call, int idx);
bool case_concat_fwd(struct held_call *call, int idx);
bool case_concat_bwd(struct held_call *call, int idx);
bool case_loss_fwd(struct held_call *call, int idx);
bool case_loss_bwd(struct held_call *call, int idx);
bool case_upsample_loss_fwd(struct held_call *call, int idx);
bool case_upsample_loss_bwd(struct held_call *call, int idx);

bool case_linear_fwd(struct held_call *call, int idx);
bool case_linear_bwd_data(struct held_call *call, int idx);
bool case_linear_bwd_weight(struct held_call *call, int idx);
bool case_embed_fwd(struct held_call *call, int idx);
bool case_embed_bwd(struct held_call *call, int idx);
bool case_layer_norm_fwd(struct held_call *call, int idx);
bool case_layer_norm_bwd(struct held_call *call, int idx);
bool case_drop_add_norm_fwd(struct held_call *call, int idx);
bool case_drop_add_norm_bwd(struct held_call *call, int idx);
bool case_gelu_fwd(struct held_call *call, int idx);
bool case_gelu_bwd(struct held_call *call, int idx);
bool case_tanh_fwd(struct held_call *call, int idx);
bool case_tanh_bwd(struct held_call *call, int idx);
bool case_attention_fwd(struct held_call *call, int idx);
bool case_attention_bwd(struct held_call *call, int idx);
bool case_gather_fwd(struct held_call *call, int idx);
bool case_gather_bwd(struct held_call *call, int idx);
bool case_row_loss(struct held_call *call, int idx);

#endif
