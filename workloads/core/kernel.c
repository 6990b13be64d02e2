/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/kernel.h"

#include <math.h>

static const char *const NAMES[K_COUNT] = {
    [K_CONV_FWD] = "conv_fwd",
    [K_CONV_BWD_DATA] = "conv_bwd_data",
    [K_CONV_BWD_WEIGHT] = "conv_bwd_weight",
    [K_BN_FWD] = "bn_fwd",
    [K_BN_BWD] = "bn_bwd",
    [K_RELU_FWD] = "relu_fwd",
    [K_RELU_BWD] = "relu_bwd",
    [K_ADD_FWD] = "add_fwd",
    [K_ADD_BWD] = "add_bwd",
    [K_MAXPOOL_FWD] = "maxpool_fwd",
    [K_MAXPOOL_BWD] = "maxpool_bwd",
    [K_AVGPOOL_FWD] = "avgpool_fwd",
    [K_AVGPOOL_BWD] = "avgpool_bwd",
    [K_DROPOUT_FWD] = "dropout_fwd",
    [K_DROPOUT_BWD] = "dropout_bwd",
    [K_UPSAMPLE_FWD] = "upsample_fwd",
    [K_UPSAMPLE_BWD] = "upsample_bwd",
    [K_CONCAT_FWD] = "concat_fwd",
    [K_CONCAT_BWD] = "concat_bwd",
    [K_LINEAR_FWD] = "linear_fwd",
    [K_LINEAR_BWD_DATA] = "linear_bwd_data",
    [K_LINEAR_BWD_WEIGHT] = "linear_bwd_weight",
    [K_LOSS_FWD] = "loss_fwd",
    [K_LOSS_BWD] = "loss_bwd",
    [K_EMBED_FWD] = "embed_fwd",
    [K_EMBED_BWD] = "embed_bwd",
    [K_LAYER_NORM_FWD] = "layer_norm_fwd",
    [K_LAYER_NORM_BWD] = "layer_norm_bwd",
    [K_GELU_FWD] = "gelu_fwd",
    [K_GELU_BWD] = "gelu_bwd",
    [K_TANH_FWD] = "tanh_fwd",
    [K_TANH_BWD] = "tanh_bwd",
    [K_ATTENTION_FWD] = "attention_fwd",
    [K_ATTENTION_BWD] = "attention_bwd",
    [K_GATHER_FWD] = "gather_fwd",
    [K_GATHER_BWD] = "gather_bwd",
    [K_ROW_LOSS] = "row_loss",
    [K_BN_ADD_FWD] = "bn_add_fwd",
    [K_BN_ADD_BWD] = "bn_add_bwd",
    [K_CONV_STATS_FWD] = "conv_stats_fwd",
    [K_BN_FINALIZE] = "bn_finalize",
    [K_BN_APPLY] = "bn_apply",
    [K_CONV_BWD_DATA_BN] = "conv_bwd_data_bn",
    [K_BN_BWD_APPLY] = "bn_bwd_apply",
    [K_DROP_ADD_NORM_FWD] = "drop_add_norm_fwd",
    [K_DROP_ADD_NORM_BWD] = "drop_add_norm_bwd",
    [K_NORM_CONV_BWD_WEIGHT] = "norm_conv_bwd_weight",
    [K_UPSAMPLE_LOSS_FWD] = "upsample_loss_fwd",
    [K_UPSAMPLE_LOSS_BWD] = "upsample_loss_bwd",
};

struct dropout_draw dropout_draw_of(const struct dropout_geom *geom, int64_t step)
{
    /* hash * 2^-53 >= rate, in whole numbers: scaling by a power of two is exact. */
    return (struct dropout_draw){.base = dropout_mix(dropout_mix(geom->stream) ^ (uint64_t)step),
                                 .threshold = (uint64_t)ceil(geom->rate * 0x1p53)};
}

const char *kernel_name(enum kernel_id id)
{
    return NAMES[id];
}
