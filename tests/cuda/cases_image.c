/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of convolution and batch norm, and of their fused forms. */
#include "tests/cuda/cases.h"

/* n, c, h, w, k, filter, stride, pad, dilation, groups: odd channels, one pixel, strides, windows larger than the image. */
static const int64_t CONVS[][10] = {
    {2, 3, 7, 9, 5, 3, 1, 1, 1, 1},   {1, 8, 5, 5, 16, 1, 1, 0, 1, 1},
    {2, 4, 9, 8, 6, 3, 2, 1, 1, 1},   {1, 3, 11, 13, 4, 7, 2, 3, 1, 1},
    {1, 5, 8, 8, 7, 3, 1, 4, 4, 1},   {3, 9, 1, 1, 10, 1, 1, 0, 1, 1},
    {1, 18, 6, 5, 36, 3, 1, 1, 1, 1}, {2, 2, 4, 4, 19, 1, 2, 0, 1, 1},
};
/* Also chains in pieces, most taps beside the image, results smaller and larger than the image, several tiles of channels. */
static const int64_t DEPTHWISE[][10] = {
    {2, 5, 7, 9, 5, 3, 1, 1, 1, 5},        {1, 20, 13, 11, 20, 3, 1, 4, 4, 20},
    {1, 33, 9, 9, 33, 3, 1, 12, 12, 33},   {3, 8, 1, 1, 8, 3, 1, 1, 1, 8},
    {2, 130, 5, 17, 130, 3, 1, 2, 2, 130}, {1, 40, 40, 9, 40, 3, 1, 1, 1, 40},
    {1, 5, 17, 7, 5, 3, 1, 12, 12, 5},     {1, 6, 9, 8, 6, 3, 1, 0, 2, 6},
    {1, 6, 9, 8, 6, 3, 1, 5, 2, 6},        {1, 9, 5, 6, 9, 3, 1, 36, 36, 9},
    {1, 300, 4, 4, 300, 3, 1, 1, 1, 300},
};
#define N_CONVS     (int)ARRAY_LEN(CONVS)
#define N_DEPTHWISE (int)ARRAY_LEN(DEPTHWISE)
#define N_PLAIN     (N_CONVS + N_DEPTHWISE)

static struct conv_geom conv_geom_of(const int64_t *row)
{
    int64_t reach = row[8] * (row[5] - 1) + 1;
    int64_t pad_w = row[7] == 5 ? 4 : row[7]; /* another than pad_h, once */
    return (struct conv_geom){.n = row[0],
                              .c = row[1],
                              .h = row[2],
                              .w = row[3],
                              .k = row[4],
                              .r = row[5],
                              .s = row[5],
                              .p = (row[2] + 2 * row[7] - reach) / row[6] + 1,
                              .q = (row[3] + 2 * pad_w - reach) / row[6] + 1,
                              .stride_h = row[6],
                              .stride_w = row[6],
                              .pad_h = row[7],
                              .pad_w = pad_w,
                              .dil_h = row[8],
                              .dil_w = row[8],
                              .groups = row[9]};
}

static struct shape conv_x(const struct conv_geom *g)
{
    return SHAPE(g->n, g->c, g->h, g->w);
}

static struct shape conv_y(const struct conv_geom *g)
{
    return SHAPE(g->n, g->k, g->p, g->q);
}

static struct shape conv_w(const struct conv_geom *g)
{
    return SHAPE(g->k, g->c / g->groups, g->r, g->s);
}

/* Case idx of a plain convolution: each geometry without bias, then with. */
static const struct conv_geom *conv_begin(struct held_call *call, int idx)
{
    struct conv_geom *g = &call->args.geom.conv;
    call->args.has_bias = idx >= N_PLAIN;
    idx %= N_PLAIN;
    *g = conv_geom_of(idx < N_CONVS ? CONVS[idx] : DEPTHWISE[idx - N_CONVS]);
    held_name(call, "(%d, %d, %d, %d) to %d, window %d stride %d pad %d dilation %d groups %d%s",
              (int)g->n, (int)g->c, (int)g->h, (int)g->w, (int)g->k, (int)g->r, (int)g->stride_h,
              (int)g->pad_h, (int)g->dil_h, (int)g->groups, call->args.has_bias ? " bias" : "");
    return g;
}

static enum role filter_role(const struct conv_geom *g)
{
    return g->groups > 1 ? ROLE_FILTER_DEPTHWISE : ROLE_FILTER;
}

static void conv_fwd(struct held_call *call, int idx)
{
    const struct conv_geom *g = conv_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    held_in(call, 1, HELD_ELEM, filter_role(g), conv_w(g));
    if (call->args.has_bias) {
        held_in(call, 2, HELD_ELEM, ROLE_CHANNEL, SHAPE(g->k));
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, conv_y(g));
}

static void conv_bwd_data(struct held_call *call, int idx)
{
    const struct conv_geom *g = conv_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, conv_y(g));
    held_in(call, 1, HELD_ELEM, filter_role(g), conv_w(g));
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, conv_x(g), 0);
}

static void conv_bwd_weight(struct held_call *call, int idx)
{
    const struct conv_geom *g = conv_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, conv_y(g));
    held_in(call, 1, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    held_grad(call, 0, HELD_ELEM, filter_role(g), conv_w(g), 0);
    if (call->args.has_bias) {
        held_grad(call, 1, HELD_ELEM, ROLE_CHANNEL, SHAPE(g->k), 0);
    }
}

/* --- batch norm ---------------------------------------------------------------------------------- */
/* Odd channels, one row a channel, more channels than a tile holds, more rows than a block, one pixel an image. */
static const int64_t IMAGES[][4] = {
    {2, 18, 5, 7}, {3, 5, 1, 1}, {2, 300, 2, 3}, {2, 24, 23, 31}, {9, 270, 1, 1}, {1, 3, 3, 5},
};
#define N_IMAGES (int)ARRAY_LEN(IMAGES)

static struct shape bn_begin(struct held_call *call, int idx, bool has_relu, const char *what)
{
    const int64_t *row = IMAGES[idx];
    call->args.geom.bn = (struct bn_geom){.n = row[0],
                                          .c = row[1],
                                          .plane = row[2] * row[3],
                                          .eps = 1e-5,
                                          .momentum = 0.1,
                                          .has_relu = has_relu,
                                          .is_running_biased = idx % 2 == 1,
                                          .n_ranks = 1};
    held_name(call, "(%d, %d, %d, %d)%s%s", (int)row[0], (int)row[1], (int)row[2], (int)row[3],
              has_relu ? " relu" : "", what);
    return SHAPE(row[0], row[1], row[2], row[3]);
}

static struct held_tensor *channels_in(struct held_call *call, int idx, struct shape shape)
{
    return held_in(call, idx, HELD_FLOAT, ROLE_CHANNEL, SHAPE(shape.dim[1]));
}

static struct held_tensor *stat_in(struct held_call *call, int idx, struct shape shape)
{
    return held_in(call, idx, HELD_STAT, ROLE_CHANNEL, SHAPE(shape.dim[1]));
}

static void stat_out(struct held_call *call, int idx, struct shape shape)
{
    held_out(call, idx, HELD_STAT, ROLE_CHANNEL, SHAPE(shape.dim[1]));
}

static struct held_tensor *channels_out(struct held_call *call, int idx, struct shape shape)
{
    return held_out(call, idx, HELD_FLOAT, ROLE_CHANNEL, SHAPE(shape.dim[1]));
}

/* mean and rstd as inputs first and first + 1 */
static void statistics_in(struct held_call *call, int first, struct shape shape)
{
    held_normal(call, stat_in(call, first, shape), 0.2, 0.3);
    held_above(stat_in(call, first + 1, shape), 0.5);
}

static void running_out(struct held_call *call, int first, struct shape shape)
{
    channels_out(call, first, shape)->is_kept = true;
    struct held_tensor *var = channels_out(call, first + 1, shape);
    held_above(var, 0.5);
    var->is_kept = true;
}

/* The mean is a thousand times the deviation, and a first pixel far off: a sum of squares would lose the digits. The mean itself is rounded to
   6e-8 * 1000, and so is y, to 6e-5 of its deviation on any device. */
static void far_moments(struct held_call *call)
{
    struct shape shape = SHAPE(4, 8, 16, 16);
    call->args.geom.bn =
        (struct bn_geom){.n = 4, .c = 8, .plane = 256, .eps = 1e-5, .momentum = 0.1, .n_ranks = 1};
    held_name(call, "far from 0");
    struct held_tensor *x = held_in(call, 0, HELD_ELEM, ROLE_IMAGE, shape);
    held_normal(call, x, 1000.0, 1.0);
    for (int64_t c = 0; c < 8; c++) {
        x->values[c * 256] = 1030.0;
    }
    channels_in(call, 1, shape);
    channels_in(call, 2, shape);
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, shape)->tolerance = 1e-4;
    stat_out(call, 1, shape);
    stat_out(call, 2, shape);
    running_out(call, 3, shape);
}

/* In the last case of K_BN_FWD the mean is far from 0. */
static void bn_fwd(struct held_call *call, int idx)
{
    bool has_add = call->args.id == K_BN_ADD_FWD;
    if (idx == 2 * N_IMAGES) {
        far_moments(call);
        return;
    }
    struct shape shape = bn_begin(call, idx / 2, idx % 2 == 1, "");
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_IMAGE, shape), 0.7, 2.0);
    channels_in(call, 1, shape);
    channels_in(call, 2, shape);
    if (has_add) {
        held_in(call, 3, HELD_ELEM, ROLE_IMAGE, shape);
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, shape)->may_lie_in = has_add && idx % 4 < 2 ? 4 : 1;
    stat_out(call, 1, shape);
    stat_out(call, 2, shape);
    running_out(call, 3, shape);
}

/* Without ReLU, with its result, with the mask recomputed from x. In the last case nobody wants dx. */
static void bn_bwd(struct held_call *call, int idx)
{
    bool has_add = call->args.id == K_BN_ADD_BWD;
    int n_kinds = has_add ? 2 : 3;
    int kind = idx % n_kinds;
    bool has_dx = idx < n_kinds * N_IMAGES;
    struct shape shape = bn_begin(call, has_dx ? idx / n_kinds : 0, kind > 0,
                                  !has_dx     ? ", no dx"
                                  : kind == 2 ? ", mask from x"
                                              : "");
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_IMAGE, shape), 0.3, 1.0);
    held_normal(call, held_in(call, 1, HELD_ELEM, ROLE_IMAGE, shape), 0.2, 1.0);
    channels_in(call, 2, shape);
    statistics_in(call, 3, shape);
    if (kind == 1) {
        held_relu(held_in(call, 5, HELD_ELEM, ROLE_IMAGE, shape));
    }
    if (kind == 2) {
        channels_in(call, 6, shape);
    }
    if (has_dx) {
        held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, shape, 1);
    }
    held_grad(call, 1, HELD_FLOAT, ROLE_CHANNEL, SHAPE(shape.dim[1]), 0);
    held_grad(call, 2, HELD_FLOAT, ROLE_CHANNEL, SHAPE(shape.dim[1]), 0);
    if (has_add && idx % 4 < 3) { /* da may be absent */
        held_grad(call, 3, HELD_ELEM, ROLE_IMAGE, shape, 0);
    }
}

/* sum and squares of count values whose deviation is about 1 and whose mean is about 0.3 or, if far, from 70 to 130: the variance is then
   a small difference of large numbers */
static void sums_in(struct held_call *call, struct shape shape, double count, bool is_far)
{
    struct held_tensor *sum = stat_in(call, 0, shape);
    struct held_tensor *squares = stat_in(call, 1, shape);
    for (int64_t c = 0; c < sum->count; c++) {
        double mean = (is_far ? 100.0 : 0.0) + (is_far ? 10.0 : 0.3) * sum->values[c];
        sum->values[c] = mean * count;
        squares->values[c] = (mean * mean + 0.5 + fabs(squares->values[c])) * count;
    }
}

/* With scale and shift, and without; the last two of channels far from 0. */
static void bn_finalize(struct held_call *call, int idx)
{
    bool is_far = idx >= 2 * N_IMAGES;
    struct shape shape = bn_begin(call, is_far ? 3 : idx / 2, false,
                                  is_far    ? " far from 0"
                                  : idx % 2 ? " no scale"
                                            : "");
    sums_in(call, shape, (double)(shape.dim[0] * shape.dim[2] * shape.dim[3]), is_far);
    channels_in(call, 2, shape);
    channels_in(call, 3, shape);
    stat_out(call, 0, shape);
    stat_out(call, 1, shape);
    if (idx % 2 == 0) {
        held_out(call, 2, HELD_ELEM, ROLE_CHANNEL, SHAPE(shape.dim[1]));
        held_out(call, 3, HELD_ELEM, ROLE_CHANNEL, SHAPE(shape.dim[1]));
    }
    running_out(call, 4, shape);
}

/* Alone, with a, with a that is normalised as well. */
static void bn_apply(struct held_call *call, int idx)
{
    int kind = idx % 3;
    struct shape shape = bn_begin(call, idx / 3, idx / 3 % 2 == 0,
                                  kind == 0   ? ""
                                  : kind == 1 ? " + a"
                                              : " + normalised a");
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, shape);
    channels_in(call, 1, shape);
    channels_in(call, 2, shape);
    statistics_in(call, 3, shape);
    if (kind > 0) {
        held_in(call, 5, HELD_ELEM, ROLE_IMAGE, shape);
    }
    if (kind == 2) {
        channels_in(call, 6, shape);
        channels_in(call, 7, shape);
        statistics_in(call, 8, shape);
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, shape)->may_lie_in = kind == 1 ? 6 : 1;
}

static void bn_bwd_apply(struct held_call *call, int idx)
{
    struct shape shape = bn_begin(call, idx, false, "");
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, shape);
    held_in(call, 1, HELD_ELEM, ROLE_IMAGE, shape);
    channels_in(call, 2, shape);
    statistics_in(call, 3, shape);
    stat_in(call, 5, shape);
    stat_in(call, 6, shape);
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, shape, 1);
    call->can_add &= ~1U; /* dx is overwritten */
    held_grad(call, 1, HELD_FLOAT, ROLE_CHANNEL, SHAPE(shape.dim[1]), 0);
    held_grad(call, 2, HELD_FLOAT, ROLE_CHANNEL, SHAPE(shape.dim[1]), 0);
}

/* --- convolution fused with batch norm -------------------------------------------------------------- */
static const struct conv_geom *fused_begin(struct held_call *call, int idx, const char *what)
{
    struct conv_geom *g = &call->args.geom.conv;
    *g = conv_geom_of(CONVS[idx]);
    call->is_optional = true;
    held_name(call, "(%d, %d, %d, %d) to %d, window %d stride %d dilation %d%s", (int)g->n,
              (int)g->c, (int)g->h, (int)g->w, (int)g->k, (int)g->r, (int)g->stride_h,
              (int)g->dil_h, what);
    return g;
}

static void conv_stats_fwd(struct held_call *call, int idx)
{
    const struct conv_geom *g = fused_begin(call, idx / 2, idx % 2 ? " normalised first" : "");
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_IMAGE, conv_x(g)), 0.3, 1.0);
    held_in(call, 1, HELD_ELEM, ROLE_FILTER, conv_w(g));
    if (idx % 2 == 1) {
        held_in(call, 2, HELD_ELEM, ROLE_CHANNEL, SHAPE(g->c));
        held_in(call, 3, HELD_ELEM, ROLE_CHANNEL, SHAPE(g->c));
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, conv_y(g));
    held_out(call, 1, HELD_STAT, ROLE_CHANNEL, SHAPE(g->k));
    held_out(call, 2, HELD_STAT, ROLE_CHANNEL, SHAPE(g->k));
}

/* Alone, with da, with a, with both. */
static void conv_bwd_data_bn(struct held_call *call, int idx)
{
    int kind = idx % 4;
    static const char *const kinds[] = {"", " + da", " + a", " + da + a"};
    const struct conv_geom *g = fused_begin(call, idx / 4, kinds[kind]);
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, conv_y(g));
    held_in(call, 1, HELD_ELEM, ROLE_FILTER, conv_w(g));
    held_in(call, 2, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    channels_in(call, 3, conv_x(g));
    channels_in(call, 4, conv_x(g));
    statistics_in(call, 5, conv_x(g));
    if (kind % 2 == 1) {
        held_in(call, 7, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    }
    if (kind >= 2) {
        held_in(call, 8, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    stat_out(call, 1, conv_x(g));
    stat_out(call, 2, conv_x(g));
}

static void norm_conv_bwd_weight(struct held_call *call, int idx)
{
    const struct conv_geom *g = fused_begin(call, idx, "");
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, conv_y(g));
    held_in(call, 1, HELD_ELEM, ROLE_IMAGE, conv_x(g));
    held_in(call, 2, HELD_ELEM, ROLE_CHANNEL, SHAPE(g->c));
    held_in(call, 3, HELD_ELEM, ROLE_CHANNEL, SHAPE(g->c));
    held_grad(call, 0, HELD_ELEM, ROLE_FILTER, conv_w(g), 0);
}

const struct held_cases cases_image[K_COUNT] = {
    [K_CONV_FWD] = {conv_fwd, 2 * N_PLAIN},
    [K_CONV_BWD_DATA] = {conv_bwd_data, N_PLAIN},
    [K_CONV_BWD_WEIGHT] = {conv_bwd_weight, 2 * N_PLAIN},
    [K_BN_FWD] = {bn_fwd, 2 * N_IMAGES + 1},
    [K_BN_BWD] = {bn_bwd, 3 * N_IMAGES + 1},
    [K_BN_ADD_FWD] = {bn_fwd, 2 * N_IMAGES},
    [K_BN_ADD_BWD] = {bn_bwd, 2 * N_IMAGES + 1},
    [K_BN_FINALIZE] = {bn_finalize, 2 * N_IMAGES + 2},
    [K_BN_APPLY] = {bn_apply, 3 * N_IMAGES},
    [K_BN_BWD_APPLY] = {bn_bwd_apply, N_IMAGES},
    [K_CONV_STATS_FWD] = {conv_stats_fwd, 2 * N_CONVS},
    [K_CONV_BWD_DATA_BN] = {conv_bwd_data_bn, 4 * N_CONVS},
    [K_NORM_CONV_BWD_WEIGHT] = {norm_conv_bwd_weight, N_CONVS},
};
