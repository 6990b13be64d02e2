/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "graph/fuse_choose.h"
#include "graph/streams.h"
#include "models/tokens.h"
#include "tests/cuda/tap.h"

/* --- opening ------------------------------------------------------------------------------------- */
#define STREAMS_WINDOW 48 /* calls: several run at once, and memory is still shared */

static int64_t packed_bytes(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

static int rewrite(struct trial *trial, const struct nets_opts *opts, struct err *err)
{
    const struct streams_opts streams = {.n_streams = opts->n_streams,
                                         .n_events = opts->backend->async.n_events,
                                         .window = STREAMS_WINDOW,
                                         .bytes_of = packed_bytes};
    struct fuse_report report = {0};
    if (opts->fuse != NULL && graph_fuse_listed(trial->graph, opts->fuse, &report, err) < 0) {
        return -1;
    }
    for (int i = 0; i < FUSE_PATTERN_COUNT; i++) {
        trial->n_fused += report.n_fused[i];
    }
    return opts->n_streams > 1 ? streams_assign(trial->graph, &streams, NULL, err) : 0;
}

int nets_fusions(const struct nets_opts *opts, struct arena *arena, struct fuse_list *ret_list,
                 struct err *err)
{
    const struct fuse_support support = fuse_support_hopper();
    const struct fuse_asked asked = {.support = &support, .backend = opts->backend};
    struct graph *used_up = graph_new_typed(arena, &opts->types);
    struct fuse_tally tally;
    opts->model->build(used_up, &opts->size);
    return graph_finish(used_up, err) < 0
               ? -1
               : fuse_choose(arena, used_up, &asked, ret_list, &tally, err);
}

static int open_net(struct trial *trial, const struct nets_opts *opts, struct err *err)
{
    trial->graph = graph_new_typed(&trial->arena, &opts->types);
    trial->model->build(trial->graph, &opts->size);
    if (graph_finish(trial->graph, err) < 0 || rewrite(trial, opts, err) < 0 ||
        net_plan(&trial->net, &trial->arena, trial->graph, opts->backend, err) < 0) {
        return -1;
    }
    if (opts->rule != NULL &&
        net_plan_optimizer(&trial->net, &trial->arena, opts->rule, NET_DECAY_ALL, err) < 0) {
        return -1;
    }
    return net_alloc(&trial->net, err);
}

int trial_open(struct trial *trial, const struct nets_opts *opts, struct err *err)
{
    *trial = (struct trial){.model = opts->model};
    if (open_net(trial, opts, err) < 0) {
        trial_release(trial);
        return -1;
    }
    if (opts->loss_scale > 0.0F) {
        const struct tensor_desc desc = {SHAPE_SCALAR, DT_F32, ROLE_PLAIN};
        const struct backend *backend = opts->backend;
        trial->loss_scale = backend->alloc(backend->self, (int64_t)sizeof(float));
        backend->upload(backend->self, &desc, &opts->loss_scale, trial->loss_scale);
        for (int i = 0; i < trial->graph->n_calls; i++) {
            trial->net.calls[i].args.loss_scale = trial->loss_scale;
        }
    }
    return 0;
}

void trial_must_open(struct trial *trial, const struct nets_opts *opts)
{
    struct err err = {0};
    if (trial_open(trial, opts, &err) < 0) {
        tap_bail("%s", err.msg);
    }
}

void trial_release(struct trial *trial)
{
    if (trial->loss_scale != NULL) {
        trial->net.backend->free(trial->net.backend->self, trial->loss_scale);
    }
    if (trial->net.graph != NULL) {
        net_release(&trial->net);
    }
    arena_release(&trial->arena);
    *trial = (struct trial){0};
}

/* --- values -------------------------------------------------------------------------------------- */
static int64_t count_of(const struct trial *trial, int value)
{
    return shape_count(&trial->graph->values[value].shape);
}

static bool is_whole(const struct trial *trial, int value)
{
    enum dtype dtype = trial->graph->values[value].dtype;
    return dtype == DT_I64 || dtype == DT_I32;
}

double *trial_read(const struct trial *trial, int value)
{
    int64_t count = count_of(trial, value);
    double *out = xcalloc((size_t)count, sizeof(*out));
    if (trial->graph->values[value].dtype == DT_F64) {
        net_read(&trial->net, value, out);
        return out;
    }
    CLEANUP(free) float *narrow = xcalloc((size_t)count, sizeof(*narrow));
    net_read(&trial->net, value, narrow);
    for (int64_t i = 0; i < count; i++) {
        out[i] = (double)narrow[i];
    }
    return out;
}

static void write_value(struct trial *trial, int value, const double *from)
{
    int64_t count = count_of(trial, value);
    if (trial->graph->values[value].dtype == DT_F64) {
        net_write(&trial->net, value, from);
        return;
    }
    CLEANUP(free) float *narrow = xcalloc((size_t)count, sizeof(*narrow));
    for (int64_t i = 0; i < count; i++) {
        narrow[i] = (float)from[i];
    }
    net_write(&trial->net, value, narrow);
}

static void fill_value(struct trial *trial, int value, double constant)
{
    int64_t count = count_of(trial, value);
    CLEANUP(free) double *x = xcalloc((size_t)count, sizeof(*x));
    for (int64_t i = 0; i < count; i++) {
        x[i] = constant;
    }
    write_value(trial, value, x);
}

static void draw_whole(struct trial *trial, int value, int64_t n, int64_t ignored, uint64_t seed)
{
    int64_t count = count_of(trial, value);
    CLEANUP(free) int64_t *x = xcalloc((size_t)count, sizeof(*x));
    struct rng rng;
    rng_init(&rng, seed);
    for (int64_t i = 0; i < count; i++) {
        x[i] = (int64_t)rng_below(&rng, (uint64_t)n);
        if (ignored != LOSS_IGNORE_NONE && i % 7 == 3) {
            x[i] = ignored;
        }
    }
    net_write(&trial->net, value, x);
}

static void fill_images(struct trial *trial, uint64_t seed)
{
    int input = graph_find(trial->graph, "input");
    int64_t count = count_of(trial, input);
    CLEANUP(free) double *x = xcalloc((size_t)count, sizeof(*x));
    struct rng rng;
    rng_init(&rng, seed);
    for (int64_t i = 0; i < count; i++) {
        x[i] = rng_normal(&rng);
    }
    write_value(trial, input, x);
    draw_whole(trial, graph_find(trial->graph, "labels"), trial->model->n_classes,
               trial->model->ignore_label, seed + 1);
}

static void fill_tokens(struct trial *trial, uint64_t seed)
{
    const struct graph *graph = trial->graph;
    int ids = graph_find(graph, token_part_name(TOKENS_IDS));
    int64_t sequence = graph->values[ids].shape.dim[1];
    const int64_t below[TOKEN_PARTS] = {
        [TOKENS_IDS] = trial->model->n_classes,
        [TOKENS_SEGMENTS] = 2,
        [TOKENS_MASK] = 1,
        [TOKENS_POSITIONS] = sequence,
        [TOKENS_MASKED] = trial->model->n_classes,
        [TOKENS_NEXT] = 2,
    };
    for (int part = 0; part < TOKEN_PARTS; part++) {
        int value = graph_find(graph, token_part_name((enum token_part)part));
        /* A mask of 0 with a 1 at every seventh place would hide nearly everything; 1 marks a token. */
        draw_whole(trial, value, below[part],
                   part == TOKENS_MASKED ? TOKEN_UNUSED : LOSS_IGNORE_NONE, seed + (uint64_t)part);
        if (part == TOKENS_MASK) {
            int64_t count = count_of(trial, value);
            CLEANUP(free) int64_t *mask = xcalloc((size_t)count, sizeof(*mask));
            for (int64_t i = 0; i < count; i++) {
                mask[i] = i % sequence < sequence - 2;
            }
            net_write(&trial->net, value, mask);
        }
    }
}

void trial_fill(struct trial *trial, uint64_t seed)
{
    net_init_values(&trial->net, seed);
    for (int i = 0; i < trial->graph->n_ops; i++) {
        const struct op *op = &trial->graph->ops[i];
        if (op->kind == OP_BN) {
            fill_value(trial, op->in[1], 0.5);
            fill_value(trial, op->in[2], 1.0);
        }
    }
    int step = graph_find(trial->graph, "step");
    if (step != NO_VALUE) {
        draw_whole(trial, step, 1000, LOSS_IGNORE_NONE, seed);
    }
    if (trial->model->kind == MODEL_IMAGES) {
        fill_images(trial, seed + 10);
    } else {
        fill_tokens(trial, seed + 10);
    }
}

void trial_copy(struct trial *to, const struct trial *from)
{
    for (int i = 0; i < from->graph->n_values; i++) {
        const struct value *value = &from->graph->values[i];
        if (value->name == NULL || value->kind == VALUE_ACT) {
            continue;
        }
        int there = graph_find(to->graph, value->name);
        ASSERT(there != NO_VALUE);
        if (is_whole(from, i)) {
            int64_t *x = xcalloc((size_t)count_of(from, i), sizeof(*x));
            net_read(&from->net, i, x);
            net_write(&to->net, there, x);
            free(x);
        } else {
            double *x = trial_read(from, i);
            write_value(to, there, x);
            free(x);
        }
    }
}

/* --- comparing ----------------------------------------------------------------------------------- */
static double relative(const double *got, const double *want, int64_t count, double scale)
{
    double off = 0.0;
    double norm = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double difference = got[i] / scale - want[i];
        off += difference * difference;
        norm += want[i] * want[i];
    }
    return norm > 0.0 ? sqrt(off / norm) : (off > 0.0 ? (double)INFINITY : 0.0);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The gradient of a parameter, or a running statistic. */
static double *result_of(const struct trial *trial, const char *name)
{
    int value = graph_find(trial->graph, name);
    bool is_param = trial->graph->values[value].kind == VALUE_PARAM;
    return trial_read(trial, is_param ? trial->graph->values[value].grad : value);
}

struct trial_distance trial_compare(const struct trial *got, const struct trial *want,
                                    const struct trial *yardstick,
                                    const struct trial_allowed *allowed)
{
    struct trial_distance all = {0};
    CLEANUP(free) double *list = xcalloc((size_t)got->graph->n_values, sizeof(*list));
    for (int i = 0; i < got->graph->n_values; i++) {
        const struct value *value = &got->graph->values[i];
        if (value->kind != VALUE_PARAM && value->kind != VALUE_STATE) {
            continue;
        }
        int64_t count = count_of(got, i);
        double *mine = result_of(got, value->name);
        double *exact = result_of(want, value->name);
        double *other = result_of(yardstick, value->name);
        double off =
            relative(mine, exact, count, value->kind == VALUE_PARAM ? allowed->grad_scale : 1.0);
        double noise = relative(other, exact, count, 1.0);
        double share = off / (allowed->times * noise + allowed->plus);
        if (!(share <= all.share)) {
            all.share = share;
            all.worst = off;
            all.noise = noise;
            (void)snprintf(all.worst_name, sizeof(all.worst_name), "%s", value->name);
        }
        list[all.n_compared++] = off;
        free(mine);
        free(exact);
        free(other);
    }
    qsort(list, (size_t)all.n_compared, sizeof(*list), ascending);
    all.median = list[all.n_compared / 2];
    double loss = net_loss(&want->net);
    all.loss = fabs(net_loss(&got->net) - loss) / fabs(loss);
    return all;
}

/* --- what a checkpoint holds ------------------------------------------------------------------------ */
static bool same_bytes(const struct trial *a, const struct trial *b, int value)
{
    double *x = trial_read(a, value);
    double *y = trial_read(b, value);
    bool is_same = memcmp(x, y, (size_t)count_of(a, value) * sizeof(*x)) == 0;
    free(x);
    free(y);
    return is_same;
}

const char *trial_step_differs(const struct trial *a, const struct trial *b)
{
    for (int i = 0; i < a->graph->n_values; i++) {
        const struct value *value = &a->graph->values[i];
        bool is_result = value->kind == VALUE_STATE || value->kind == VALUE_PARAM;
        if (is_result && !same_bytes(a, b, value->kind == VALUE_PARAM ? value->grad : i)) {
            return value->name;
        }
    }
    return same_bytes(a, b, a->graph->loss) ? NULL : "the loss";
}

static const enum net_opt_part PARTS[] = {NET_MASTER, NET_MOMENT1, NET_MOMENT2};

/* Large enough for every part of the parameter, whose elements are float or double. */
static void *opt_part(const struct trial *trial, int param, enum net_opt_part part)
{
    void *host = xcalloc((size_t)count_of(trial, param), sizeof(double));
    net_read_opt(&trial->net, param, part, host);
    return host;
}

static bool same_opt(const struct trial *a, const struct trial *b, int param)
{
    bool is_same = true;
    for (size_t i = 0; i < ARRAY_LEN(PARTS) && a->net.has_optimizer; i++) {
        if (net_has_opt(&a->net, param, PARTS[i])) {
            void *x = opt_part(a, param, PARTS[i]);
            void *y = opt_part(b, param, PARTS[i]);
            is_same &= memcmp(x, y, (size_t)count_of(a, param) * sizeof(double)) == 0;
            free(x);
            free(y);
        }
    }
    return is_same;
}

const char *trial_differs(const struct trial *a, const struct trial *b)
{
    for (int i = 0; i < a->graph->n_values; i++) {
        const struct value *value = &a->graph->values[i];
        if (value->kind != VALUE_PARAM && value->kind != VALUE_STATE) {
            continue;
        }
        if (!same_bytes(a, b, i) || (value->kind == VALUE_PARAM && !same_opt(a, b, i))) {
            return value->name;
        }
    }
    if (a->net.has_optimizer) {
        struct opt_state states[2];
        memset(states, 0, sizeof(states)); /* padding between the members is compared, too */
        net_read_opt_state(&a->net, &states[0]);
        net_read_opt_state(&b->net, &states[1]);
        if (memcmp(&states[0], &states[1], sizeof(states[0])) != 0) {
            return "the optimiser's state";
        }
    }
    return NULL;
}

/* --- padding ------------------------------------------------------------------------------------- */
enum tail { TAIL_PARAM, TAIL_GRAD, TAIL_MASTER, TAIL_MOMENT1, TAIL_MOMENT2, TAIL_COUNT };

/* A tensor's address, and how many of its four-byte words are its own; NULL if it has none. */
static void *tail_of(const struct trial *trial, int param, enum tail tail, int64_t *ret_own,
                     int64_t *ret_all)
{
    const struct net *net = &trial->net;
    const struct value *value = &trial->graph->values[param];
    const struct opt_segment *segment = net->update.segments;
    const struct opt_args *args = &net->update;
    void *const bases[TAIL_COUNT] = {net->mem[MEMPLAN_PARAM], net->mem[MEMPLAN_GRAD], args->master,
                                     args->moment1, args->moment2};
    bool is_wide = tail >= TAIL_MASTER;
    if (value->role != ROLE_TABLE && value->role != ROLE_CHANNEL) {
        return NULL;
    }
    while (segment->param != net->plan.places[param].offset_bytes) {
        segment++;
    }
    int64_t size = dtype_bytes(is_wide ? (enum dtype)segment->wide_type : value->dtype);
    *ret_own = shape_count(&value->shape) * size / 4; /* halves come in pairs in these models */
    *ret_all = segment->count * size / 4;
    int64_t at = is_wide ? segment->wide : tail == TAIL_GRAD ? segment->grad : segment->param;
    return bases[tail] && (tail != TAIL_MASTER || segment->has_master) ? (char *)bases[tail] + at
                                                                       : NULL;
}

/* The stored bits. */
static int32_t *tail_words(const struct trial *trial, const void *device, int64_t n)
{
    const struct tensor_desc desc = {SHAPE(n), DT_I32, ROLE_PLAIN};
    int32_t *words = xcalloc((size_t)n, sizeof(*words));
    trial->net.backend->download(trial->net.backend->self, &desc, device, words);
    return words;
}

static bool is_tail_zero(const struct trial *trial, int param, enum tail tail, int *ret_n)
{
    int64_t own;
    int64_t all;
    bool is_zero = true;
    const void *device = tail_of(trial, param, tail, &own, &all);
    if (device && all > own) {
        int32_t *words = tail_words(trial, device, all);
        for (int64_t i = own; i < all; i++) {
            is_zero &= words[i] == 0;
        }
        free(words);
        *ret_n += 1;
    }
    return is_zero;
}

const char *trial_tails(const struct trial *trial, int *ret_n)
{
    *ret_n = 0;
    for (int i = 0; i < trial->graph->n_params; i++) {
        int param = trial->graph->params[i];
        for (enum tail tail = TAIL_PARAM; tail < TAIL_COUNT; tail++) {
            if (!is_tail_zero(trial, param, tail, ret_n)) {
                return trial->graph->values[param].name;
            }
        }
    }
    return NULL;
}

void trial_poison_tails(struct trial *trial)
{
    for (int i = 0; i < trial->graph->n_params; i++) {
        for (enum tail tail = TAIL_PARAM; tail < TAIL_COUNT; tail++) {
            int64_t own;
            int64_t all;
            void *device = tail_of(trial, trial->graph->params[i], tail, &own, &all);
            if (device && all > own && tail != TAIL_GRAD) {
                const struct tensor_desc desc = {SHAPE(all), DT_I32, ROLE_PLAIN};
                int32_t *words = tail_words(trial, device, all);
                memset(words + own, 0xff, (size_t)(all - own) * sizeof(*words));
                trial->net.backend->upload(trial->net.backend->self, &desc, words, device);
                free(words);
            }
        }
    }
}

void trial_restore(struct trial *to, const struct trial *from)
{
    trial_copy(to, from);
    for (int i = 0; i < from->graph->n_params; i++) {
        int param = from->graph->params[i];
        for (size_t k = 0; k < ARRAY_LEN(PARTS) && from->net.has_optimizer; k++) {
            if (net_has_opt(&from->net, param, PARTS[k])) {
                void *host = opt_part(from, param, PARTS[k]);
                net_write_opt(&to->net, param, PARTS[k], host);
                free(host);
            }
        }
    }
    if (from->net.has_optimizer) {
        struct opt_state state = {0};
        net_read_opt_state(&from->net, &state);
        net_write_opt_state(&to->net, &state);
    }
}
