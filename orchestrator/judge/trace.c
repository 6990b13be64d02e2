/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/trace.h"

#include <math.h>

#include "judge/audit_parts.h"
#include "judge/stats.h"

#define STEPS_MAX 8

struct made { /* the steps made so far */
    struct arena *arena;
    struct trace_steps *steps;
};

static void add_step(const struct made *made, double value, struct str words)
{
    struct trace_steps *steps = made->steps;
    if (!steps->items) {
        steps->items = arena_array(made->arena, struct trace_step, STEPS_MAX);
    }
    ASSERT(steps->n < STEPS_MAX);
    steps->items[steps->n++] = (struct trace_step){words, value};
}

struct str trace_use_words(struct arena *arena, const struct rule *rule, enum sample_use use)
{
    const struct window *w = &rule->window;
    switch (use) {
    case USE_COUNTED:
        return STR_LIT("counted");
    case USE_TRIMMED:
        return STR_LIT("dropped: one of the smallest or largest");
    case USE_BETWEEN:
        return STR_LIT("between those that count");
    case USE_OTHER_RUN:
        return STR_LIT("of another run");
    case USE_OTHER_GPUS:
        return STR_LIT("of another number of GPUs");
    case USE_OUTSIDE_STEPS:
        return str_printf(arena, "not in steps %" PRId64 " to %" PRId64, w->step_from, w->step_to);
    case USE_WARMUP:
        return STR_LIT("warm-up, as the log states it");
    case USE_SKIPPED:
        return str_printf(arena, "skipped: among the first %" PRId64, w->skip);
    case USE_DROPPED:
        return str_printf(arena, "dropped: among the last %" PRId64, w->drop_last);
    case USE_BEFORE_LAST:
        return str_printf(arena, "before the last %" PRId64, w->last);
    }
    ASSERT(!"use");
    return STR_EMPTY;
}

struct str trace_samples_words(struct arena *arena, const struct rule *rule,
                               const struct trace_log *log)
{
    const struct series *series = log->series;
    struct str words =
        str_printf(arena, "%zu samples of %.*s%s%.*s", series->n, STR_ARG(series->name),
                   series->unit.len ? " in " : "", STR_ARG(series->unit));
    const char *before = ":";
    for (size_t use = 0; use < ARRAY_LEN(log->n_of); use++) {
        if (log->n_of[use]) {
            words = str_printf(arena, "%.*s%s %zu %.*s", STR_ARG(words), before, log->n_of[use],
                               STR_ARG(trace_use_words(arena, rule, (enum sample_use)use)));
            before = ";";
        }
    }
    return words;
}

/* ---- one log ---- */

/* Values that count, in file order; times of the first and the last. */
struct counted {
    const struct series *series;
    double *values;
    size_t n;
    const struct sample *first, *last;
};

static struct counted counted_of(struct arena *arena, const struct trace_log *log)
{
    struct counted c = {.series = log->series,
                        .values = arena_array(arena, double, log->series->n)};
    for (size_t idx = 0; idx < log->series->n; idx++) {
        if (log->uses[idx] == USE_COUNTED) {
            c.first = c.first ? c.first : &log->series->samples[idx];
            c.last = &log->series->samples[idx];
            c.values[c.n++] = log->series->samples[idx].value;
        }
    }
    return c;
}

static double sum_of_inverse(const struct counted *c)
{
    double *inverse = xcalloc(c->n, sizeof(*inverse));
    for (size_t idx = 0; idx < c->n; idx++) {
        inverse[idx] = 1 / c->values[idx];
    }
    double sum = stats_sum(inverse, c->n);
    free(inverse);
    return sum;
}

/* For timestamps and elapsed time: from which line to which. */
static struct str words_of_times(struct arena *arena, const struct rule *rule,
                                 const struct rule_case *of, const struct counted *c)
{
    double seconds = c->last->time_s - c->first->time_s;
    if (rule->statistic == STAT_ELAPSED) {
        return str_printf(arena, "%.9g s from the first to the last line of %.*s%s%.*s", seconds,
                          STR_ARG(rule->series), rule->unit.len ? ", in " : "",
                          STR_ARG(rule->unit));
    }
    return str_printf(arena,
                      "%" PRId64 " GPUs x %" PRId64 " x (%" PRId64 " - %" PRId64
                      ") steps / %.9g s: items between two timestamps",
                      of->gpus, of->batch_per_gpu, c->last->step, c->first->step, seconds);
}

static struct str words_of_statistic(struct arena *arena, const struct rule *rule,
                                     const struct rule_case *of, const struct rule_value *value,
                                     const struct counted *c)
{
    struct str name = rule->series;
    const char *s = plural_s(c->n);
    switch (rule->statistic) {
    case STAT_MEAN:
    case STAT_TRIMMED_MEAN:
    case STAT_OLYMPIC_MEAN:
        return str_printf(arena, "%.9g / %zu: sum over number, the mean of %zu sample%s of %.*s",
                          stats_sum(c->values, c->n), c->n, c->n, s, STR_ARG(name));
    case STAT_MEDIAN:
        return str_printf(arena, "middle of %zu sample%s of %.*s in order", c->n, s, STR_ARG(name));
    case STAT_HARMONIC_MEAN:
        return str_printf(arena, "%zu / %.9g: number over the sum of 1 / %.*s", c->n,
                          sum_of_inverse(c), STR_ARG(name));
    case STAT_TIME_WEIGHTED_MEAN:
        return str_printf(
            arena,
            c->series->quantity == QTY_STEP_TIME
                ? "%.9g / %.9g: seconds over steps, of %zu interval%s"
                : "%.9g / %.9g: steps over the sum of steps / rate, of %zu interval%s",
            value->top, value->bottom, c->n, s);
    case STAT_MIN:
        return str_printf(arena, "smallest of %zu sample%s of %.*s", c->n, s, STR_ARG(name));
    case STAT_MAX:
        return str_printf(arena, "largest of %zu sample%s of %.*s", c->n, s, STR_ARG(name));
    case STAT_FIRST:
        return str_printf(arena, "first sample of %.*s", STR_ARG(name));
    case STAT_LAST:
        return c->n == 1 ? str_printf(arena, "last sample of %.*s", STR_ARG(name))
                         : str_printf(arena, "%.9g / %zu: mean of the last %zu samples of %.*s",
                                      stats_sum(c->values, c->n), c->n, c->n, STR_ARG(name));
    case STAT_TIMESTAMPS:
    case STAT_ELAPSED:
        return words_of_times(arena, rule, of, c);
    case STAT_TOOL:
        return c->n == 1 ? str_printf(arena, "the tool's own %.*s", STR_ARG(name))
                         : str_printf(arena, "%.9g / %zu: mean of the tool's own %.*s of %zu ranks",
                                      stats_sum(c->values, c->n), c->n, STR_ARG(name), c->n);
    case STAT_ENGINE:
        return str_printf(arena, "as measure makes it, of %.*s", STR_ARG(name));
    case STAT_COUNT:
        break;
    }
    ASSERT(!"statistic");
    return STR_EMPTY;
}

static void add_scale(const struct made *made, const struct rule *rule, const struct rule_case *of,
                      const struct rule_value *value)
{
    struct arena *arena = made->arena;
    double before = value->statistic;
    bool is_over = rule->scale == SCALE_GLOBAL_BATCH_OVER || rule->scale == SCALE_FACT_OVER;
    struct str what = rule->scale == SCALE_GPUS    ? STR_LIT("GPUs")
                      : rule->scale == SCALE_NODES ? STR_LIT("nodes")
                      : rule_is_by_fact(rule)
                          ? rule->fact
                          : str_printf(arena, "samples a step (%" PRId64 " GPUs x %" PRId64 ")",
                                       of->gpus, of->batch_per_gpu);
    if (rule->scale != SCALE_NONE) {
        add_step(
            made, value->value,
            is_over ? str_printf(arena, "%.9g %.*s / %.9g", value->operand, STR_ARG(what), before)
                    : str_printf(arena, "%.9g x %.9g %.*s", before, value->operand, STR_ARG(what)));
    }
}

static void trace_log_of(struct arena *arena, const struct rule *rule, const struct format *format,
                         const struct cell_audit *cell, size_t idx, struct trace_log *log)
{
    const struct measurement *m = cell_measurement(cell, idx);
    const struct made made = {arena, &log->steps};
    struct rule_repeat repeat = {0};
    struct err err = {0};
    log->value = (double)NAN;
    log->series = m ? measurement_series(m, rule->series) : NULL;
    if (!m) {
        log->why = cell->note.ptr ? cell->note : STR_LIT("the log is missing");
        return;
    }
    struct rule_case of = audit_case_of_log(cell->of_case, rule, format, m);
    if (log->series && log->series->n > 0) {
        log->uses = arena_array(arena, enum sample_use, log->series->n);
        if (rule_uses(rule, m, &of, log->uses, &err) < 0) {
            log->uses = NULL;
        }
        for (size_t at = 0; log->uses && at < log->series->n; at++) {
            log->n_of[log->uses[at]]++;
        }
    }
    err = (struct err){0};
    if (rule_repeat(rule, m, &of, arena, &repeat, &err) < 0) {
        log->why = str_dup(arena, str_of(err.msg));
        return;
    }
    log->value = repeat.value;
    log->why = repeat.why;
    if (!isfinite(repeat.value) || !log->uses) {
        return;
    }
    struct counted counted = counted_of(arena, log);
    add_step(&made, repeat.by.statistic,
             words_of_statistic(arena, rule, &of, &repeat.by, &counted));
    add_scale(&made, rule, &of, &repeat.by);
}

/* ---- the cell ---- */

static void add_combined(const struct made *made, const struct trace *how,
                         const struct cell_audit *cell)
{
    const struct rule *rule = how->rule;
    double *values = arena_array(made->arena, double, cell->n_logs);
    double combined = 0;
    for (size_t idx = 0; idx < cell->n_logs; idx++) {
        values[idx] = how->logs[idx].value;
    }
    if (cell->n_logs > 1 &&
        rule_combine(rule->repeats, values, cell->n_logs, &combined, ERR_IGNORED) == 0) {
        if (rule->repeats == REPEATS_OLYMPIC) {
            size_t ends[2];
            rule_dropped(values, cell->n_logs, &ends[0], &ends[1]);
            how->logs[ends[0]].is_dropped = how->logs[ends[1]].is_dropped = true;
        }
        add_step(
            made, combined,
            str_printf(made->arena, "%s of the numbers of %zu logs%s",
                       rule->repeats == REPEATS_OLYMPIC ? "mean" : REPEATS_NAMES[rule->repeats],
                       cell->n_logs,
                       rule->repeats == REPEATS_OLYMPIC ? ", without the fastest and the slowest"
                                                        : ""));
    }
    if (cell->of_case->factor.value > 0) {
        add_step(made, cell->recomputed,
                 str_printf(made->arena, "x %.9g, the factor of %.*s", cell->of_case->factor.value,
                            STR_ARG(cell->of_case->factor.path)));
    }
}

/* A derived cell: from the printed values of the cells that it is derived from. */
static void add_derived(const struct made *made, const struct cell_audit *cell)
{
    static const char *const NAMES[] = {[DERIVE_NONE] = "",
                                        [DERIVE_RATIO] = "ratio",
                                        [DERIVE_MEAN] = "mean",
                                        [DERIVE_MEDIAN] = "median"};
    CLEANUP(strbuf) struct strbuf words = STRBUF(4000);
    strbuf_printf(&words, "%s of the printed numbers", NAMES[cell->cell->derive]);
    for (size_t idx = 0; idx < cell->cell->n_of; idx++) {
        const struct cell *of = cell->bound->of[idx]->cell;
        strbuf_printf(&words, "%s %.*s (%.*s)", idx ? "," : "", STR_ARG(of->printed),
                      STR_ARG(of->id));
    }
    add_step(made, cell->recomputed, str_dup(made->arena, strbuf_str(&words)));
}

static void add_rounded(const struct made *made, const struct cell_audit *cell)
{
    bool is_cut = str_eq_z(cell->rounding, "truncate");
    int decimals = verdict_decimals(cell->cell->published, cell->cell->decimals);
    add_step(made, rule_round(is_cut ? ROUND_TRUNCATE : ROUND_NEAREST, cell->recomputed, decimals),
             str_printf(made->arena, "%s %d decimal%s", is_cut ? "cut to" : "rounded to", decimals,
                        plural_s((size_t)decimals)));
}

void trace_of(struct arena *arena, const struct cell_audit *cell, struct trace *ret_trace)
{
    struct trace how = {.rule = cell->by};
    const struct made made = {arena, &how.steps};
    how.logs = arena_array(arena, struct trace_log, cell->n_logs + 1);
    for (size_t idx = 0; how.rule && idx < cell->n_logs; idx++) {
        trace_log_of(arena, how.rule, cell->bound->format, cell, idx, &how.logs[idx]);
    }
    if (isfinite(cell->recomputed)) {
        if (cell->cell->derive != DERIVE_NONE) {
            add_derived(&made, cell);
        } else if (how.rule) {
            add_combined(&made, &how, cell);
        }
        add_rounded(&made, cell);
    }
    *ret_trace = how;
}
