/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about rules: what they include and leave out, and whether both sides of a row leave out the same. */
#include "base/base.h"

#include <math.h>

#include "judge/audit_parts.h"
#include "judge/stats.h"

#define CHECKPOINT_FACTOR 1.25
#define COLD_FACTOR       1.5 /* a first interval this much slower than the median is warm-up */
#define TOOL_REL_MAX      0.01
#define LIST_BYTES        300

static bool is_rate(const struct cell_audit *a)
{
    return a->cell->metric == METRIC_THROUGHPUT && a->cell->derive == DERIVE_NONE &&
           a->n_logs > 0 && a->measurements[0] && a->verdict != AUDIT_NO_LOG;
}

static bool is_average(const struct rule *rule)
{
    return rule->statistic == STAT_MEAN || rule->statistic == STAT_MEDIAN ||
           rule->statistic == STAT_TRIMMED_MEAN || rule->statistic == STAT_OLYMPIC_MEAN ||
           rule->statistic == STAT_HARMONIC_MEAN;
}

static bool is_trimmed(const struct rule *rule)
{
    return rule->statistic == STAT_TRIMMED_MEAN || rule->statistic == STAT_OLYMPIC_MEAN;
}

static void find_running_mean(struct audit *audit, const struct cell_audit *a,
                              const struct rule *rule)
{
    const struct series *s = measurement_series(a->measurements[0], rule->series);
    if (s && s->quantity == QTY_RUNNING_MEAN && is_average(rule) && a->n_used > 1) {
        finding_add(audit->found, "running-mean-averaged", cell_spot(audit, a),
                    "%s: %s averages %zu running means", a->cell->id.ptr, rule->id.ptr, a->n_used);
    }
}

static double step_s(const struct interval *i)
{
    return i->seconds / (double)i->n_steps;
}

static double median_step_s(struct audit *audit, const struct pace *pace)
{
    double *values = arena_array(audit->arena, double, pace->n);
    for (size_t idx = 0; idx < pace->n; idx++) {
        values[idx] = step_s(&pace->items[idx]);
    }
    stats_sort(values, pace->n);
    return stats_sorted_median(values, pace->n);
}

static bool keeps_all(const struct rule *rule)
{
    return rule->window.skip == 0 && rule->window.last == 0 && !rule->window.has_steps &&
           !rule->window.skips_warmup;
}

/* A tool's summary that is the mean over all of its lines, including the first, cold one. */
static bool is_mean_of_all(const struct cell_audit *a, const struct rule *rule)
{
    const struct series *s = measurement_primary(a->measurements[0]);
    double sum = 0;
    if (rule->statistic != STAT_TOOL || !s || s->quantity != QTY_RATE || s->scope != SCOPE_JOB ||
        s->n < 2) {
        return false;
    }
    for (size_t idx = 0; idx < s->n; idx++) {
        sum += s->samples[idx].value;
    }
    return fabs(rel_diff(sum / (double)s->n, a->recomputed)) < TOOL_REL_MAX;
}

static void find_warmup(struct audit *audit, const struct cell_audit *a, const struct rule *rule)
{
    struct pace pace;
    if (!((is_average(rule) && rule->statistic != STAT_MEDIAN && keeps_all(rule)) ||
          is_mean_of_all(a, rule)) ||
        !audit_pace(audit, a, &pace) || pace.n < 3) {
        return;
    }
    double median = median_step_s(audit, &pace);
    if (step_s(&pace.items[0]) > COLD_FACTOR * median) {
        finding_add(audit->found, "warmup-included", cell_spot(audit, a),
                    "%s: the first interval takes %.3g times the median and is counted",
                    a->cell->id.ptr, step_s(&pace.items[0]) / median);
    }
}

/* mmcv and others write a checkpoint when the run ends, inside the last interval. */
static void find_checkpoint(struct audit *audit, const struct cell_audit *a,
                            const struct rule *rule)
{
    struct pace pace;
    if (!is_average(rule) || is_trimmed(rule) || rule->statistic == STAT_MEDIAN ||
        rule->window.drop_last > 0 || rule->window.has_steps || !audit_pace(audit, a, &pace) ||
        pace.series->quantity != QTY_STEP_TIME || (size_t)rule->window.skip + 2 > pace.n) {
        return;
    }
    size_t from = (size_t)rule->window.skip;
    double factor = pace_last_over_slowest(&pace, from);
    if (factor > CHECKPOINT_FACTOR) {
        finding_add(audit->found, "checkpoint-in-window", cell_spot(audit, a),
                    "%s: the run's last interval takes %.2f times the slowest of the other %zu and "
                    "is averaged with them",
                    a->cell->id.ptr, factor, pace.n - 1 - from);
    }
}

/* One framework's cells of one table. */
static bool same_column(const struct cell_audit *a, const struct cell_audit *b)
{
    return a->of_case->stack == b->of_case->stack && str_eq(a->of_case->model, b->of_case->model) &&
           a->cell->metric == b->cell->metric;
}

static void find_mixed_rules(struct audit *audit, size_t first)
{
    const struct report_audit *out = audit->out;
    const struct cell_audit *a = &out->cells[first];
    CLEANUP(strbuf) struct strbuf list = STRBUF(LIST_BYTES);
    const struct rule **seen = arena_array(audit->arena, const struct rule *, out->n_cells + 1);
    size_t n = 1;
    for (size_t idx = 0; idx < first; idx++) {
        if (is_rate(&out->cells[idx]) && same_column(a, &out->cells[idx])) {
            return; /* reported for its first cell */
        }
    }
    seen[0] = a->by;
    strbuf_printf(&list, "%s", seen[0] ? seen[0]->id.ptr : "");
    for (size_t idx = first + 1; idx < out->n_cells; idx++) {
        const struct cell_audit *b = &out->cells[idx];
        const struct rule *rule = is_rate(b) && same_column(a, b) ? b->by : NULL;
        bool is_new = rule != NULL;
        for (size_t k = 0; k < n; k++) {
            is_new = is_new && seen[k] != rule;
        }
        if (is_new) {
            seen[n++] = rule;
            strbuf_printf(&list, ", %s (%s)", rule->id.ptr, b->cell->id.ptr);
        }
    }
    if (n > 1) {
        finding_add(audit->found, "rule-differs-within-table", cell_spot(audit, a),
                    "%.*s, %s: its cells follow %zu rules: %s", STR_ARG(a->of_case->model),
                    a->of_case->stack->label.ptr, n, list.ptr);
    }
}

/* Steps that the rule leaves out at the start. */
static int64_t skipped_steps(struct audit *audit, const struct cell_audit *a,
                             const struct rule *rule)
{
    struct pace pace;
    int64_t n = 0;
    if (rule->statistic == STAT_TOOL || !audit_pace(audit, a, &pace)) {
        return 0;
    }
    if (rule->window.has_steps) {
        return rule->window.step_from;
    }
    if (rule->window.last > 0 && (size_t)rule->window.last < pace.n) {
        return (int64_t)(pace.n - (size_t)rule->window.last) * pace.items[0].n_steps;
    }
    for (size_t idx = 0; idx < pace.n && idx < (size_t)rule->window.skip; idx++) {
        n += pace.items[idx].n_steps;
    }
    return n;
}

/* Compares both frameworks of a row, once for each pair of stacks and rules. */
static void find_row(struct audit *audit, const struct like_row *row)
{
    const struct rule *a = row->a->by;
    const struct rule *b = row->b->by;
    if (!a || !b) {
        return;
    }
    struct str pair =
        arena_str(audit->arena, "%s by %s and %s by %s:", row->a->of_case->stack->label.ptr,
                  a->id.ptr, row->b->of_case->stack->label.ptr, b->id.ptr);
    if (is_trimmed(a) != is_trimmed(b) &&
        !findings_say(audit->found, "trimming-differs", pair, false)) {
        finding_add(audit->found, "trimming-differs", cell_spot(audit, row->a),
                    "%s only %s is trimmed", pair.ptr, (is_trimmed(a) ? a : b)->id.ptr);
    }
    int64_t skipped_a = skipped_steps(audit, row->a, a);
    int64_t skipped_b = skipped_steps(audit, row->b, b);
    if ((skipped_a == 0) != (skipped_b == 0) &&
        !findings_say(audit->found, "warmup-differs", pair, false)) {
        finding_add(audit->found, "warmup-differs", cell_spot(audit, row->a),
                    "%s %" PRId64 " and %" PRId64 " first steps are left out", pair.ptr, skipped_a,
                    skipped_b);
    }
}

void audit_find_windows(struct audit *audit)
{
    struct report_audit *out = audit->out;
    for (size_t idx = 0; idx < out->n_cells; idx++) {
        const struct cell_audit *a = &out->cells[idx];
        const struct rule *rule = is_rate(a) ? a->by : NULL;
        if (!rule) {
            continue;
        }
        find_running_mean(audit, a, rule);
        find_warmup(audit, a, rule);
        find_checkpoint(audit, a, rule);
        find_mixed_rules(audit, idx);
    }
    for (size_t idx = 0; idx < out->n_rows; idx++) {
        find_row(audit, &out->rows[idx]);
    }
}
