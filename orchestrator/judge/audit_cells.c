/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on each cell: by its rule from its logs, or from the cells it is derived from. */
#include "base/base.h"

#include <math.h>

#include "judge/audit_parts.h"
#include "judge/stats.h"

struct str cell_format(const struct report_case *c, const struct cell *cell)
{
    return cell->derive != DERIVE_NONE ? STR_EMPTY : cell->format.ptr ? cell->format : c->format;
}

/* The case's rule is for its throughput. Other metrics have their own rule or none. */
struct str cell_rule(const struct report_case *c, const struct cell *cell)
{
    bool is_rate = cell->metric == METRIC_THROUGHPUT || cell->metric == METRIC_RUN_THROUGHPUT;
    if (cell->rule.ptr) {
        return cell->rule;
    }
    return is_rate && cell->derive == DERIVE_NONE ? c->rule : STR_EMPTY;
}

struct rule_case rule_case_of(const struct report_case *c)
{
    return (struct rule_case){
        .gpus = c->gpus, .nodes = c->nodes, .batch_per_gpu = c->batch_per_gpu};
}

static const char *const DERIVE_RULES[] = {[DERIVE_NONE] = "",
                                           [DERIVE_RATIO] = "derived:ratio",
                                           [DERIVE_MEAN] = "derived:mean",
                                           [DERIVE_MEDIAN] = "derived:median"};

/* From what is printed for its own cells. References were checked when the report was read. */
static double derived_value(const struct report *report, const struct cell *cell,
                            struct arena *arena)
{
    double *values = arena_array(arena, double, cell->n_of);
    for (size_t idx = 0; idx < cell->n_of; idx++) {
        const struct cell *of = report_cell_find(report, cell->of[idx], NULL);
        ASSERT(of);
        values[idx] = of->published;
    }
    if (cell->derive == DERIVE_RATIO) {
        return values[0] / values[1];
    }
    if (cell->derive == DERIVE_MEAN) {
        return stats_mean(values, cell->n_of);
    }
    stats_sort(values, cell->n_of);
    return stats_sorted_median(values, cell->n_of);
}

/* A derived cell has no rule that would say how its digits were made: either way of making them counts, and is said. */
static void judge_derived(struct audit *audit, struct cell_audit *a)
{
    const struct cell *cell = a->cell;
    double value = derived_value(audit->report, cell, audit->arena);
    a->rule = str_of(DERIVE_RULES[cell->derive]);
    a->recomputed = value;
    a->rel_diff = rel_diff(value, cell->published);
    a->rounding = STR_LIT("nearest");
    a->verdict = verdict_audit(value, cell->published, cell->decimals, ROUND_NEAREST);
    if (a->verdict != AUDIT_EXACT &&
        verdict_audit(value, cell->published, cell->decimals, ROUND_TRUNCATE) == AUDIT_EXACT) {
        a->verdict = AUDIT_EXACT;
        a->rounding = STR_LIT("truncate");
        a->note = STR_LIT("printed digits are cut off, not rounded");
    }
}

static const struct rule *find_rule(const struct audit *audit, struct str format, struct str id)
{
    const struct format *f = format_find(audit->formats, format);
    return f ? format_rule(f, id) : NULL;
}

static void link_logs(struct audit *audit, const struct report_case *c, struct str format,
                      struct cell_audit *a)
{
    a->n_logs = c->n_logs;
    a->logs = arena_array(audit->arena, struct log_ref, c->n_logs + 1);
    a->measurements = arena_array(audit->arena, const struct measurement *, c->n_logs + 1);
    for (size_t idx = 0; idx < c->n_logs; idx++) {
        const struct audit_log *log = audit_logs_find(audit->logs, c->logs[idx], format);
        ASSERT(log);
        a->logs[idx] = log->ref;
        a->measurements[idx] = log->measurement;
        if (!log->measurement && !a->note.ptr) {
            a->note = arena_str(audit->arena, "log not there: %.*s", STR_ARG(log->ref.path));
        }
    }
}

static int apply_to_logs(const struct rule *rule, const struct cell_audit *a,
                         struct rule_value *ret, struct err *err)
{
    struct rule_case of = rule_case_of(a->of_case);
    double values[LOGS_MAX];
    struct rule_value one = {0};
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        if (!a->measurements[idx]) {
            return err_set(err, ERR_PARSE, "log not there");
        }
        if (rule_apply(rule, a->measurements[idx], &of, &one, err) < 0) {
            return a->n_logs > 1 ? err_wrap(err, "%.*s", STR_ARG(a->logs[idx].path)) : -1;
        }
        values[idx] = one.value;
        if (idx == 0) {
            *ret = one;
        }
    }
    return rule_combine(rule->repeats, values, a->n_logs, &ret->value, err);
}

bool audit_apply(const struct rule *rule, const struct cell_audit *cell, struct rule_value *ret)
{
    struct err err = {0};
    return cell->n_logs > 0 && apply_to_logs(rule, cell, ret, &err) == 0;
}

/* No number of this cell can be recomputed: the verdict says so, and the note says why. */
static void judge_none(struct cell_audit *a, struct str why)
{
    a->verdict = AUDIT_NO_LOG;
    a->recomputed = (double)NAN;
    a->rel_diff = (double)NAN;
    if (!a->note.ptr) {
        a->note = why;
    }
}

static void judge_logged(struct audit *audit, struct cell_audit *a)
{
    const struct report_case *c = a->of_case;
    const struct cell *cell = a->cell;
    struct str format = cell_format(c, cell);
    struct str id = cell_rule(c, cell);
    const struct rule *rule;
    struct rule_value value = {0};
    struct err err = {0};
    if (c->n_logs == 0) {
        judge_none(a, STR_LIT("no log is published for it"));
        return;
    }
    link_logs(audit, c, format, a);
    rule = id.ptr ? find_rule(audit, format, id) : NULL;
    if (!rule) {
        judge_none(a, id.ptr ? arena_str(audit->arena, "there is no rule %.*s", STR_ARG(id))
                             : STR_LIT("no rule says how its log gives this number"));
        return;
    }
    a->rule = rule->id;
    if (apply_to_logs(rule, a, &value, &err) < 0) {
        judge_none(a, str_dup(audit->arena, str_of(err.msg)));
        return;
    }
    a->recomputed = value.value;
    a->n_used = value.n_used;
    a->rel_diff = rel_diff(value.value, cell->published);
    a->rounding = rule->rounding == ROUND_TRUNCATE ? STR_LIT("truncate") : STR_LIT("nearest");
    a->verdict = verdict_audit(value.value, cell->published, cell->decimals, rule->rounding);
}

void audit_cells(struct audit *audit)
{
    const struct report *report = audit->report;
    struct report_audit *out = audit->out;
    size_t n = 0;
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        n += report->cases[idx].n_cells;
    }
    out->cells = arena_array(audit->arena, struct cell_audit, n + 1);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        for (size_t cell = 0; cell < c->n_cells; cell++) {
            struct cell_audit *a = &out->cells[out->n_cells++];
            a->of_case = c;
            a->cell = &c->cells[cell];
            if (a->cell->derive != DERIVE_NONE) {
                judge_derived(audit, a);
            } else {
                judge_logged(audit, a);
            }
        }
    }
}
