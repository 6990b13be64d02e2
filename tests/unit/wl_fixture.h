/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's tests share: a network on the CPU backend, filled with numbers away from kinks. */
#pragma once

#include "unit.h"

#include <math.h>

#include "backend_cpu/cpu.h"
#include "base/rng.h"
#include "graph/fuse.h"
#include "graph/internal.h"
#include "graph/net.h"
#include "models/model.h"

/* True in make test-all; otherwise false, and the omitted part is named at the end of make test. */
static inline bool in_test_all(const char *what)
{
    const char *tier = getenv("TIER");
    bool is_all = tier && strcmp(tier, "all") == 0;
    if (!is_all) {
        (void)printf("# test-all: %s\n", what);
        (void)fflush(stdout);
    }
    return is_all;
}

/* A graph for a CPU, all of DT_F32 or DT_F64; a parameter that is not an operation's own. */
static inline struct graph *graph_new(struct arena *arena, enum dtype dtype)
{
    return graph_new_typed(arena,
                           &(struct graph_types){.dtype = dtype, .norm = dtype, .stat = DT_F64});
}

static inline int graph_param(struct graph *graph, const char *name, struct shape shape,
                              struct init init)
{
    return graph_add_value(graph, (struct value){.name = name,
                                                 .shape = shape,
                                                 .dtype = graph->dtype,
                                                 .kind = VALUE_PARAM,
                                                 .init = init,
                                                 .needs_grad = true});
}

static inline bool wants_none(void *s UNUSED, const struct graph *g UNUSED,
                              enum fuse_pattern p UNUSED, int op UNUSED)
{
    return false;
}
static inline struct fuse_policy fuse_none(void)
{
    return (struct fuse_policy){wants_none, NULL, false};
}
struct fixture {
    struct arena arena;
    struct cpu cpu;
    struct backend backend;
    struct graph *graph;
    struct net net;
};

static inline void fixture_init(struct fixture *f, enum dtype dtype, enum cpu_flavour flavour,
                                int n_threads)
{
    *f = (struct fixture){0};
    PASSES(cpu_init(&f->cpu, flavour, n_threads, &f->backend, ERR));
    f->graph = graph_new(&f->arena, dtype);
}

/* Momentum SGD without weight decay: the value of f->net.update.rule, which a test may change before an update. */
static inline struct opt_rule sgd_rule(void)
{
    return (struct opt_rule){.method = OPT_SGD, .momentum = 0.9, .loss_scale = 1.0F, .n_micro = 1};
}

/* After the graph is built: plans, allocates memory, fills parameters and states. */
static inline void fixture_ready(struct fixture *f, uint64_t seed)
{
    PASSES(graph_finish(f->graph, ERR));
    PASSES(net_plan(&f->net, &f->arena, f->graph, &f->backend, ERR));
    struct opt_rule rule = sgd_rule();
    PASSES(net_plan_optimizer(&f->net, &f->arena, &rule, NET_DECAY_ALL, ERR));
    PASSES(net_alloc(&f->net, ERR));
    net_init_values(&f->net, seed);
}

static inline void fixture_release(struct fixture *f)
{
    net_release(&f->net);
    cpu_release(&f->cpu);
    arena_release(&f->arena);
}

static inline void fixture_cleanup(struct fixture *f)
{
    fixture_release(f);
}

/* A fixture that is released at the end of its block. */
#define FIXTURE(f, ...)                                                                            \
    CLEANUP(fixture) struct fixture f;                                                             \
    fixture_init(&(f), __VA_ARGS__)

static inline int64_t count_of(const struct fixture *f, int value)
{
    return shape_count(&f->graph->values[value].shape);
}

/* Any value of f32 or f64 as doubles; free it. */
static inline double *read_doubles(const struct fixture *f, int value)
{
    int64_t count = count_of(f, value);
    double *out = xcalloc((size_t)count, sizeof(*out));
    if (f->graph->values[value].dtype == DT_F64) {
        net_read(&f->net, value, out);
        return out;
    }
    CLEANUP(free) float *narrow = xcalloc((size_t)count, sizeof(*narrow));
    net_read(&f->net, value, narrow);
    for (int64_t i = 0; i < count; i++) {
        out[i] = (double)narrow[i];
    }
    return out;
}

/* Evenly spread over [-1, 1), shuffled and shifted a little by the seed: no ties, and neither an element nor a sum of two
   such tensors is near 0, so that no step of a difference crosses a kink. */
static inline void fill_spread(struct fixture *f, int value, uint64_t seed)
{
    int64_t count = count_of(f, value);
    CLEANUP(free) double *x = xcalloc((size_t)count, sizeof(*x));
    struct rng rng;
    rng_init(&rng, seed);
    double shift = 0.2 + 0.1 * fmod((double)seed * 0.618, 1.0);
    for (int64_t i = 0; i < count; i++) {
        x[i] = -1.0 + 2.0 * ((double)i + shift) / (double)count;
    }
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);
        double swap = x[i];
        x[i] = x[j];
        x[j] = swap;
    }
    net_write_f64(&f->net, value, x);
}

/* One label in seven is the graph's ignored one, if it has one. */
static inline void fill_labels(struct fixture *f, int64_t n_classes, uint64_t seed)
{
    int labels = graph_find(f->graph, "labels");
    int64_t ignored = f->graph->ops[f->graph->n_ops - 1].geom.loss.ignore_label;
    int64_t count = count_of(f, labels);
    CLEANUP(free) int64_t *label = xcalloc((size_t)count, sizeof(*label));
    struct rng rng;
    rng_init(&rng, seed);
    for (int64_t i = 0; i < count; i++) {
        label[i] = (int64_t)rng_below(&rng, (uint64_t)n_classes);
        if (ignored != LOSS_IGNORE_NONE && i % 7 == 3) {
            label[i] = ignored;
        }
    }
    net_write(&f->net, labels, label);
}

static inline double loss_now(struct fixture *f)
{
    if (net_gradients(&f->net, NULL)) {
        fail_msg("stopped without a signal");
    }
    return net_loss(&f->net);
}

static inline double norm_of(const double *x, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum);
}

static inline double norm_of_value(const struct fixture *f, int value)
{
    CLEANUP(free) double *x = read_doubles(f, value);
    return norm_of(x, count_of(f, value));
}

/* ||a - b|| / ||b|| */
static inline double rel_error(const double *a, const double *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    double norm = norm_of(b, count);
    return sqrt(sum) / (norm > 0.0 ? norm : 1.0);
}
