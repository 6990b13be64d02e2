/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/target.h"

#include <math.h>

/* The lowest rank that prints a sample; -1 if the lines do not say. */
static int32_t lowest_rank(const struct series *series)
{
    int32_t rank = series->samples[0].rank;
    for (size_t idx = 1; idx < series->n; idx++) {
        rank = series->samples[idx].rank < rank ? series->samples[idx].rank : rank;
    }
    return rank;
}

static int find_step(const struct loss_target *target, const struct series *losses,
                     struct target_value *value, struct err *err)
{
    CLEANUP(free) double *recent = xcalloc((size_t)target->mean_of, sizeof(*recent));
    int32_t rank = lowest_rank(losses);
    int64_t n = 0;
    for (size_t idx = 0; idx < losses->n && value->step == 0; idx++) {
        const struct sample *s = &losses->samples[idx];
        double sum = 0;
        if (s->rank != rank) {
            continue;
        }
        if (!isfinite(s->value)) {
            return err_set(err, ERR_PARSE, "step %" PRId64 " has no usable loss", s->step);
        }
        recent[n++ % target->mean_of] = s->value;
        for (int64_t at = 0; at < target->mean_of; at++) {
            sum += recent[at];
        }
        double mean = sum / (double)target->mean_of;
        if (n >= target->mean_of) {
            value->lowest = mean < value->lowest ? mean : value->lowest;
            value->step = mean <= target->at_most ? s->step : 0;
        }
    }
    return n >= target->mean_of
               ? 0
               : err_set(err, ERR_PARSE,
                         "the log has %" PRId64 " losses, fewer than a mean of %" PRId64, n,
                         target->mean_of);
}

/* Seconds per step by a sample of the series; NAN if unknown. */
static double step_seconds(const struct series *series, const struct rule_case *of, double value)
{
    double batch = (double)of->batch_per_gpu;
    if (series->quantity == QTY_STEP_TIME) {
        return value;
    }
    batch *= series->scope == SCOPE_JOB    ? (double)of->gpus
             : series->scope == SCOPE_NODE ? (double)of->gpus / (double)of->nodes
                                           : 1;
    return batch / value;
}

static int add_steps(const struct series *times, const struct rule_case *of,
                     struct target_value *value, struct err *err)
{
    int32_t rank = lowest_rank(times);
    int64_t last = 0;
    double elapsed_s = 0;
    for (size_t idx = 0; idx < times->n && last < value->step; idx++) {
        const struct sample *s = &times->samples[idx];
        double each_s = step_seconds(times, of, s->value);
        if (s->rank != rank) {
            continue;
        }
        if (s->step <= last || !isfinite(each_s) || each_s <= 0) {
            return err_set(err, ERR_PARSE, "step %" PRId64 " after %" PRId64 " has no usable time",
                           s->step, last);
        }
        elapsed_s += each_s * (double)(s->step - last);
        last = s->step;
    }
    if (last != value->step) {
        return err_set(err, ERR_PARSE, "the log does not say how long step %" PRId64 " took",
                       value->step);
    }
    value->elapsed_s = elapsed_s;
    return 0;
}

int target_apply(const struct loss_target *target, const struct measurement *m,
                 const struct rule_case *of, struct target_value *ret_value, struct err *err)
{
    const struct series *losses = measurement_series(m, target->series);
    const struct series *times = measurement_primary(m);
    struct target_value value = {(double)NAN, 0, (double)INFINITY};
    if (!losses || losses->n == 0 || !times || times->n == 0) {
        return err_set(err, ERR_PARSE, "the log has no series \"%.*s\"",
                       STR_ARG(losses && losses->n ? STR_LIT("of times") : target->series));
    }
    if (m->n_runs > 1) {
        return err_set(err, ERR_PARSE, "the log holds %d runs", m->n_runs);
    }
    if (times->quantity != QTY_RATE && times->quantity != QTY_STEP_TIME) {
        return err_set(err, ERR_PARSE, "series \"%.*s\" says nothing of single steps",
                       STR_ARG(times->name));
    }
    if (times->quantity == QTY_RATE &&
        (of->batch_per_gpu <= 0 || of->gpus <= 0 || of->nodes <= 0)) {
        return err_set(err, ERR_PARSE, "a time needs to know the batch and how many GPUs");
    }
    if (find_step(target, losses, &value, err) < 0 ||
        (value.step && add_steps(times, of, &value, err) < 0)) {
        return -1;
    }
    *ret_value = value;
    return 0;
}
