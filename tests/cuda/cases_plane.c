/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of element-wise operations, windows and resizing, and of the losses of images. */
#include "tests/cuda/cases.h"

/* n, c, h, w; c = 0: no image, n rows of h. */
static const int64_t ELEMS[][4] = {
    {2, 5, 3, 3},  {1, 3, 1, 1},   {2, 18, 7, 5}, {1, 130, 9, 7},
    {7, 0, 11, 1}, {3, 0, 512, 1}, {1, 0, 1, 1},  {1, 3, 33, 31},
};
#define N_ELEMS (int)ARRAY_LEN(ELEMS)

/* --- element by element --------------------------------------------------------------------------- */
struct elems {
    struct shape shape;
    enum role role;
};

static struct elems elem_begin(struct held_call *call, int idx, bool has_relu)
{
    const int64_t *row = ELEMS[idx];
    bool is_image = row[1] > 0;
    struct elems of = {is_image ? SHAPE(row[0], row[1], row[2], row[3]) : SHAPE(row[0], row[2]),
                       is_image ? ROLE_IMAGE : ROLE_PLAIN};
    call->args.geom.elem = (struct elem_geom){.count = shape_count(&of.shape),
                                              .c = row[1],
                                              .plane = is_image ? row[2] * row[3] : 0,
                                              .has_relu = has_relu};
    held_name(call, "(%d, %d, %d, %d)%s", (int)row[0], (int)row[1], (int)row[2], (int)row[3],
              has_relu ? " relu" : "");
    return of;
}

static void relu_fwd(struct held_call *call, int idx)
{
    struct elems of = elem_begin(call, idx, true);
    held_in(call, 0, HELD_ELEM, of.role, of.shape);
    held_out(call, 0, HELD_ELEM, of.role, of.shape)->may_lie_in = 1;
}

static void add_fwd(struct held_call *call, int idx)
{
    struct elems of = elem_begin(call, idx / 2, idx % 2 == 1);
    held_in(call, 0, HELD_ELEM, of.role, of.shape);
    held_in(call, 1, HELD_ELEM, of.role, of.shape);
    held_out(call, 0, HELD_ELEM, of.role, of.shape)->may_lie_in = 1 + idx / 2 % 2;
}

/* Of a ReLU, and of a sum without and with one. */
static void elem_bwd(struct held_call *call, int idx)
{
    bool is_sum = call->args.id == K_ADD_BWD;
    bool has_relu = !is_sum || idx % 2 == 1;
    struct elems of = elem_begin(call, is_sum ? idx / 2 : idx, has_relu);
    held_in(call, 0, HELD_ELEM, of.role, of.shape);
    if (has_relu) {
        held_relu(held_in(call, 1, HELD_ELEM, of.role, of.shape));
    }
    held_grad(call, 0, HELD_ELEM, of.role, of.shape, 1);
}

/* Element by element, then whole planes of a channel, or three elements at once where there are no planes; a first element that is not 0. */
static void dropout(struct held_call *call, int idx)
{
    bool is_plane = idx >= N_ELEMS;
    const int64_t *row = ELEMS[is_plane ? idx - N_ELEMS : idx];
    struct elems of = elem_begin(call, is_plane ? idx - N_ELEMS : idx, false);
    int64_t count = shape_count(&of.shape);
    call->args.geom =
        (union geom){.dropout = {.count = count,
                                 .c = row[1],
                                 .plane = row[1] > 0 ? row[2] * row[3] : 0,
                                 .run = !is_plane    ? 1
                                        : row[1] > 0 ? row[2] * row[3]
                                                     : 3,
                                 .first = idx % 2 == 1 ? 3 * count : 0,
                                 .rate = is_plane ? 0.5 : 0.1,
                                 .stream = UINT64_C(0x1234567890abcdef) + (uint64_t)idx}};
    held_in(call, 0, HELD_ELEM, of.role, of.shape);
    held_in(call, 1, HELD_I64, ROLE_PLAIN, SHAPE_SCALAR)->values[0] = 41.0 + idx;
    if (call->args.id == K_DROPOUT_FWD) {
        held_out(call, 0, HELD_ELEM, of.role, of.shape)->may_lie_in = 1;
    } else {
        held_grad(call, 0, HELD_ELEM, of.role, of.shape, 1);
    }
}

/* --- concatenation -------------------------------------------------------------------------------- */
static const int64_t PARTS[][CONCAT_IN_MAX] = {
    {5, 3, 8, 0, 0}, {7, 0, 0, 0, 0}, {18, 36, 72, 144, 0}, {1, 2, 3, 4, 5}, {64, 24, 0, 0, 0},
};
#define N_PARTS (int)ARRAY_LEN(PARTS)

static struct concat_geom concat_begin(struct held_call *call, int idx)
{
    struct concat_geom g = {.n = 2, .plane = idx % 2 == 0 ? 15 : 1};
    for (int i = 0; i < CONCAT_IN_MAX; i++) {
        g.parts[i] = PARTS[idx][i];
        g.c += g.parts[i];
    }
    held_name(call, "%d parts, %d channels", (int)(g.parts[1] ? 2 : 1), (int)g.c);
    return g;
}

static struct shape plane_shape(const struct concat_geom *g, int64_t channels)
{
    return SHAPE(g->n, channels, g->plane, 1);
}

static void concat_fwd(struct held_call *call, int idx)
{
    struct concat_geom g = concat_begin(call, idx);
    call->args.geom.concat = g;
    for (int i = 0; i < CONCAT_IN_MAX && g.parts[i] > 0; i++) {
        held_in(call, i, HELD_ELEM, ROLE_IMAGE, plane_shape(&g, g.parts[i]));
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, plane_shape(&g, g.c));
}

static void concat_bwd(struct held_call *call, int idx)
{
    int part = idx % CONCAT_IN_MAX;
    struct concat_geom g = concat_begin(call, idx / CONCAT_IN_MAX);
    g.part = g.parts[part] > 0 ? part : 0;
    call->args.geom.concat = g;
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, plane_shape(&g, g.c));
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, plane_shape(&g, g.parts[g.part]), 0);
}

/* --- pools ---------------------------------------------------------------------------------------- */
/* n, c, h, w, window, stride, pad */
static const int64_t MAXPOOLS[][7] = {
    {2, 5, 9, 7, 3, 2, 1},  {1, 3, 1, 1, 3, 2, 1}, {1, 18, 8, 8, 2, 2, 0},
    {2, 65, 5, 6, 3, 1, 1}, {2, 5, 7, 6, 2, 2, 0}, {1, 9, 4, 9, 4, 3, 2},
};
#define N_MAXPOOLS (int)ARRAY_LEN(MAXPOOLS)

static struct pool_geom maxpool_begin(struct held_call *call, int idx, const char *what)
{
    const int64_t *row = MAXPOOLS[idx];
    struct pool_geom g = {.n = row[0],
                          .c = row[1],
                          .h = row[2],
                          .w = row[3],
                          .p = (row[2] + 2 * row[6] - row[4]) / row[5] + 1,
                          .q = (row[3] + 2 * row[6] - row[4]) / row[5] + 1,
                          .window = row[4],
                          .stride = row[5],
                          .pad = row[6]};
    call->args.geom.pool = g;
    held_name(call, "(%d, %d, %d, %d) window %d stride %d%s", (int)g.n, (int)g.c, (int)g.h,
              (int)g.w, (int)g.window, (int)g.stride, what);
    return g;
}

/* Different values in every window, then many that are equal (the first counts); in the last case a NaN, which is larger than all. */
static void maxpool_fwd(struct held_call *call, int idx)
{
    bool has_nan = idx == 2 * N_MAXPOOLS;
    struct pool_geom g = maxpool_begin(call, has_nan ? 0 : idx / 2,
                                       has_nan        ? ", NaN"
                                       : idx % 2 == 1 ? ", equal values"
                                                      : "");
    struct held_tensor *x = held_in(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = i / g.w % g.h * 13 + i % g.w * 7 + i / (g.w * g.h) * 5;
        x->values[i] = idx % 2 == 0 ? (double)(at * 37 % 2039 - 1000) / 64.0 : (double)(at % 2);
    }
    if (has_nan) {
        x->values[g.w + 3] = (double)NAN;
    }
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.p, g.q));
    held_out(call, 1, HELD_I32, ROLE_IMAGE, SHAPE(g.n, g.c, g.p, g.q));
}

/* A pixel of each window, drawn. */
static void maxpool_bwd(struct held_call *call, int idx)
{
    struct pool_geom g = maxpool_begin(call, idx, "");
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.p, g.q));
    struct held_tensor *at = held_in(call, 1, HELD_I32, ROLE_IMAGE, SHAPE(g.n, g.c, g.p, g.q));
    for (int64_t i = 0; i < at->count; i++) {
        int64_t h = -1;
        int64_t w = -1;
        while (h < 0 || h >= g.h || w < 0 || w >= g.w) {
            h = i / g.q % g.p * g.stride - g.pad +
                (int64_t)(rng_f64(&call->rng) * (double)g.window);
            w = i % g.q * g.stride - g.pad + (int64_t)(rng_f64(&call->rng) * (double)g.window);
        }
        at->values[i] = (double)(h * g.w + w);
    }
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w), 0);
}

/* n, c, h, w, window: the whole image flat or not, windows that the border cuts */
static const int64_t AVGPOOLS[][5] = {
    {2, 5, 7, 7, 7}, {3, 130, 4, 4, 4}, {1, 3, 1, 1, 1},   {2, 18, 7, 5, 2},
    {1, 4, 9, 9, 4}, {2, 18, 7, 9, 9},  {2, 300, 7, 7, 7},
};
#define N_AVGPOOLS (int)ARRAY_LEN(AVGPOOLS)

static struct pool_geom avgpool_begin(struct held_call *call, int idx)
{
    const int64_t *row = AVGPOOLS[idx / 2];
    bool is_whole = row[4] >= row[2] && row[4] >= row[3];
    struct pool_geom g = {.n = row[0],
                          .c = row[1],
                          .h = row[2],
                          .w = row[3],
                          .p = (row[2] + row[4] - 1) / row[4],
                          .q = (row[3] + row[4] - 1) / row[4],
                          .window = row[4],
                          .stride = row[4],
                          .is_flat = is_whole && idx % 2 == 1};
    call->args.geom.pool = g;
    held_name(call, "(%d, %d, %d, %d) window %d%s", (int)g.n, (int)g.c, (int)g.h, (int)g.w,
              (int)g.window, g.is_flat ? " flat" : "");
    return g;
}

static struct shape avgpool_y(const struct pool_geom *g)
{
    return g->is_flat ? SHAPE(g->n, g->c) : SHAPE(g->n, g->c, g->p, g->q);
}

static void avgpool_fwd(struct held_call *call, int idx)
{
    struct pool_geom g = avgpool_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w));
    held_out(call, 0, HELD_ELEM, g.is_flat ? ROLE_PLAIN : ROLE_IMAGE, avgpool_y(&g));
}

static void avgpool_bwd(struct held_call *call, int idx)
{
    struct pool_geom g = avgpool_begin(call, idx);
    held_in(call, 0, HELD_ELEM, g.is_flat ? ROLE_PLAIN : ROLE_IMAGE, avgpool_y(&g));
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w), 0);
}

/* --- resizing ------------------------------------------------------------------------------------- */
/* n, c, h, w, p, q: up, up by a whole factor, one pixel or row, the same size, down; of the loss two tiles each way, more columns than a block
   makes at once, more classes than a chunk */
static const int64_t RESIZES[][6] = {
    {2, 5, 4, 3, 8, 6},    {1, 3, 5, 7, 13, 9}, {1, 19, 4, 5, 32, 40},   {1, 4, 1, 1, 5, 6},
    {2, 18, 3, 3, 3, 3},   {1, 6, 1, 5, 1, 17}, {1, 19, 9, 33, 36, 132}, {1, 3, 2, 2, 32, 300},
    {1, 35, 3, 4, 11, 13}, {1, 3, 9, 8, 4, 1},  {1, 7, 9, 11, 4, 5},
};
#define N_RESIZES (int)ARRAY_LEN(RESIZES)

static struct resize_geom resize_of(int idx)
{
    const int64_t *row = RESIZES[idx / 2];
    return (struct resize_geom){.n = row[0],
                                .c = row[1],
                                .h = row[2],
                                .w = row[3],
                                .p = row[4],
                                .q = row[5],
                                .is_aligned = idx % 2 == 1};
}

static void resize_name(struct held_call *call, const struct resize_geom *g, const char *what)
{
    held_name(call, "(%d, %d, %d, %d) to %dx%d%s%s", (int)g->n, (int)g->c, (int)g->h, (int)g->w,
              (int)g->p, (int)g->q, g->is_aligned ? " aligned" : "", what);
}

static void upsample_fwd(struct held_call *call, int idx)
{
    struct resize_geom g = resize_of(idx);
    call->args.geom.resize = g;
    resize_name(call, &g, "");
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w));
    held_out(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.p, g.q));
}

static void upsample_bwd(struct held_call *call, int idx)
{
    struct resize_geom g = resize_of(idx);
    call->args.geom.resize = g;
    resize_name(call, &g, "");
    held_in(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.p, g.q));
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w), 0);
}

/* --- losses --------------------------------------------------------------------------------------- */
/* n, c, h, w; h 0: rows and no image. One label in four is ignored; in the last case all are. */
static const int64_t LOSSES[][4] = {
    {2, 19, 5, 7},  {4, 1000, 0, 0}, {3, 10, 0, 0}, {1, 5, 1, 1},
    {1, 21, 33, 9}, {2, 64, 3, 5},   {2, 70, 3, 5}, {2, 19, 3, 3},
};
#define N_LOSSES   (int)ARRAY_LEN(LOSSES)
#define IGNORE     255
#define LOSS_KINDS 2

static struct held_tensor *labels_in(struct held_call *call, const struct loss_geom *g, int idx,
                                     int n_cases, struct shape shape)
{
    struct held_tensor *labels = held_in(call, 1, HELD_I64, ROLE_PLAIN, shape);
    bool has_ignored = g->ignore_label != LOSS_IGNORE_NONE;
    held_integers(call, labels, g->c, has_ignored ? (idx >= n_cases - LOSS_KINDS ? 1 : 4) : 0,
                  IGNORE);
    return labels;
}

static struct shape loss_begin(struct held_call *call, int idx)
{
    const int64_t *row = LOSSES[idx / LOSS_KINDS];
    bool is_image = row[2] > 0;
    bool is_smooth = idx % LOSS_KINDS == 1;
    call->args.geom.loss =
        (struct loss_geom){.n = row[0],
                           .c = row[1],
                           .plane = is_image ? row[2] * row[3] : 1,
                           .smoothing = is_smooth ? 0.1 : 0.0,
                           .ignore_label = is_image || is_smooth ? IGNORE : LOSS_IGNORE_NONE,
                           .weight = is_smooth ? 0.4 : 1.0,
                           .n_ranks = 1,
                           .is_image = is_image};
    held_name(call, "(%d, %d, %d, %d)%s%s", (int)row[0], (int)row[1], (int)row[2], (int)row[3],
              is_smooth ? " smoothed" : "",
              idx / LOSS_KINDS == N_LOSSES - 1 ? ", all ignored" : "");
    return is_image ? SHAPE(row[0], row[1], row[2], row[3]) : SHAPE(row[0], row[1]);
}

static struct shape labels_of(struct shape logits)
{
    return logits.n_dims == 4 ? SHAPE(logits.dim[0], logits.dim[2], logits.dim[3])
                              : SHAPE(logits.dim[0]);
}

static enum role logits_role(const struct held_call *call)
{
    return call->args.geom.loss.is_image ? ROLE_IMAGE : ROLE_PLAIN;
}

static void loss_fwd(struct held_call *call, int idx)
{
    struct shape shape = loss_begin(call, idx);
    held_normal(call, held_in(call, 0, HELD_ELEM, logits_role(call), shape), 1.0, 3.0);
    labels_in(call, &call->args.geom.loss, idx, LOSS_KINDS * N_LOSSES, labels_of(shape));
    held_grad(call, 0, HELD_FLOAT, ROLE_PLAIN, SHAPE_SCALAR, 0);
    held_out(call, 1, HELD_ELEM, logits_role(call), shape)->may_lie_in = 1;
}

/* Shares of each pixel's classes, which sum to 1. */
static void shares(struct held_tensor *prob, const struct loss_geom *g)
{
    held_above(prob, 0.01);
    for (int64_t at = 0; at < g->n * g->plane; at++) {
        double *first = prob->values + at / g->plane * g->c * g->plane + at % g->plane;
        double sum = 0.0;
        for (int64_t c = 0; c < g->c; c++) {
            sum += first[c * g->plane];
        }
        for (int64_t c = 0; c < g->c; c++) {
            first[c * g->plane] /= sum;
        }
    }
}

static void loss_bwd(struct held_call *call, int idx)
{
    struct shape shape = loss_begin(call, idx);
    shares(held_in(call, 0, HELD_ELEM, logits_role(call), shape), &call->args.geom.loss);
    labels_in(call, &call->args.geom.loss, idx, LOSS_KINDS * N_LOSSES, labels_of(shape));
    held_grad(call, 0, HELD_ELEM, logits_role(call), shape, 1);
    call->is_scaled = 1;
}

static struct shape upsample_loss_begin(struct held_call *call, int idx)
{
    struct resize_geom g = resize_of(idx);
    bool is_smooth = idx % 3 == 0;
    call->args.geom.upsample_loss =
        (struct upsample_loss_geom){.resize = g,
                                    .loss = {.n = g.n,
                                             .c = g.c,
                                             .plane = g.p * g.q,
                                             .smoothing = is_smooth ? 0.1 : 0.0,
                                             .ignore_label = IGNORE,
                                             .weight = is_smooth ? 0.4 : 1.0,
                                             .n_ranks = 1,
                                             .is_image = true}};
    resize_name(call, &g, is_smooth ? " smoothed" : "");
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g.n, g.c, g.h, g.w)), 1.0, 3.0);
    labels_in(call, &call->args.geom.upsample_loss.loss, idx, 2 * N_RESIZES, SHAPE(g.n, g.p, g.q));
    return SHAPE(g.n, g.p, g.q);
}

static void upsample_loss_fwd(struct held_call *call, int idx)
{
    struct shape pixels = upsample_loss_begin(call, idx);
    held_grad(call, 0, HELD_FLOAT, ROLE_PLAIN, SHAPE_SCALAR, 0);
    held_out(call, 1, HELD_STAT, ROLE_PLAIN, pixels);
    held_out(call, 2, HELD_STAT, ROLE_PLAIN, SHAPE_SCALAR);
}

static void upsample_loss_bwd(struct held_call *call, int idx)
{
    struct shape pixels = upsample_loss_begin(call, idx);
    const struct resize_geom *g = &call->args.geom.upsample_loss.resize;
    /* A log of a sum of exponentials that fits logits of this size. */
    held_normal(call, held_in(call, 2, HELD_STAT, ROLE_PLAIN, pixels), 6.0 + log((double)g->c),
                0.3);
    double n_labels = 0.0;
    for (int64_t i = 0; i < call->in[1].count; i++) {
        n_labels += call->in[1].values[i] != (double)IGNORE;
    }
    held_in(call, 3, HELD_STAT, ROLE_PLAIN, SHAPE_SCALAR)->values[0] = n_labels;
    held_grad(call, 0, HELD_ELEM, ROLE_IMAGE, SHAPE(g->n, g->c, g->h, g->w), 0);
    call->is_scaled = 1;
}

const struct held_cases cases_plane[K_COUNT] = {
    [K_RELU_FWD] = {relu_fwd, N_ELEMS},
    [K_RELU_BWD] = {elem_bwd, N_ELEMS},
    [K_ADD_FWD] = {add_fwd, 2 * N_ELEMS},
    [K_ADD_BWD] = {elem_bwd, 2 * N_ELEMS},
    [K_MAXPOOL_FWD] = {maxpool_fwd, 2 * N_MAXPOOLS + 1},
    [K_MAXPOOL_BWD] = {maxpool_bwd, N_MAXPOOLS},
    [K_AVGPOOL_FWD] = {avgpool_fwd, 2 * N_AVGPOOLS},
    [K_AVGPOOL_BWD] = {avgpool_bwd, 2 * N_AVGPOOLS},
    [K_DROPOUT_FWD] = {dropout, 2 * N_ELEMS},
    [K_DROPOUT_BWD] = {dropout, 2 * N_ELEMS},
    [K_UPSAMPLE_FWD] = {upsample_fwd, 2 * N_RESIZES},
    [K_UPSAMPLE_BWD] = {upsample_bwd, 2 * N_RESIZES},
    [K_CONCAT_FWD] = {concat_fwd, N_PARTS},
    [K_CONCAT_BWD] = {concat_bwd, N_PARTS *CONCAT_IN_MAX},
    [K_LOSS_FWD] = {loss_fwd, LOSS_KINDS *N_LOSSES},
    [K_LOSS_BWD] = {loss_bwd, LOSS_KINDS *N_LOSSES},
    [K_UPSAMPLE_LOSS_FWD] = {upsample_loss_fwd, 2 * N_RESIZES},
    [K_UPSAMPLE_LOSS_BWD] = {upsample_loss_bwd, 2 * N_RESIZES},
};
