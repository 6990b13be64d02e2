/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the optimiser between graph/ and a backend: what one update reads and writes. An update is one call over all
   parameters. Whatever it decides (is there an overflow, which step of the bias
   correction is it, what is the loss scale now) is decided on the device from struct opt_state, so that a whole step can be
   captured once and launched again and again; the host only sets the learning rate.

   Let p be a parameter (its master), g its gradient, lr the learning rate, d the weight decay (0 for a segment without
   has_decay), t the number of updates done, this one with it. First, for all parameters,
       g = stored gradient / (*loss_scale * n_micro)
   and if any is not finite nothing is changed but the state: found_inf = 1, n_skipped += 1, n_good = 0, and with OPT_SCALE_DYNAMIC
   loss_scale is halved (not below OPT_SCALE_MIN). Else found_inf = 0, n_updates += 1, n_good += 1, and with OPT_SCALE_DYNAMIC
   after scale_window good updates in a row loss_scale is doubled (not above OPT_SCALE_MAX) and n_good = 0.
   grad_norm is the Euclidean norm of all g.

   OPT_SGD   g = g + d p;  v = momentum v + g;  p = p - lr v.
             Source: PyTorch, torch.optim.SGD without dampening and Nesterov (v starts at 0, so its first v is g).
   OPT_ADAMW p = p (1 - lr d);  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
             p = p - lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps).
             Source: Loshchilov, Hutter, "Decoupled weight decay regularization", arXiv:1711.05101, algorithm 2, decay times lr as
             torch.optim.AdamW has it.

   Padding that a backend adds to a tensor is 0 in parameters and gradients: both leave it 0. */
#pragma once

#include "core/tensor.h"

enum opt_method { OPT_SGD, OPT_ADAMW, OPT_METHOD_COUNT };
enum opt_scaling { OPT_SCALE_NONE, OPT_SCALE_STATIC, OPT_SCALE_DYNAMIC };

#define OPT_SCALE_MAX                                                                              \
    16777216.0F /* 2^24. Source: apex amp, LossScaler: largest, start 2^16, window 2000. */
#define OPT_SCALE_START  65536.0F
#define OPT_SCALE_WINDOW 2000
#define OPT_SCALE_MIN                                                                              \
    0x1p-14F /* the smallest normal half: a smaller scale would lose what it should save */

/* What does not change from step to step. */
struct opt_rule {
    enum opt_method method;
    enum opt_scaling scaling;
    double momentum;          /* OPT_SGD */
    double beta1, beta2, eps; /* OPT_ADAMW */
    double weight_decay;
    float loss_scale;     /* at the start; 1 with OPT_SCALE_NONE */
    int64_t scale_window; /* OPT_SCALE_DYNAMIC */
    int64_t n_micro;      /* micro-batches of one update, 1 or more */
};

/* In the device's memory, multiples of 8 bytes. The first member is where kernel_args.loss_scale points to. */
struct opt_state {
    float loss_scale; /* of the next step's gradients */
    int32_t found_inf;
    double lr; /* of the next update: set_hyper */
    double grad_norm;
    int64_t n_updates, n_skipped, n_good;
};

/* What the host sets before an update. */
struct opt_hyper {
    double lr;
};

/* One parameter. Offsets in bytes. `wide` is the one of its master, both moments and its sum of gradients, whose elements
   are of the type `wide_type`: float, or double where the parameter is double. */
struct opt_segment {
    int64_t param, grad, wide;
    int64_t count; /* elements as the backend stores them */
    int32_t
        param_type; /* enum dtype: DT_F16, DT_F32, DT_F64; also of its gradient in the arena `grad` */
    int32_t wide_type;  /* DT_F32, DT_F64 */
    int32_t has_master; /* 0: the parameter is its own */
    int32_t has_decay;  /* weight decay */
};

struct opt_args {
    struct opt_rule rule;
    const struct opt_segment
        *segments; /* (n_segments), on the host, valid as long as the args are */
    int n_segments;
    /* On the device. */
    void *param;      /* = */
    const void *grad; /* as the backward pass left it */
    void *master;     /* =; NULL where no segment has one */
    void *moment1;    /* =; OPT_SGD: v, else m */
    void *moment2;    /* =; OPT_SGD: NULL, else v */
    void *sum; /* n_micro > 1: update reads the gradients here and not in `grad`; else NULL */
    struct opt_state *state; /* = */
    void *workspace;         /* workspace_bytes of it, contents undefined */
    int64_t workspace_bytes;
    void *prepared; /* what prepare_update returned, owned by the backend, or NULL */
};

static inline bool opt_has_moment2(enum opt_method method)
{
    return method != OPT_SGD;
}

const char *opt_method_name(enum opt_method method); /* "sgd" */

/* False if there is none of that name. */
bool opt_method_find(const char *name, enum opt_method *ret_method);

const char *opt_scaling_name(enum opt_scaling scaling); /* "none" */

/* Before the first step. */
struct opt_state opt_state_start(const struct opt_rule *rule);

/* The state after an update that has scanned its gradients, by the rules above: for a backend on the host and for
   tests. */
void opt_state_advance(struct opt_state *state, const struct opt_rule *rule, bool found_inf,
                       double grad_norm);
