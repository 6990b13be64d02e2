/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/schedule.h"

#include <math.h>

static const char *const NAMES[SCHEDULE_KIND_COUNT] = {
    [SCHEDULE_CONSTANT] = "constant",   [SCHEDULE_POLY] = "poly",
    [SCHEDULE_LINEAR] = "linear",       [SCHEDULE_COSINE] = "cosine",
    [SCHEDULE_PIECEWISE] = "piecewise",
};

const char *schedule_name(enum schedule_kind kind)
{
    return NAMES[kind];
}

bool schedule_find(const char *name, enum schedule_kind *ret_kind)
{
    for (int i = 0; i < SCHEDULE_KIND_COUNT; i++) {
        if (strcmp(NAMES[i], name) == 0) {
            *ret_kind = (enum schedule_kind)i;
            return true;
        }
    }
    return false;
}

static double piecewise(const struct schedule *schedule, int64_t before)
{
    double lr = schedule->lr;
    for (int i = 0; i < schedule->n_drops && schedule->drops[i] <= before; i++) {
        lr *= schedule->factor;
    }
    return lr;
}

/* The remaining share of the way from lr to end: 1 at the start, 0 from the end on. */
static double share_left(const struct schedule *schedule, int64_t before)
{
    int64_t skipped = schedule->covers_warmup ? 0 : schedule->warmup_steps;
    int64_t done = before - skipped;
    int64_t all = schedule->steps - skipped;
    if (done >= all) {
        return 0.0;
    }
    double left = (double)(all - done) / (double)all;
    if (schedule->kind == SCHEDULE_COSINE) {
        return 0.5 * (1.0 + cos(M_PI * (1.0 - left)));
    }
    return schedule->kind == SCHEDULE_POLY ? pow(left, schedule->power) : left;
}

double schedule_lr(const struct schedule *schedule, int64_t step)
{
    int64_t before = step - 1;
    if (before < schedule->warmup_steps) {
        return schedule->warmup_start + (schedule->lr - schedule->warmup_start) * (double)step /
                                            (double)schedule->warmup_steps;
    }
    switch (schedule->kind) {
    case SCHEDULE_PIECEWISE:
        return piecewise(schedule, before);
    case SCHEDULE_POLY:
    case SCHEDULE_LINEAR:
    case SCHEDULE_COSINE:
        return schedule->end + (schedule->lr - schedule->end) * share_left(schedule, before);
    case SCHEDULE_CONSTANT:
    case SCHEDULE_KIND_COUNT:
        break;
    }
    return schedule->lr;
}
