/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/kernel.h"

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
};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

bool dropout_keeps(const struct dropout_geom *geom, int64_t step, int64_t run_idx)
{
    uint64_t hash = mix(mix(mix(geom->stream) ^ (uint64_t)step) ^ (uint64_t)run_idx);
    return (double)(hash >> 11) * 0x1p-53 >= geom->rate;
}

const char *kernel_name(enum kernel_id id)
{
    return NAMES[id];
}
