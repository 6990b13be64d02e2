/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about cells and their logs: what connects the two, single cells, and what their rules include and leave out. */
#include "base/base.h"

#include <math.h>

#include "base/clock.h"
#include "judge/audit_parts.h"
#include "judge/stats.h"

#define OLD_DAYS          90
#define DAY_S             86400.0
#define TIME_REL_MAX      0.05 /* rate next to time to train */
#define FEW_INTERVALS     10
#define FEW_STEPS         50
#define DIGITS_MIN        4 /* fewer printed digits fit some sample by chance */
#define STEP_WORK_FACTOR  1.5
#define BEST_SAMPLES_MIN  4
#define CHECKPOINT_FACTOR 1.25
#define COLD_FACTOR       1.5 /* a first interval this much slower than the median is warm-up */
#define TOOL_REL_MAX      0.01
#define LIST_BYTES        300

/* ---- rows and rules ---- */

static void find_other_row(struct audit *audit, const struct cell_audit *a)
{
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        const struct identity_item *item = &a->identity.items[fact];
        if (item->state == ID_CONTRADICTED) {
            finding_add(audit->found, "row-differs",
                        log_spot(audit, a, item->line ? a->identity_log : 0, item->line),
                        "%s: %.*s", a->cell->id.ptr, STR_ARG(item->why));
        }
    }
}

/* Whether it picks one sample of many, in whatever way. A tool's own figure is not a sample. */
static bool picks_sample(const struct rule *rule, const struct cell_audit *a,
                         const struct series *series)
{
    bool is_extreme = rule->statistic == STAT_MIN || rule->statistic == STAT_MAX;
    return series->n > 1 && series->quantity != QTY_SUMMARY &&
           (is_extreme || (a->n_used == 1 && a->verdict != AUDIT_NO_LOG));
}

static bool fits_scope(const struct rule *rule, const struct series *series)
{
    bool is_time = str_eq_z(series->unit, "s") && series->quantity != QTY_STEP_TIME;
    bool is_whole = rule->statistic == STAT_TIMESTAMPS || series->quantity == QTY_SCORE || is_time;
    return series->scope == SCOPE_UNKNOWN ||
           rule->scale == (is_whole ? SCALE_NONE : audit_scale_of(series));
}

/* A rule that the report states is its own affair; one that somebody found to fit must not pick a sample or use a wrong
   product. */
static void find_rule(struct audit *audit, const struct cell_audit *a)
{
    const struct rule *rule = a->by;
    const struct measurement *m = cell_measurement(a, 0);
    const struct series *series = rule && m ? measurement_series(m, rule->series) : NULL;
    if (!series || str_eq_z(rule->origin, "stated")) {
        return;
    }
    if (picks_sample(rule, a, series)) {
        finding_add(audit->found, "rule-picks-sample", cell_spot(audit, a),
                    "%s: %.*s takes one of %zu samples, but the report does not say so",
                    a->cell->id.ptr, STR_ARG(rule->id), series->n);
    }
    if (!fits_scope(rule, series)) {
        finding_add(audit->found, "rule-scale-differs", cell_spot(audit, a),
                    "%s: %.*s scales by %s, but a value of %.*s is per %s", a->cell->id.ptr,
                    STR_ARG(rule->id), SCALE_NAMES[rule->scale], STR_ARG(series->name),
                    SCOPE_NAMES[series->scope]);
    }
}

/* ---- cells ---- */

static void find_verdicts(struct audit *audit, const struct cell_audit *a)
{
    struct str found = cell_number_words(audit->arena, a);
    struct str diff = cell_diff_words(audit->arena, a);
    if (a->verdict != AUDIT_DIFFERS) {
        return;
    }
    if (a->cell->derive == DERIVE_RATIO) {
        finding_add(audit->found, "speedup-mismatch", cell_spot(audit, a),
                    "%s: printed %s, and %s over %s is %.*s%s%s", a->cell->id.ptr,
                    a->cell->printed.ptr, a->cell->of[0].ptr, a->cell->of[1].ptr, STR_ARG(found),
                    a->note.ptr ? "; " : "", a->note.ptr ? a->note.ptr : "");
    } else {
        finding_add(audit->found, "cell-differs", cell_spot(audit, a),
                    "%s: printed %s, and %s gives %.*s (%.*s)%s%s", a->cell->id.ptr,
                    a->cell->printed.ptr, a->rule.ptr, STR_ARG(found), STR_ARG(diff),
                    a->note.ptr ? "; " : "", a->note.ptr ? a->note.ptr : "");
    }
}

static size_t significant_digits(struct str printed)
{
    size_t n = 0;
    for (size_t idx = 0; idx < printed.len; idx++) {
        n +=
            printed.ptr[idx] >= '0' && printed.ptr[idx] <= '9' && (n > 0 || printed.ptr[idx] > '0');
    }
    return n;
}

static bool is_rate(const struct cell_audit *a)
{
    return a->cell->metric == METRIC_THROUGHPUT && a->cell->derive == DERIVE_NONE;
}

/* Only single samples give the number: someone took it from one line. */
static void find_single(struct audit *audit, const struct cell_audit *a)
{
    const struct explanation *e = &a->explanation;
    if (is_rate(a) && a->verdict == AUDIT_DIFFERS && e->n_matching > 0 &&
        e->n_matching == e->n_single && significant_digits(a->cell->printed) >= DIGITS_MIN) {
        finding_add(audit->found, "samples-hand-picked", cell_spot(audit, a),
                    "%s: %s is %s and nothing else in the log; the rule gives %.6g",
                    a->cell->id.ptr, a->cell->printed.ptr, e->best.ptr, a->recomputed);
    }
}

static double job_rate(const struct cell_audit *a, const struct interval *i)
{
    const struct report_case *c = a->of_case;
    return (double)i->n_steps * (double)c->gpus * (double)c->batch_per_gpu / i->seconds;
}

/* The printed number is the fastest interval of the log. */
static void find_best(struct audit *audit, const struct cell_audit *a)
{
    struct pace pace;
    double best = 0;
    double sum = 0;
    if (!is_rate(a) || a->verdict != AUDIT_DIFFERS || !audit_pace(audit, a, &pace) ||
        pace.n < BEST_SAMPLES_MIN || pace.series->quantity == QTY_RUNNING_MEAN) {
        return;
    }
    for (size_t idx = 0; idx < pace.n; idx++) {
        double rate = job_rate(a, &pace.items[idx]);
        best = rate > best ? rate : best;
        sum += rate;
    }
    if (verdict_audit(best, a->cell->published, a->cell->decimals, ROUND_NEAREST) == AUDIT_EXACT ||
        verdict_audit(best, a->cell->published, a->cell->decimals, ROUND_TRUNCATE) == AUDIT_EXACT) {
        finding_add(audit->found, "best-of", cell_spot(audit, a),
                    "%s: %s is the best of %zu intervals, whose mean is %.6g", a->cell->id.ptr,
                    a->cell->printed.ptr, pace.n, sum / (double)pace.n);
    }
}

static void find_few(struct audit *audit, const struct cell_audit *a)
{
    struct pace pace;
    int64_t n_steps = 0;
    if (!is_rate(a) || a->n_used >= FEW_INTERVALS || a->n_used == 0 ||
        !audit_pace(audit, a, &pace) || pace.n < a->n_used ||
        !str_eq(pace.series->name, measurement_primary(cell_measurement(a, 0))->name)) {
        return;
    }
    for (size_t idx = pace.n - a->n_used; idx < pace.n; idx++) {
        n_steps += pace.items[idx].n_steps;
    }
    if (n_steps < FEW_STEPS && a->n_used > 1) {
        finding_add(audit->found, "few-samples", cell_spot(audit, a),
                    "%s is based on %zu intervals, %" PRId64 " steps", a->cell->id.ptr, a->n_used,
                    n_steps);
    }
}

struct span { /* of the moments of a log's lines */
    double from, to;
    bool is_known;
};

static bool time_span(const struct measurement *m, double *ret_from, double *ret_to)
{
    *ret_from = (double)INFINITY;
    *ret_to = -(double)INFINITY;
    for (size_t s = 0; s < m->n_series; s++) {
        for (size_t idx = 0; idx < m->series[s].n; idx++) {
            double at = m->series[s].samples[idx].time_s;
            *ret_from = at < *ret_from ? at : *ret_from;
            *ret_to = at > *ret_to ? at : *ret_to;
        }
    }
    return *ret_from <= *ret_to;
}

static void day_of(double time_s, char *ret, size_t size)
{
    char text[RFC3339_MAX];
    clock_rfc3339((int64_t)time_s * NS_PER_S, text);
    snprintf(ret, size, "%.10s", text);
}

/* A row of a table whose log is much older than the newest log of the same table. */
static void find_old(struct audit *audit, const struct span *spans, size_t at)
{
    const struct cell_audit *a = &audit->out->cells[at];
    double newest = -(double)INFINITY;
    char day[16];
    char newest_day[16];
    if (!is_rate(a) || !spans[at].is_known) {
        return;
    }
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        const struct cell_audit *b = &audit->out->cells[idx];
        if (is_rate(b) && spans[idx].is_known && str_eq(a->cell->table, b->cell->table) &&
            spans[idx].from > newest) {
            newest = spans[idx].from;
        }
    }
    if (newest - spans[at].from > OLD_DAYS * DAY_S) {
        day_of(spans[at].from, day, sizeof(day));
        day_of(newest, newest_day, sizeof(newest_day));
        finding_add(audit->found, "log-older", cell_spot(audit, a),
                    "%s is based on a log of %s, next to one of %s in the same table",
                    a->cell->id.ptr, day, newest_day);
    }
}

/* Work over time to train against the printed rate. */
static void find_time(struct audit *audit, const struct cell_audit *a)
{
    const struct report_case *c = a->of_case;
    const struct measurement *m = cell_measurement(a, 0);
    if (!is_rate(a) || !m || m->last_step <= 0) {
        return;
    }
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        if (c->cells[idx].metric != METRIC_TIME_TO_TRAIN) {
            continue;
        }
        double rate = (double)m->last_step * (double)c->batch_per_gpu * (double)c->gpus /
                      c->cells[idx].published;
        if (fabs(rel_diff(rate, a->cell->published)) > TIME_REL_MAX) {
            finding_add(audit->found, "rate-contradicts-time", cell_spot(audit, a),
                        "%s: %" PRId64 " steps of %" PRId64
                        " items in %s s are %.4g a second, not %s",
                        a->cell->id.ptr, m->last_step, c->batch_per_gpu * c->gpus,
                        c->cells[idx].printed.ptr, rate, a->cell->printed.ptr);
        }
    }
}

/* If two formats read one log, their lines must be of the same days. */
static void find_clock(struct audit *audit, const struct span *spans, size_t at)
{
    const struct cell_audit *a = &audit->out->cells[at];
    for (size_t idx = 0; spans[at].is_known && idx < audit->out->n_cells; idx++) {
        const struct cell_audit *b = &audit->out->cells[idx];
        char day[16];
        char b_day[16];
        if (b->of_case != a->of_case || !spans[idx].is_known ||
            cell_measurement(b, 0) == cell_measurement(a, 0) ||
            spans[at].from - spans[idx].to <= DAY_S) {
            continue;
        }
        day_of(spans[at].from, day, sizeof(day));
        day_of(spans[idx].from, b_day, sizeof(b_day));
        finding_add(audit->found, "clock-implausible", cell_spot(audit, a),
                    "lines of format %.*s are of %s, but those of %.*s of %s",
                    STR_ARG(cell_measurement(a, 0)->format), day,
                    STR_ARG(cell_measurement(b, 0)->format), b_day);
        return;
    }
}

/* Rate x time between steps = items per step. Source of the factor: half a step's work more cannot be clock noise. */
static void find_step_work(struct audit *audit, const struct cell_audit *a)
{
    const struct measurement *m = cell_measurement(a, 0);
    const struct series *s = m ? measurement_primary(m) : NULL;
    struct str text = STR_EMPTY;
    struct err err = {0};
    int64_t accumulated = 1;
    double items = 0;
    if (!is_rate(a) || !s || s->quantity != QTY_RATE || s->scope != SCOPE_JOB || s->n < 3) {
        return;
    }
    const struct sample *first = &s->samples[0];
    const struct sample *last = &s->samples[s->n - 1];
    if (first->run != last->run || !(last->time_s > first->time_s) || last->step <= first->step) {
        return;
    }
    if (case_condition(a->of_case, "grad_accumulation", &text) && text.ptr &&
        str_to_i64(text, 1, INT32_MAX, &accumulated, &err) < 0) {
        return;
    }
    for (size_t idx = 1; idx < s->n; idx++) {
        double delta_s = s->samples[idx].time_s - s->samples[idx - 1].time_s;
        items += delta_s > 0 ? s->samples[idx].value * delta_s : 0;
    }
    items /= (double)(last->step - first->step);
    double stated =
        (double)a->of_case->gpus * (double)a->of_case->batch_per_gpu * (double)accumulated;
    if (items > STEP_WORK_FACTOR * stated) {
        finding_add(audit->found, "step-work-differs", cell_spot(audit, a),
                    "%s: a step of the log processes %.0f items, but %.0f are stated: %.0f batches "
                    "per step",
                    a->cell->id.ptr, items, stated, items / stated * (double)accumulated);
    }
}

/* What is said of a log once, whichever cell stands on it. */
static bool is_noted(const struct audit *audit, const char *id, struct spot at)
{
    const struct findings *list = audit->found;
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct spot *other = &list->items[idx].at;
        if (strcmp(list->items[idx].id, id) == 0 && str_eq(other->log, at.log) &&
            (at.log.ptr || other->cell == at.cell)) {
            return true;
        }
    }
    return false;
}

/* A rule that takes only lines of the case's GPU count tells the runs in a file apart. */
static bool is_told_apart(const struct cell_audit *a)
{
    return a->by && a->by->match_gpus;
}

/* The raw log is not the one whose digest logs/published has: even if the numbers follow from it, it is another log. */
static void find_log_changed(struct audit *audit, const struct cell_audit *a, struct spot at)
{
    for (size_t idx = 0; idx < a->of_case->n_logs; idx++) {
        const struct audit_log *log = a->bound->logs ? a->bound->logs[idx] : NULL;
        if (log && str_eq(log->ref.path, at.log) && log->kept_sha256.ptr && log->ref.sha256.ptr &&
            !str_eq(log->kept_sha256, log->ref.sha256) && !is_noted(audit, "log-changed", at)) {
            finding_add(audit->found, "log-changed", at,
                        "expected sha256 %.*s as logs/published records it, found %.*s",
                        STR_ARG(log->kept_sha256), STR_ARG(log->ref.sha256));
        }
    }
}

static bool is_unreadable(const struct cell_audit *a, size_t idx)
{
    return a->bound->logs && a->bound->logs[idx]->is_unreadable;
}

static void find_log_states(struct audit *audit, const struct cell_audit *a)
{
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        const struct measurement *m = cell_measurement(a, idx);
        struct spot at = log_spot(audit, a, idx, 0);
        if (is_unreadable(a, idx)) {
            if (!is_noted(audit, "log-without-number", at)) {
                finding_add(audit->found, "log-without-number", at, "%s: %s", a->cell->id.ptr,
                            a->note.ptr);
            }
        } else if (!m && !is_noted(audit, "log-missing", at)) {
            finding_add(audit->found, "log-missing", at, "%s needs it: %s", a->cell->id.ptr,
                        a->note.ptr ? a->note.ptr : "it is missing");
        } else if (m && judgement_lacks_run(m) && !is_noted(audit, "log-incomplete", at)) {
            finding_add(audit->found, "log-incomplete", at, "%.*s (read as %.*s)", STR_ARG(m->why),
                        STR_ARG(m->format));
        } else if (m && m->n_runs > 1 && !is_told_apart(a) &&
                   !is_noted(audit, "log-ambiguous", at)) {
            finding_add(audit->found, "log-ambiguous", at, "the file holds %d runs", m->n_runs);
        }
        find_log_changed(audit, a, at);
    }
}

/* A cell with logs and a rule but without a number was not checked, which must be visible. */
static void find_unread(struct audit *audit, const struct cell_audit *a)
{
    struct spot at = cell_spot(audit, a);
    if (a->log_state == LOG_NO_RULE && a->cell->derive == DERIVE_NONE) {
        finding_add(audit->found, "rule-missing", at, "%s: %s", a->cell->id.ptr, a->note.ptr);
        return;
    }
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        if (!cell_measurement(a, idx)) {
            return; /* reported as log-missing */
        }
    }
    if (a->n_logs && a->rule.ptr && a->verdict == AUDIT_NO_LOG &&
        !is_noted(audit, "log-without-number", at)) {
        finding_add(audit->found, "log-without-number", at, "%s by %.*s: %s", a->cell->id.ptr,
                    STR_ARG(a->rule), a->note.ptr ? a->note.ptr : "the rule finds no number");
    }
}

/* One finding per stack: its numbers without any published log. */
static void find_unpublished(struct audit *audit, const struct stack *stack)
{
    size_t n = 0;
    size_t n_all = 0;
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        const struct cell_audit *a = &audit->out->cells[idx];
        if (a->of_case->stack == stack && a->cell->derive == DERIVE_NONE) {
            n_all++;
            n += a->of_case->n_logs == 0;
        }
    }
    if (n) {
        finding_add(audit->found, "log-not-published",
                    (struct spot){.report = audit->report, .stack = stack},
                    "%s: no log is published for %zu of %zu numbers", stack->label.ptr, n, n_all);
    }
}

/* ---- windows ---- */

/* A rate that its log gives. */
static bool is_measured_rate(const struct cell_audit *a)
{
    return is_rate(a) && cell_measurement(a, 0) && a->verdict != AUDIT_NO_LOG;
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
    const struct series *s = measurement_series(cell_measurement(a, 0), rule->series);
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
    const struct series *s = measurement_primary(cell_measurement(a, 0));
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
        if (is_measured_rate(&out->cells[idx]) && same_column(a, &out->cells[idx])) {
            return; /* reported for its first cell */
        }
    }
    seen[0] = a->by;
    strbuf_printf(&list, "%s", seen[0] ? seen[0]->id.ptr : "");
    for (size_t idx = first + 1; idx < out->n_cells; idx++) {
        const struct cell_audit *b = &out->cells[idx];
        const struct rule *rule = is_measured_rate(b) && same_column(a, b) ? b->by : NULL;
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
        str_printf(audit->arena, "%s by %s and %s by %s:", row->a->of_case->stack->label.ptr,
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

void audit_find_cells(struct audit *audit)
{
    struct report_audit *out = audit->out;
    struct span *spans = arena_array(audit->arena, struct span, out->n_cells + 1);
    for (size_t idx = 0; idx < out->n_cells; idx++) {
        const struct cell_audit *a = &out->cells[idx];
        if (a->cell->derive == DERIVE_NONE) {
            find_other_row(audit, a);
            find_rule(audit, a);
        }
        spans[idx].is_known = cell_measurement(a, 0) &&
                              time_span(cell_measurement(a, 0), &spans[idx].from, &spans[idx].to);
    }
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        const struct cell_audit *a = &audit->out->cells[idx];
        find_verdicts(audit, a);
        find_single(audit, a);
        find_best(audit, a);
        find_few(audit, a);
        find_old(audit, spans, idx);
        find_time(audit, a);
        find_clock(audit, spans, idx);
        find_step_work(audit, a);
        find_log_states(audit, a);
        find_unread(audit, a);
    }
    for (size_t idx = 0; idx < audit->report->n_stacks; idx++) {
        find_unpublished(audit, &audit->report->stacks[idx]);
    }
    for (size_t idx = 0; idx < out->n_cells; idx++) {
        const struct cell_audit *a = &out->cells[idx];
        if (is_measured_rate(a) && a->by) {
            find_running_mean(audit, a, a->by);
            find_warmup(audit, a, a->by);
            find_checkpoint(audit, a, a->by);
            find_mixed_rules(audit, idx);
        }
    }
    for (size_t idx = 0; idx < out->n_rows; idx++) {
        find_row(audit, &out->rows[idx]);
    }
}
