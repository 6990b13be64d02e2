/* SPDX-License-Identifier: Apache-2.0 */
/* A graph's gradient, in double, against central differences of the loss: in every single coordinate where the graph is small,
   along random directions where it is a whole network. */
#pragma once

#include "wl_fixture.h"

/* Step and tolerance: with h = 1e-5 the truncation error h^2 f''' / 6 is about 1e-11 and the rounding error eps |f| / h
   about 5e-11 an entry for losses near 1. Measured over all cases below: at most 5e-10 times max(1, ||g||). The bound
   leaves a factor of ten and is far below a missing term. */
#define STEP      1e-5
#define TOLERANCE 5e-9

/* Central difference in every coordinate of one parameter; returns the norm of the difference to the gradient, which is
   scaled by `spoil` first (1 for a true test). */
static inline double gradient_error(struct fixture *f, int param, double spoil)
{
    int64_t count = count_of(f, param);
    (void)loss_now(f);
    CLEANUP(free) double *x = read_doubles(f, param);
    CLEANUP(free) double *grad = read_doubles(f, f->graph->values[param].grad);
    double sum = 0.0;
    double norm = norm_of(grad, count);
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i];
        x[i] = kept + STEP;
        net_write_f64(&f->net, param, x);
        double above = loss_now(f);
        x[i] = kept - STEP;
        net_write_f64(&f->net, param, x);
        double below = loss_now(f);
        x[i] = kept;
        double difference = (above - below) / (2.0 * STEP) - spoil * grad[i];
        sum += difference * difference;
    }
    net_write_f64(&f->net, param, x);
    return sqrt(sum) / (norm > 1.0 ? norm : 1.0);
}

static inline void check_all_gradients(struct fixture *f, int64_t n_classes, const char *what)
{
    for (int i = 0; i < f->graph->n_params; i++) {
        fill_spread(f, f->graph->params[i], 7 + (uint64_t)i);
    }
    fill_labels(f, n_classes, 3);
    for (int i = 0; i < f->graph->n_params; i++) {
        int param = f->graph->params[i];
        double error = gradient_error(f, param, 1.0);
        if (!(error < TOLERANCE)) {
            fail_msg("%s: gradient of %s is off by %.3g", what, f->graph->values[param].name,
                     error);
        }
        /* The test itself must be able to fail: a gradient that is 0.1 % too large is seen where it is not zero. */
        CLEANUP(free) double *grad = read_doubles(f, f->graph->values[param].grad);
        double norm = norm_of(grad, count_of(f, param));
        if (norm > 1e-4 && gradient_error(f, param, 1.001) < TOLERANCE) {
            fail_msg("%s: a wrong gradient of %s is not seen", what, f->graph->values[param].name);
        }
    }
}

static inline void finish_with_labels(struct fixture *f, int logits, const struct loss_opts *opts)
{
    struct shape shape = f->graph->values[logits].shape;
    struct shape labels_shape = shape;
    labels_shape.n_dims = shape.n_dims - 1;
    for (int i = 1; i < labels_shape.n_dims; i++) {
        labels_shape.dim[i] = shape.dim[i + 1];
    }
    int labels = graph_input(f->graph, "labels", labels_shape, DT_I64);
    (void)graph_loss(f->graph, logits, labels, opts);
    fixture_ready(f, 1);
}

static inline void finish_with_loss(struct fixture *f, int logits, double smoothing)
{
    finish_with_labels(
        f, logits,
        &(struct loss_opts){.label_smoothing = smoothing, .ignore_label = LOSS_IGNORE_NONE});
}

static inline int param_x(struct fixture *f, struct shape shape)
{
    return graph_param(f->graph, "x", shape, (struct init){INIT_CONST, 0.5});
}

/* (f(x + h v) - f(x - h v)) / 2h against <g, v> for random v over all parameters at once, each tensor's part of v scaled by
   the tensor's own norm, so that every layer counts. */
static inline double directional_error(struct fixture *f, uint64_t seed, double step, double spoil)
{
    const struct graph *graph = f->graph;
    double **kept = xcalloc((size_t)graph->n_params, sizeof(*kept));
    double slope = 0.0;
    double loss[2];
    (void)loss_now(f);
    for (int i = 0; i < graph->n_params; i++) {
        kept[i] = read_doubles(f, graph->params[i]);
    }
    for (int side = 0; side < 2; side++) {
        double sign = side == 0 ? 1.0 : -1.0;
        for (int i = 0; i < graph->n_params; i++) {
            int param = graph->params[i];
            int64_t count = count_of(f, param);
            double scale = (norm_of(kept[i], count) + 1e-3) / sqrt((double)count);
            CLEANUP(free) double *moved = xcalloc((size_t)count, sizeof(*moved));
            double *grad = side == 0 ? read_doubles(f, graph->values[param].grad) : NULL;
            struct rng rng;
            rng_init(&rng, seed + (uint64_t)i);
            for (int64_t j = 0; j < count; j++) {
                double v = (rng_u64(&rng) & 1U) != 0 ? scale : -scale;
                moved[j] = kept[i][j] + sign * step * v;
                slope += grad ? spoil * grad[j] * v : 0.0;
            }
            net_write_f64(&f->net, param, moved);
            free(grad);
        }
        loss[side] = loss_now(f);
    }
    for (int i = 0; i < graph->n_params; i++) {
        net_write_f64(&f->net, graph->params[i], kept[i]);
        free(kept[i]);
    }
    free(kept);
    return fabs((loss[0] - loss[1]) / (2.0 * step) - slope) / fmax(1.0, fabs(slope));
}

/* Where a step crosses a ReLU's kink the difference says nothing about the gradient (errors of 1e-2 at h = 1e-7);
   otherwise rounding gives about 1e-15 * 50 / h. The better of two small steps counts: a wrong gradient fails at both.
   Measured for our models: 3e-8 to 4e-7. */
static inline double best_directional_error(struct fixture *f, uint64_t seed, double spoil)
{
    return fmin(directional_error(f, seed, 1e-8, spoil), directional_error(f, seed, 1e-9, spoil));
}

static inline uint64_t digest_of(const struct fixture *f, int value)
{
    CLEANUP(free) double *x = read_doubles(f, value);
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (int64_t i = 0; i < count_of(f, value); i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        hash = (hash ^ bits) * 0x100000001b3ULL;
    }
    return hash;
}
