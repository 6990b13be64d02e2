/* SPDX-License-Identifier: Apache-2.0 */
/* From a bound report (judge/bind.h), whose logs are read, to verdicts.

   A cell with logs goes one way (judge_logged). A question whose answer ends it makes it no_log, and the reason is its note:

       link_logs: a missing log is only noted -> look_at_logs: identity and state, if a format reads them
         -> is there no log? -> is there no rule? -> do its own numbers refute it? -> apply_to_logs: rule, scale, unit
         -> verdict_audit: printed digits -> judge_digits: a slip? -> judge_row: of another row?

   A derived cell is judged from what is printed for its own cells, and is as proven as they are.

   (1) Its number and what proves it are apart: a log that contradicts the row makes the cell differ whatever the number is, and a
       number that follows is exact also where proof is only partial.
   (2) Names were looked up before: a format or rule that does not exist is bound->why_no_rule, and outranks whatever its logs
       lack.
   (3) A cell has one note, the first reason that was found; later parts (audit_explain.c) say something only where it is free.
   (4) Nothing here reads a file or the clock, and the same binding gives the same bytes. */
#include "base/base.h"

#include "judge/audit.h"

#include <math.h>

#include "judge/audit_parts.h"
#include "judge/stats.h"

#define DECIMALS_MORE_MAX 6

struct spot log_spot(const struct audit *audit, const struct cell_audit *cell, size_t log,
                     int64_t line)
{
    return (struct spot){.report = audit->report,
                         .of_case = cell->of_case,
                         .cell = cell->cell,
                         .log = cell->n_logs ? cell->logs[log].path : STR_EMPTY,
                         .line = line};
}

/* ---- the verdict on each cell ---- */

const struct measurement *cell_measurement(const struct cell_audit *cell, size_t log)
{
    return log < cell->n_logs ? cell->bound->logs[log]->measurement : NULL;
}

/* What rules need to know about the case, as published. */
static struct rule_case rule_case_of(const struct report_case *c)
{
    return (struct rule_case){
        .gpus = c->gpus, .nodes = c->nodes, .batch_per_gpu = c->batch_per_gpu};
}

const char *cell_verdict_words(const struct cell_audit *cell)
{
    static const char *const PROPOSED[] = {[AUDIT_EXACT] = "exact, proposed",
                                           [AUDIT_MATCH] = "match, proposed",
                                           [AUDIT_DIFFERS] = "differs, proposed",
                                           [AUDIT_NO_LOG] = "no_log"};
    return cell->is_proposed ? PROPOSED[cell->verdict] : AUDIT_VERDICT_NAMES[cell->verdict];
}

const char *cell_cut_words(const struct cell_audit *cell)
{
    return cell->verdict == AUDIT_EXACT &&
                   verdict_audit(cell->recomputed, cell->cell->published, cell->cell->decimals,
                                 ROUND_NEAREST) != AUDIT_EXACT
               ? " as truncated"
               : "";
}

static const char *const DERIVE_RULES[] = {[DERIVE_NONE] = "",
                                           [DERIVE_RATIO] = "derived:ratio",
                                           [DERIVE_MEAN] = "derived:mean",
                                           [DERIVE_MEDIAN] = "derived:median"};

/* From the printed values of its own cells. */
static double derived_value(const struct bound_cell *bound, struct arena *arena)
{
    const struct cell *cell = bound->cell;
    double *values = arena_array(arena, double, cell->n_of);
    for (size_t idx = 0; idx < cell->n_of; idx++) {
        values[idx] = bound->of[idx]->cell->published;
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

/* A derived cell has no rule that says how its digits were made: either rounding counts, and the verdict says which. */
static void judge_derived(struct audit *audit, struct cell_audit *a)
{
    const struct cell *cell = a->cell;
    double value = derived_value(a->bound, audit->arena);
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

static struct str note_of_absent(const struct audit *audit, const struct audit_log *log)
{
    const char *text;
    if (log->is_unreadable) {
        text = arena_printf(audit->arena, "log cannot be read: %.*s", STR_ARG(log->why));
    } else if (log->tried.ptr) {
        text = arena_printf(audit->arena, "log missing: %.*s (tried %.*s)", STR_ARG(log->ref.path),
                            STR_ARG(log->tried));
    } else {
        text = arena_printf(audit->arena, "log missing: %.*s", STR_ARG(log->ref.path));
    }
    return str_of(text);
}

static void link_logs(struct audit *audit, const struct report_case *c, struct cell_audit *a)
{
    a->n_logs = c->n_logs;
    a->logs = arena_array(audit->arena, struct log_ref, c->n_logs + 1);
    for (size_t idx = 0; idx < c->n_logs; idx++) {
        const struct audit_log *log = a->bound->logs[idx];
        a->logs[idx] = log->ref;
        if (!log->measurement && !a->note.ptr) {
            a->note = note_of_absent(audit, log);
        }
    }
}

struct rule_case audit_case_of_log(const struct report_case *c, const struct rule *rule,
                                   const struct format *format, const struct measurement *m)
{
    struct rule_case of = rule_case_of(c);
    if (!format || rule->match_gpus) {
        return of;
    }
    struct log_counts counts = identity_counts(format, m, rule);
    of.gpus = counts.gpus > 0 ? counts.gpus : of.gpus;
    of.nodes = counts.nodes > 0 ? counts.nodes : of.nodes;
    of.batch_per_gpu = counts.batch_per_gpu > 0 ? counts.batch_per_gpu : of.batch_per_gpu;
    return of;
}

struct applying {
    /* The logs' format, if the counts that they state are to be used; NULL: the row's own counts are. */
    const struct format *format;
    struct rule_memo *memos; /* one for each log, or NULL */
};

/* A time is one quantity in whatever unit its row prints it. */
static double in_unit_of_cell(const struct cell_audit *a, const struct rule *rule)
{
    const struct measurement *m = cell_measurement(a, 0);
    const struct series *s = m ? measurement_series(m, rule->series) : NULL;
    double ratio = s && a->bound->format ? unit_time_ratio(a->bound->format->vocabulary,
                                                           rule_unit(rule, s->unit), a->cell->unit)
                                         : 0;
    return ratio > 0 ? ratio : 1;
}

static int apply_to_logs(const struct rule *rule, const struct cell_audit *a,
                         const struct applying *by, struct rule_value *ret, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    double values[LOGS_MAX];
    struct rule_repeat one = {0};
    struct rule_value first = {0};
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        const struct measurement *m = cell_measurement(a, idx);
        if (!m) {
            return err_set(err, ERR_PARSE, "a log is missing");
        }
        struct rule_case of = audit_case_of_log(a->of_case, rule, by->format, m);
        of.memo = by->memos ? &by->memos[idx] : NULL;
        if (rule_repeat(rule, m, &of, &arena, &one, err) < 0) {
            return a->n_logs > 1 ? err_wrap(err, "%.*s", STR_ARG(a->logs[idx].path)) : -1;
        }
        values[idx] = one.value;
        first = idx == 0 ? one.by : first;
    }
    bool takes_mean = a->bound->takes_mean && rule->repeats == REPEATS_SINGLE;
    if (rule_combine(takes_mean ? REPEATS_MEAN : rule->repeats, values, a->n_logs, &first.value,
                     err) < 0) {
        return -1;
    }
    first.value *= a->of_case->factor.value > 0 ? a->of_case->factor.value : 1;
    first.value *= in_unit_of_cell(a, rule);
    *ret = first;
    return 0;
}

bool audit_apply(const struct rule *rule, const struct cell_audit *cell, struct rule_memo *memos,
                 struct rule_value *ret)
{
    const struct applying by = {NULL, memos};
    return cell->n_logs > 0 && apply_to_logs(rule, cell, &by, ret, ERR_IGNORED) == 0;
}

/* No number can be recomputed for this cell: the verdict says so, and the note says why, unless it has one (3). */
static void judge_none(struct cell_audit *a, enum log_state state, struct str why)
{
    a->verdict = AUDIT_NO_LOG;
    a->recomputed = (double)NAN;
    a->rel_diff = (double)NAN;
    a->log_state = state > a->log_state ? state : a->log_state;
    a->proof = identity_proof(&a->identity);
    if (!a->note.ptr) {
        a->note = why;
    }
}

/* A log that gives no number, whatever its rule, refutes the cell; what speaks against it is a finding. */
static enum log_state judge_state(struct audit *audit, struct cell_audit *a, size_t idx)
{
    const struct audit_log *log = a->bound->logs[idx];
    const struct rule *rule = a->bound->rule;
    if (!rule) { /* no log would give its number, whatever its state is */
        return LOG_WHOLE;
    }
    if (!log->measurement) {
        return log->is_unreadable ? LOG_UNREADABLE : LOG_ABSENT;
    }
    const struct judgement j = judgement_of(audit->arena, log->measurement, rule, DEMAND_ANY);
    a->refuted = a->refuted.ptr || j.gives ? a->refuted : j.why;
    if (j.causes.doubt.ptr) {
        finding_add(audit->found, j.gives ? "two-levels" : "log-contradicts-itself",
                    log_spot(audit, a, idx, 0), "%.*s: %.*s", STR_ARG(a->cell->id),
                    STR_ARG(j.causes.doubt));
    }
    return j.state;
}

/* What each log proves about the row, and whether it is whole. */
static void look_at_logs(struct audit *audit, struct cell_audit *a)
{
    const struct format *format = a->bound->format;
    const struct rule *rule = a->bound->rule;
    const struct identity_row row = identity_row_of(a->of_case, a->cell);
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        const struct audit_log *log = a->bound->logs[idx];
        const struct measurement *m = cell_measurement(a, idx);
        struct identity one =
            m ? identity_of(audit->arena, format, m, &row, rule)
              : identity_none(log->is_unreadable ? STR_LIT("the log cannot be read")
                                                 : STR_LIT("the log is missing"));
        enum log_state state = judge_state(audit, a, idx);
        identity_see_path(audit->arena, &one, &row, log->path);
        if (identity_proof(&one) > identity_proof(&a->identity)) {
            a->identity_log = idx;
        }
        identity_join(&a->identity, &one);
        a->log_state = state > a->log_state ? state : a->log_state;
    }
    if (rule && cell_measurement(a, 0)) {
        identity_count_logs(audit->arena, &a->identity, rule, cell_measurement(a, 0), a->n_logs);
    }
}

/* The log belongs to another row: its number is not this cell's, whatever it is (1). */
static void judge_row(struct audit *audit, struct cell_audit *a)
{
    a->proof = identity_proof(&a->identity);
    if (a->proof != PROOF_CONTRADICTED) {
        return;
    }
    a->verdict = AUDIT_DIFFERS;
    for (size_t idx = 0; idx < IDENTITY_FACTS && !a->note.ptr; idx++) {
        if (a->identity.items[idx].state == ID_CONTRADICTED) {
            a->note = str_printf(audit->arena, "the log is of another row: %.*s",
                                 STR_ARG(a->identity.items[idx].why));
        }
    }
}

/* One different digit before the last: rounding cannot cause that, a typing error can. */
static bool is_slip(const char *printed, const char *found)
{
    size_t len = strlen(printed);
    size_t n = 0;
    size_t at = 0;
    if (len != strlen(found)) {
        return false;
    }
    for (size_t idx = 0; idx < len; idx++) {
        if (printed[idx] != found[idx]) {
            n++;
            at = idx;
        }
    }
    return n == 1 && at + 1 < len;
}

/* Notes the digits of a match. */
static void judge_digits(struct audit *audit, struct cell_audit *a, enum rounding rounding)
{
    struct str found;
    int decimals;
    if (a->verdict != AUDIT_MATCH) {
        return;
    }
    decimals = verdict_decimals(a->cell->published, a->cell->decimals);
    found =
        str_printf(audit->arena, "%.*f", decimals, rule_round(rounding, a->recomputed, decimals));
    a->digits = str_printf(audit->arena, "%s printed for %s", a->cell->printed.ptr, found.ptr);
    if (is_slip(a->cell->printed.ptr, found.ptr)) {
        a->verdict = AUDIT_DIFFERS;
        a->note = str_printf(audit->arena, "a slip of one digit: %s", a->digits.ptr);
    }
}

static void judge_logged(struct audit *audit, struct cell_audit *a)
{
    const struct report_case *c = a->of_case;
    const struct cell *cell = a->cell;
    const struct format *format = a->bound->format;
    const struct rule *rule = a->bound->rule;
    const struct applying by = {format, NULL};
    struct str absent = c->matched.ptr ? c->matched : STR_LIT("no log is published for it");
    struct rule_value value = {0};
    struct err err = {0};
    if (c->n_logs > 0) {
        link_logs(audit, c, a);
    }
    if (c->n_logs > 0 && format) {
        look_at_logs(audit, a);
    } else {
        a->identity = identity_none(c->n_logs > 0 ? STR_LIT("no format reads its log") : absent);
    }
    if (c->n_logs == 0 && !a->bound->is_missing) {
        judge_none(a, LOG_ABSENT, absent);
        return;
    }
    if (!rule) {
        /* A missing name takes precedence over anything that its logs lack: no log would give this number (2). */
        a->note = a->bound->is_missing ? STR_EMPTY : a->note;
        judge_none(a, LOG_NO_RULE, str_of(a->bound->why_no_rule));
        return;
    }
    a->rule = rule->id;
    a->by = rule;
    if (a->refuted.ptr) {
        judge_none(
            a, LOG_UNREADABLE,
            str_printf(audit->arena, "the log contradicts itself: %.*s", STR_ARG(a->refuted)));
        return;
    }
    if (apply_to_logs(rule, a, &by, &value, &err) < 0) {
        judge_none(a, LOG_UNREADABLE, str_dup(audit->arena, str_of(err.msg)));
        return;
    }
    a->recomputed = value.value;
    a->n_used = value.n_used;
    a->rel_diff = rel_diff(value.value, cell->published);
    a->is_proposed = format->is_proposed;
    a->rounding = rule->rounding == ROUND_TRUNCATE ? STR_LIT("truncate") : STR_LIT("nearest");
    a->verdict = verdict_audit(value.value, cell->published, cell->decimals, rule->rounding);
    judge_digits(audit, a, rule->rounding);
    judge_row(audit, a);
}

/* A derived cell is proven as far as the cells that it is derived from are. */
static void prove_derived(struct audit *audit, struct cell_audit *a)
{
    for (size_t idx = 0; idx < a->cell->n_of; idx++) {
        const struct cell_audit *of =
            &audit->out->cells[a->bound->of[idx] - audit->binding->cells]; /* in the same order */
        identity_join(&a->identity, &of->identity);
        a->is_proposed = a->is_proposed || of->is_proposed;
        a->log_state = of->log_state > a->log_state ? of->log_state : a->log_state;
    }
    judge_row(audit, a);
}

static void judge_cells(struct audit *audit)
{
    const struct binding *binding = audit->binding;
    struct report_audit *out = audit->out;
    out->cells = arena_array(audit->arena, struct cell_audit, binding->n_cells + 1);
    for (size_t idx = 0; idx < binding->n_cells; idx++) {
        struct cell_audit *a = &out->cells[out->n_cells++];
        a->bound = &binding->cells[idx];
        a->of_case = a->bound->of_case;
        a->cell = a->bound->cell;
        if (a->cell->derive != DERIVE_NONE) {
            judge_derived(audit, a);
        } else {
            judge_logged(audit, a);
        }
    }
    for (int pass = 0; pass <= DERIVE_DEPTH_MAX; pass++) { /* each settles one more level */
        for (size_t idx = 0; idx < out->n_cells; idx++) {
            if (out->cells[idx].cell->derive != DERIVE_NONE) {
                prove_derived(audit, &out->cells[idx]);
            }
        }
    }
}

static bool is_asked(const struct cell_audit *a)
{
    return a->by && a->verdict != AUDIT_NO_LOG;
}

/* A rule that was chosen for the numbers of a table is as good as the share of them that it gives. */
static void count_inferred(struct report_audit *out)
{
    for (size_t idx = 0; out->report->rules_inferred && idx < out->n_cells; idx++) {
        struct cell_audit *a = &out->cells[idx];
        for (size_t other = 0; is_asked(a) && other < out->n_cells; other++) {
            const struct cell_audit *b = &out->cells[other];
            bool is_of_table =
                is_asked(b) && b->by == a->by && str_eq(b->cell->table, a->cell->table);
            a->n_asked += is_of_table;
            a->n_given += is_of_table && b->verdict != AUDIT_DIFFERS;
        }
    }
}

static struct str percent_words(struct arena *arena, double share)
{
    return fabs(share) < 0.00005 ? STR_LIT("0.00 %") : str_printf(arena, "%+.2f %%", 100 * share);
}

struct str cell_diff_words(struct arena *arena, const struct cell_audit *cell)
{
    return isfinite(cell->rel_diff) ? percent_words(arena, cell->rel_diff) : STR_LIT("");
}

struct str cell_number_words(struct arena *arena, const struct cell_audit *cell)
{
    int more = 0;
    double shown = cell->recomputed;
    if (!isfinite(shown)) {
        return STR_LIT("");
    }
    for (; more < DECIMALS_MORE_MAX; more++) {
        shown = rule_round(ROUND_NEAREST, cell->recomputed, cell->cell->decimals + more);
        if (str_eq(percent_words(arena, shown / cell->cell->published - 1),
                   cell_diff_words(arena, cell))) {
            break;
        }
    }
    return str_printf(arena, "%.*f", cell->cell->decimals + more, shown);
}

struct str cell_rule_words(struct arena *arena, const struct cell_audit *cell)
{
    return cell->n_asked ? str_printf(arena, "%.*s (inferred: gives %zu of %zu)",
                                      STR_ARG(cell->rule), cell->n_given, cell->n_asked)
                         : cell->rule;
}

struct str audit_inferred_words(struct arena *arena, const struct report_audit *audit)
{
    size_t n_given = 0;
    size_t n_asked = 0;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        n_asked += audit->cells[idx].n_asked > 0;
        n_given += audit->cells[idx].n_asked > 0 && audit->cells[idx].verdict != AUDIT_DIFFERS;
    }
    return n_asked ? str_printf(arena, "; rules inferred from the numbers give %zu of %zu", n_given,
                                n_asked)
                   : STR_LIT("");
}

void audit_judge(struct arena *arena, const struct binding *binding, struct report_audit *ret_audit)
{
    struct audit audit = {arena, binding->report, binding, ret_audit, &ret_audit->findings};
    *ret_audit = (struct report_audit){.report = binding->report, .findings = {.arena = arena}};
    judge_cells(&audit);
    count_inferred(ret_audit);
    audit_explain(&audit);
    audit_like_for_like(&audit);
    audit_find_cells(&audit);
    audit_find_facts(&audit);
    ret_audit->n_from_logs = ret_audit->findings.n;
}
