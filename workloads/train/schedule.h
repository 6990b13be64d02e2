/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of each step. Pure. With t the number of steps before this one, W those of the warm-up and T the schedule's:

   t < W              warmup_start + (lr - warmup_start) * (t + 1) / W: the last step of the warm-up has all of lr;
   u                  t - W, or t where the schedule runs from the first step (covers_warmup), T counted alike;
   SCHEDULE_CONSTANT  lr
   SCHEDULE_POLY      end + (lr - end) * (1 - u / T)^power, end from u = T on.   Source: paddle.optimizer.lr.PolynomialDecay
                      without cycle; mmcv's PolyLrUpdaterHook is the same.
   SCHEDULE_LINEAR    the same with power 1.   Source: google-research/bert, optimization.py, create_optimizer (end 0).
   SCHEDULE_COSINE    end + (lr - end) * (1 + cos(pi u / T)) / 2, end from u = T on.   Source: Loshchilov, Hutter, "SGDR",
                      arXiv:1608.03983, equation 5, one period.
   SCHEDULE_PIECEWISE lr * factor^(number of drops that are t or less): a drop is a number of steps of the whole run. */
#pragma once

#include "base/base.h"

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_POLY,
    SCHEDULE_LINEAR,
    SCHEDULE_COSINE,
    SCHEDULE_PIECEWISE,
    SCHEDULE_KIND_COUNT
};

#define SCHEDULE_DROPS_MAX 16

struct schedule {
    enum schedule_kind kind;
    double lr;
    double end;                        /* poly, linear, cosine */
    double power;                      /* poly */
    double factor;                     /* piecewise */
    int64_t steps;                     /* T, with the warm-up where covers_warmup: 1 or more */
    int64_t drops[SCHEDULE_DROPS_MAX]; /* piecewise: rising */
    int n_drops;
    int64_t warmup_steps;
    double warmup_start;
    bool covers_warmup;
};

/* step counts from 1. */
double schedule_lr(const struct schedule *schedule, int64_t step);

const char *schedule_name(enum schedule_kind kind); /* "poly" */

/* False if there is none of that name. */
bool schedule_find(const char *name, enum schedule_kind *ret_kind);
