/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the kernels of sequences and of matrices. */
#include "tests/cuda/cases.h"

/* --- matrices: n, c, k, is_rounded ------------------------------------------------------------------ */
static const int64_t LINEARS[][4] = {
    {2, 5, 3, 0},     {1, 1, 1, 0},    {4, 64, 1000, 0}, {7, 33, 18, 0},
    {30, 16, 24, 0},  {3, 512, 2, 0},  {6, 24, 2, 1},    {3, 40, 1003, 1},
    {5, 16, 1000, 1}, {513, 1, 33, 0}, {1030, 2, 8, 0},  {2000, 1, 200, 0},
};
#define N_LINEARS (int)ARRAY_LEN(LINEARS)

static const struct linear_geom *linear_begin(struct held_call *call, int idx, int n_kinds)
{
    const int64_t *row = LINEARS[idx / n_kinds];
    call->args.has_bias = idx % n_kinds == 1;
    call->args.geom.linear = (struct linear_geom){
        .n = row[0], .c = row[1], .k = row[2], .n_parts = 1, .is_rounded = row[3] != 0};
    held_name(call, "%d rows of %d to %d%s%s", (int)row[0], (int)row[1], (int)row[2],
              call->args.has_bias ? " bias" : "", row[3] != 0 ? " rounded up" : "");
    return &call->args.geom.linear;
}

/* y or dy, w or dw, bias or dbias */
enum linear_part { LINEAR_ROWS, LINEAR_MATRIX, LINEAR_BIAS };
static enum role linear_role(const struct linear_geom *g, enum linear_part part)
{
    static const enum role rounded[] = {ROLE_ROWS, ROLE_TABLE, ROLE_CHANNEL};
    return g->is_rounded ? rounded[part] : ROLE_PLAIN;
}

static void linear_fwd(struct held_call *call, int idx)
{
    const struct linear_geom *g = linear_begin(call, idx, 2);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n, g->c));
    held_in(call, 1, HELD_ELEM, linear_role(g, LINEAR_MATRIX), SHAPE(g->k, g->c));
    if (call->args.has_bias) {
        held_in(call, 2, HELD_ELEM, linear_role(g, LINEAR_BIAS), SHAPE(g->k));
    }
    held_out(call, 0, HELD_ELEM, linear_role(g, LINEAR_ROWS), SHAPE(g->n, g->k));
}

static void linear_bwd_data(struct held_call *call, int idx)
{
    const struct linear_geom *g = linear_begin(call, idx, 1);
    held_in(call, 0, HELD_ELEM, linear_role(g, LINEAR_ROWS), SHAPE(g->n, g->k));
    held_in(call, 1, HELD_ELEM, linear_role(g, LINEAR_MATRIX), SHAPE(g->k, g->c));
    held_grad(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n, g->c), 0);
}

static void linear_bwd_weight(struct held_call *call, int idx)
{
    const struct linear_geom *g = linear_begin(call, idx, 2);
    held_in(call, 0, HELD_ELEM, linear_role(g, LINEAR_ROWS), SHAPE(g->n, g->k));
    held_in(call, 1, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n, g->c));
    held_grad(call, 0, HELD_ELEM, linear_role(g, LINEAR_MATRIX), SHAPE(g->k, g->c), 0);
    if (call->args.has_bias) {
        held_grad(call, 1, HELD_ELEM, linear_role(g, LINEAR_BIAS), SHAPE(g->k), 0);
    }
}

/* --- embedding: n, s, d, words ---------------------------------------------------------------------- */
static const int64_t EMBEDS[][4] = {
    {2, 7, 24, 11}, {1, 1, 8, 3}, {3, 128, 40, 50}, {2, 16, 768, 2}, {2, 5, 21, 7},
};
#define N_EMBEDS  (int)ARRAY_LEN(EMBEDS)
#define POSITIONS 130

static const struct embed_geom *embed_begin(struct held_call *call, int idx, int first_id)
{
    const int64_t *row = EMBEDS[idx];
    struct embed_geom *g = &call->args.geom.embed;
    *g = (struct embed_geom){.n = row[0],
                             .s = row[1],
                             .d = row[2],
                             .vocabulary = row[3],
                             .positions = POSITIONS,
                             .segments = 2};
    held_name(call, "%d times %d tokens of %d, %d words", (int)g->n, (int)g->s, (int)g->d,
              (int)g->vocabulary);
    held_integers(call, held_in(call, first_id, HELD_I64, ROLE_PLAIN, SHAPE(g->n, g->s)),
                  g->vocabulary, 0, 0);
    held_integers(call, held_in(call, first_id + 1, HELD_I64, ROLE_PLAIN, SHAPE(g->n, g->s)), 2, 0,
                  0);
    return g;
}

static void embed_fwd(struct held_call *call, int idx)
{
    const struct embed_geom *g = embed_begin(call, idx, 0);
    held_in(call, 2, HELD_ELEM, ROLE_TABLE, SHAPE(g->vocabulary, g->d));
    held_in(call, 3, HELD_ELEM, ROLE_PLAIN, SHAPE(g->positions, g->d));
    held_in(call, 4, HELD_ELEM, ROLE_PLAIN, SHAPE(g->segments, g->d));
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->s, g->d));
}

static void embed_bwd(struct held_call *call, int idx)
{
    const struct embed_geom *g = embed_begin(call, idx, 1);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->s, g->d));
    held_grad(call, 0, HELD_ELEM, ROLE_TABLE, SHAPE(g->vocabulary, g->d), 0);
    held_grad(call, 1, HELD_ELEM, ROLE_PLAIN, SHAPE(g->positions, g->d), 0);
    held_grad(call, 2, HELD_ELEM, ROLE_PLAIN, SHAPE(g->segments, g->d), 0);
}

/* --- layer norm, GELU, tanh: rows, c ------------------------------------------------------------------ */
static const int64_t ROWS[][2] = {
    {3, 24}, {1, 1}, {7, 33}, {5, 768}, {2, 1030}, {130, 8}, {2, 1024},
};
#define N_ROWS (int)ARRAY_LEN(ROWS)

static struct shape rows_begin(struct held_call *call, int idx)
{
    const int64_t *row = ROWS[idx];
    call->args.geom.elem = (struct elem_geom){.count = row[0] * row[1]};
    held_name(call, "(%d, %d)", (int)row[0], (int)row[1]);
    return SHAPE(row[0], row[1]);
}

/* Whole vectors of both types, from one of one lane to all that a warp keeps. */
static const int64_t NORM_ROWS[][2] = {{3, 24},  {130, 8}, {7, 40},  {2, 256}, {2, 384},
                                       {2, 512}, {2, 640}, {5, 768}, {2, 896}, {2, 1024}};
#define N_NORM_ROWS (int)ARRAY_LEN(NORM_ROWS)

static struct shape norm_rows_begin(struct held_call *call, int idx)
{
    const int64_t *row = NORM_ROWS[idx];
    call->args.geom.layer_norm =
        (struct layer_norm_geom){.rows = row[0], .c = row[1], .eps = 1e-12};
    held_name(call, "(%d, %d)", (int)row[0], (int)row[1]);
    return SHAPE(row[0], row[1]);
}

/* The second half's rows have a variance of 1e-10, of which the epsilon is a hundredth. */
static void layer_norm_fwd(struct held_call *call, int idx)
{
    bool is_quiet = idx >= N_NORM_ROWS;
    struct shape shape = norm_rows_begin(call, idx % N_NORM_ROWS);
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_PLAIN, shape), is_quiet ? 0.0 : 0.7,
                is_quiet ? 1e-5 : 2.0);
    held_in(call, 1, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]));
    held_in(call, 2, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]));
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, shape)->may_lie_in = 1;
    held_out(call, 1, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0]));
    held_out(call, 2, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0]));
}

static void layer_norm_bwd(struct held_call *call, int idx)
{
    struct shape shape = norm_rows_begin(call, idx);
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_PLAIN, shape), 0.3, 1.0);
    held_in(call, 1, HELD_ELEM, ROLE_PLAIN, shape);
    held_in(call, 2, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]));
    held_normal(call, held_in(call, 3, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0])), 0.2, 0.3);
    held_above(held_in(call, 4, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0])), 0.5);
    held_grad(call, 0, HELD_ELEM, ROLE_PLAIN, shape, 1);
    held_grad(call, 1, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]), 0);
    held_grad(call, 2, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]), 0);
}

/* Also as a later rank's part of the batch. */
static struct shape drop_add_begin(struct held_call *call, int idx, int step_idx)
{
    struct shape shape = norm_rows_begin(call, idx);
    const struct layer_norm_geom norm = call->args.geom.layer_norm;
    const int64_t count = shape_count(&shape);
    call->args.geom.drop_add_norm = (struct drop_add_norm_geom){
        .norm = norm,
        .dropout = {.count = count, .run = 1, .first = idx % 3 * count, .rate = 0.1, .stream = 5}};
    held_integers(call, held_in(call, step_idx, HELD_I64, ROLE_PLAIN, SHAPE_SCALAR), 17, 0, 0);
    return shape;
}

static void drop_add_norm_fwd(struct held_call *call, int idx)
{
    struct shape shape = drop_add_begin(call, idx, 4);
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_PLAIN, shape), 0.7, 2.0);
    held_in(call, 1, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]));
    held_in(call, 2, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]));
    held_in(call, 3, HELD_ELEM, ROLE_PLAIN, shape);
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, shape);
    held_out(call, 1, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0]));
    held_out(call, 2, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0]));
    held_out(call, 3, HELD_ELEM, ROLE_PLAIN, shape)->may_lie_in = idx % 2 == 0 ? 1 : 4;
}

/* Where a has no gradient, too. */
static void drop_add_norm_bwd(struct held_call *call, int idx)
{
    struct shape shape = drop_add_begin(call, idx, 5);
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_PLAIN, shape), 0.3, 1.0);
    held_in(call, 1, HELD_ELEM, ROLE_PLAIN, shape);
    held_in(call, 2, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]));
    held_normal(call, held_in(call, 3, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0])), 0.2, 0.3);
    held_above(held_in(call, 4, HELD_STAT, ROLE_PLAIN, SHAPE(shape.dim[0])), 0.5);
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, shape)->may_lie_in = 1;
    held_grad(call, 1, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]), 0);
    held_grad(call, 2, HELD_FLOAT, ROLE_PLAIN, SHAPE(shape.dim[1]), 0);
    if (idx % 3 != 2) {
        held_grad(call, 3, HELD_ELEM, ROLE_PLAIN, shape, 0);
    }
}

static void map_fwd(struct held_call *call, int idx)
{
    struct shape shape = rows_begin(call, idx);
    held_normal(call, held_in(call, 0, HELD_ELEM, ROLE_PLAIN, shape), 0.0, 2.0);
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, shape)->may_lie_in = 1;
}

static void map_bwd(struct held_call *call, int idx)
{
    struct shape shape = rows_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, shape);
    held_normal(call, held_in(call, 1, HELD_ELEM, ROLE_PLAIN, shape), 0.0,
                call->args.id == K_TANH_BWD ? 0.4 : 2.0);
    held_grad(call, 0, HELD_ELEM, ROLE_PLAIN, shape, 1);
}

/* --- attention: n, s, heads, d ------------------------------------------------------------------------ */
static const int64_t ATTENTIONS[][4] = {
    {2, 16, 2, 16},  {1, 128, 2, 64}, {2, 37, 3, 24}, {1, 1, 1, 8},
    {1, 100, 1, 64}, {1, 20, 2, 32},  {1, 20, 1, 48},
};
#define N_ATTENTIONS (int)ARRAY_LEN(ATTENTIONS)

/* No mask and no dropout; a mask; both. In the last sequence of a case with a mask no key is visible. */
static const struct attention_geom *attention_begin(struct held_call *call, int idx, int mask_idx,
                                                    int step_idx)
{
    const int64_t *row = ATTENTIONS[idx / 3];
    int kind = idx % 3;
    struct attention_geom *g = &call->args.geom.attention;
    static const char *const kinds[] = {"", " masked", " masked, dropout"};
    *g = (struct attention_geom){.n = row[0], .s = row[1], .heads = row[2], .d = row[3]};
    held_name(call, "%d times %d tokens, %d heads of %d%s", (int)g->n, (int)g->s, (int)g->heads,
              (int)g->d, kinds[kind]);
    struct held_tensor *mask = held_in(call, mask_idx, HELD_I64, ROLE_PLAIN, SHAPE(g->n, g->s));
    for (int64_t i = 0; i < mask->count; i++) {
        bool is_blind = kind > 0 && g->n > 1 && i / g->s == g->n - 1;
        mask->values[i] = kind == 0 || (!is_blind && (i % g->s == 0 || rng_f64(&call->rng) < 0.7));
    }
    if (kind == 2) {
        g->dropout = (struct dropout_geom){.count = g->n * g->heads * g->s * g->s,
                                           .run = 1,
                                           .first = 7 * g->n * g->heads * g->s * g->s,
                                           .rate = 0.1,
                                           .stream = 0xfedcba9876543210ULL};
        held_in(call, step_idx, HELD_I64, ROLE_PLAIN, SHAPE_SCALAR)->values[0] = 17.0;
    }
    return g;
}

static void attention_fwd(struct held_call *call, int idx)
{
    const struct attention_geom *g = attention_begin(call, idx, 1, 2);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->s, 3 * g->heads * g->d));
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->s, g->heads * g->d));
    held_out(call, 1, HELD_STAT, ROLE_PLAIN, SHAPE(g->n, g->heads, g->s));
}

/* The results of the forward call on qkv: context (rounded to `elem` by the runner) and lse. */
static void attention_results(struct held_call *call, const struct attention_geom *g)
{
    const double *qkv = call->in[1].values;
    const double *mask = call->in[2].values;
    int64_t width = g->heads * g->d;
    for (int64_t at = 0; at < g->n * g->heads * g->s; at++) {
        int64_t i = at % g->s;
        int64_t head = at / g->s % g->heads;
        int64_t n = at / g->s / g->heads;
        const double *rows = qkv + n * g->s * 3 * width + head * g->d;
        double *context = call->in[3].values + (n * g->s + i) * width + head * g->d;
        double total = 0.0;
        for (int64_t c = 0; c < g->d; c++) {
            context[c] = 0.0;
        }
        for (int64_t j = 0; j < g->s; j++) {
            double dot = 0.0;
            for (int64_t c = 0; c < g->d; c++) {
                dot += rows[i * 3 * width + c] * rows[j * 3 * width + width + c];
            }
            double part = mask[n * g->s + j] != 0.0 ? exp(dot / sqrt((double)g->d)) : 0.0;
            const struct dropout_draw draw = dropout_draw_of(&g->dropout, 17);
            bool is_kept =
                g->dropout.rate <= 0.0 || dropout_keeps(&draw, g->dropout.first + at * g->s + j);
            total += part;
            for (int64_t c = 0; c < g->d; c++) {
                context[c] += is_kept ? part * rows[j * 3 * width + 2 * width + c] : 0.0;
            }
        }
        for (int64_t c = 0; c < g->d; c++) {
            context[c] *= total > 0.0 ? 1.0 / total / (1.0 - g->dropout.rate) : 0.0;
        }
        call->in[4].values[at] = total > 0.0 ? log(total) : 0.0;
    }
}

static void attention_bwd(struct held_call *call, int idx)
{
    const struct attention_geom *g = attention_begin(call, idx, 2, 5);
    struct shape rows = SHAPE(g->n * g->s, g->heads * g->d);
    struct shape all = SHAPE(g->n * g->s, 3 * g->heads * g->d);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, rows);
    /* Values that half precision represents, so that context and lse fit the device's input. */
    struct held_tensor *qkv = held_in(call, 1, HELD_ELEM, ROLE_PLAIN, all);
    for (int64_t i = 0; i < qkv->count; i++) {
        qkv->values[i] = nearbyint(qkv->values[i] * 64.0) / 64.0;
    }
    held_in(call, 3, HELD_ELEM, ROLE_PLAIN, rows);
    held_in(call, 4, HELD_STAT, ROLE_PLAIN, SHAPE(g->n, g->heads, g->s));
    attention_results(call, g);
    held_grad(call, 0, HELD_ELEM, ROLE_PLAIN, all, 0);
}

/* --- chosen rows, loss of rows -------------------------------------------------------------------------- */
/* n, s, p, c; even cases by places, some of them the same, odd ones the first row. */
static const int64_t GATHERS[][4] = {{2, 7, 3, 24}, {1, 1, 1, 5}, {3, 128, 20, 40}, {4, 5, 9, 768}};
#define N_GATHERS (int)ARRAY_LEN(GATHERS)

static const struct gather_geom *gather_begin(struct held_call *call, int idx)
{
    const int64_t *row = GATHERS[idx / 2];
    bool has_places = idx % 2 == 0;
    struct gather_geom *g = &call->args.geom.gather;
    *g = (struct gather_geom){.n = row[0], .s = row[1], .p = has_places ? row[2] : 1, .c = row[3]};
    held_name(call, "%d of %d rows of %d, %d times%s", (int)g->p, (int)g->s, (int)g->c, (int)g->n,
              has_places ? "" : ", the first");
    if (has_places) {
        held_integers(call, held_in(call, 1, HELD_I64, ROLE_PLAIN, SHAPE(g->n, g->p)), g->s, 3, 0);
    }
    return g;
}

static void gather_fwd(struct held_call *call, int idx)
{
    const struct gather_geom *g = gather_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->s, g->c));
    held_out(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->p, g->c));
}

static void gather_bwd(struct held_call *call, int idx)
{
    const struct gather_geom *g = gather_begin(call, idx);
    held_in(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->p, g->c));
    held_grad(call, 0, HELD_ELEM, ROLE_PLAIN, SHAPE(g->n * g->s, g->c), 0);
}

/* rows, c, ignored: one in so many */
static const int64_t ROW_LOSSES[][3] = {
    {5, 24, 0}, {1, 2, 0}, {40, 1000, 3}, {3, 30522, 2}, {4, 9, 1}};
#define N_ROW_LOSSES (int)ARRAY_LEN(ROW_LOSSES)

/* Each without padding and with rows rounded up, where the padding of the logits is NaN: nothing may read it. */
static void row_loss(struct held_call *call, int idx)
{
    const int64_t *row = ROW_LOSSES[idx / 2];
    bool is_rounded = idx % 2 == 1;
    enum role role = is_rounded ? ROLE_ROWS : ROLE_PLAIN;
    call->args.geom.loss = (struct loss_geom){.n = row[0],
                                              .c = row[1],
                                              .plane = 1,
                                              .smoothing = idx / 2 % 2 == 1 ? 0.1 : 0.0,
                                              .ignore_label = -1,
                                              .weight = idx / 2 % 2 == 0 ? 1.0 : 0.4,
                                              .n_ranks = 1,
                                              .is_rounded = is_rounded};
    held_name(call, "(%d, %d)%s%s", (int)row[0], (int)row[1], row[2] == 1 ? ", all ignored" : "",
              is_rounded ? " rounded up" : "");
    struct held_tensor *logits = held_in(call, 0, HELD_ELEM, role, SHAPE(row[0], row[1]));
    held_normal(call, logits, 1.0, 3.0);
    logits->is_poisoned = is_rounded;
    held_integers(call, held_in(call, 1, HELD_I64, ROLE_PLAIN, SHAPE(row[0])), row[1], (int)row[2],
                  -1);
    held_grad(call, 0, HELD_FLOAT, ROLE_PLAIN, SHAPE_SCALAR, 0);
    held_grad(call, 1, HELD_ELEM, role, SHAPE(row[0], row[1]), 1);
    call->is_scaled = 2;
}

const struct held_cases cases_rows[K_COUNT] = {
    [K_LINEAR_FWD] = {linear_fwd, 2 * N_LINEARS},
    [K_LINEAR_BWD_DATA] = {linear_bwd_data, N_LINEARS},
    [K_LINEAR_BWD_WEIGHT] = {linear_bwd_weight, 2 * N_LINEARS},
    [K_EMBED_FWD] = {embed_fwd, N_EMBEDS},
    [K_EMBED_BWD] = {embed_bwd, N_EMBEDS},
    [K_LAYER_NORM_FWD] = {layer_norm_fwd, 2 * N_NORM_ROWS},
    [K_LAYER_NORM_BWD] = {layer_norm_bwd, N_NORM_ROWS},
    [K_DROP_ADD_NORM_FWD] = {drop_add_norm_fwd, N_NORM_ROWS},
    [K_DROP_ADD_NORM_BWD] = {drop_add_norm_bwd, N_NORM_ROWS},
    [K_GELU_FWD] = {map_fwd, N_ROWS},
    [K_GELU_BWD] = {map_bwd, N_ROWS},
    [K_TANH_FWD] = {map_fwd, N_ROWS},
    [K_TANH_BWD] = {map_bwd, N_ROWS},
    [K_ATTENTION_FWD] = {attention_fwd, 3 * N_ATTENTIONS},
    [K_ATTENTION_BWD] = {attention_bwd, 3 * N_ATTENTIONS},
    [K_GATHER_FWD] = {gather_fwd, 2 * N_GATHERS},
    [K_GATHER_BWD] = {gather_bwd, 2 * N_GATHERS},
    [K_ROW_LOSS] = {row_loss, 2 * N_ROW_LOSSES},
};
