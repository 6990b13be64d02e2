/* SPDX-License-Identifier: Apache-2.0 */
/* Whole networks on a device and on the CPU in double, from the same parameters and inputs. No CUDA header here. */
#pragma once

#include "base/base.h"
#include "graph/fuse.h"
#include "graph/player.h"
#include "models/model.h"

struct nets_opts {
    const struct model *model;
    struct model_opts size;
    struct graph_types types;
    const struct backend *backend; /* borrowed */
    const struct opt_rule *rule;   /* borrowed; NULL: only gradients */
    float loss_scale;              /* where there is no rule; 0: none */
    struct fuse_list *fuse;        /* borrowed: what is fused; NULL: nothing */
    int n_streams;                 /* 0 or 1: one */
};

struct trial {
    struct arena arena;
    struct graph *graph;
    struct net net;
    const struct model *model;
    void *loss_scale; /* owned, on the device */
    int n_fused;      /* sites */
};

/* Everything that the backend supports: other sites (on Volta, any fused convolution) are left as they are. `fuse` and `n_streams` are ignored.
   The list lies in the arena; it is also valid for the same network on another backend. */
MUST_CHECK int nets_fusions(const struct nets_opts *opts, struct arena *arena,
                            struct fuse_list *ret_list, struct err *err);

/* On failure nothing is owned. */
MUST_CHECK int trial_open(struct trial *trial, const struct nets_opts *opts, struct err *err);
void trial_must_open(struct trial *trial, const struct nets_opts *opts); /* or the program ends */
void trial_release(struct trial *trial);

/* Parameters by the model's rules, except that batch norms scale by 1/2 and shift by 1, so that few values are near a ReLU's
   kink, where rounding decides, and some are below it, since a shift that is never cut off has no gradient if another batch norm
   follows. Inputs and labels are drawn. */
void trial_fill(struct trial *trial, uint64_t seed);

/* Parameters, states and inputs of `from`, as stored there. */
void trial_copy(struct trial *to, const struct trial *from);

/* Any value of a floating type as doubles; free() it. */
double *trial_read(const struct trial *trial, int value);

/* The allowed error of a result, as a relative norm: `times` the error of `yardstick`, the same network on the CPU in float, and
   `plus`. So a gradient in which large terms cancel may be as far off as rounding makes it anywhere. */
struct trial_allowed {
    double times, plus;
    double grad_scale; /* the gradients of `got` carry this factor */
};
struct trial_distance {
    double loss;  /* relative */
    double share; /* of the allowed error, for the gradient or statistic that uses most of it */
    double worst, noise; /* its error, and the yardstick's */
    double median;       /* of all errors */
    int n_compared;
    char worst_name[GRAPH_NAME_MAX];
};
struct trial_distance trial_compare(const struct trial *got, const struct trial *want,
                                    const struct trial *yardstick,
                                    const struct trial_allowed *allowed);

/* Parameters, states and the optimiser's state, bit for bit: NULL, or the name of the first that differs. */
const char *trial_differs(const struct trial *a, const struct trial *b);

/* The same for the result of one step: gradients, states and the loss. */
const char *trial_step_differs(const struct trial *a, const struct trial *b);

/* Padding after tables and vectors, in parameters, their gradients, masters and moments: the name of the first one where it is not 0,
   or NULL. *ret_n counts those that have any. */
const char *trial_tails(const struct trial *trial, int *ret_n);

/* Makes it NaN, except in gradients. */
void trial_poison_tails(struct trial *trial);

/* Everything that a checkpoint has, through host memory. */
void trial_restore(struct trial *to, const struct trial *from);
