/* SPDX-License-Identifier: Apache-2.0 */
/* If its rule does not give a cell: a search over named statistics and windows for one that does. With many candidates
   some fit by chance, so only a candidate that gives every cell of the group counts as an explanation. */
#include "base/base.h"

#include "judge/audit_parts.h"

#define SKIP_MAX        120
#define DROP_MAX        2
#define LAST_MAX        50
#define SINGLES_MAX     2000
#define STAMP_SKIP_MAX  20
#define OTHER_BATCH_MAX 32
#define TRIM_COUNT      5
#define TRIM_SHARE      0.05
#define WORDS_BYTES     240
#define OF_GROUP        "numbers that one rule must give together"

struct search {
    struct audit *audit;
    struct cell_audit *cell;
    const struct rule *base;
    struct explanation found;
    double batch_factor; /* of the candidate being tried: its batch over the row's */
    struct rule_memo memos[LOGS_MAX];
};

/* Whether it is exact when rounded or when cut off, and which of the two. */
static bool gives(const struct cell_audit *a, double value, enum rounding rounding)
{
    return verdict_audit(value, a->cell->published, a->cell->decimals, rounding) == AUDIT_EXACT;
}

static bool is_in_group(const struct cell_audit *a, const struct cell_audit *b)
{
    return b->n_logs > 0 && b->cell->derive == DERIVE_NONE &&
           str_eq(a->of_case->group, b->of_case->group) && a->cell->metric == b->cell->metric &&
           a->bound->format == b->bound->format;
}

/* How many cells of the group this candidate gives with the same rounding. */
static size_t count_given(const struct search *s, const struct rule *rule, enum rounding rounding)
{
    const struct report_audit *out = s->audit->out;
    size_t n = 0;
    for (size_t idx = 0; idx < out->n_cells; idx++) {
        struct rule_value value = {0};
        n += is_in_group(s->cell, &out->cells[idx]) &&
             audit_apply(rule, &out->cells[idx], NULL, &value) &&
             gives(&out->cells[idx], value.value * s->batch_factor, rounding);
    }
    return n;
}

static struct str describe(const struct search *s, const struct rule *rule, enum rounding rounding)
{
    CLEANUP(strbuf) struct strbuf words = STRBUF(WORDS_BYTES);
    rule_describe(rule, &words);
    if (s->batch_factor > 1 || s->batch_factor < 1) {
        strbuf_printf(&words, ", with a batch of %.0f",
                      s->batch_factor * (double)s->cell->of_case->batch_per_gpu);
    }
    if (rounding == ROUND_TRUNCATE) {
        strbuf_add_z(&words, ", cut off");
    }
    return str_dup(s->audit->arena, strbuf_str(&words));
}

static void try_rule(struct search *s, const struct rule *rule)
{
    struct rule_value value = {0};
    enum rounding rounding = ROUND_NEAREST;
    if (!audit_apply(rule, s->cell, s->memos, &value)) {
        return;
    }
    s->found.n_tried++;
    value.value *= s->batch_factor;
    if (!gives(s->cell, value.value, ROUND_NEAREST)) {
        rounding = ROUND_TRUNCATE;
        if (!gives(s->cell, value.value, ROUND_TRUNCATE)) {
            return;
        }
    }
    s->found.n_matching++;
    s->found.n_single += value.n_used == 1;
    size_t n_given = count_given(s, rule, rounding);
    if (n_given > s->found.best_explains) {
        s->found.best_explains = n_given;
        s->found.best = describe(s, rule, rounding);
    }
}

static void try_windows(struct search *s, struct rule rule, int64_t n)
{
    static const enum statistic STATISTICS[] = {STAT_MEAN,          STAT_MEDIAN,
                                                STAT_TRIMMED_MEAN,  STAT_OLYMPIC_MEAN,
                                                STAT_HARMONIC_MEAN, STAT_TIME_WEIGHTED_MEAN,
                                                STAT_MAX,           STAT_MIN};
    for (size_t stat = 0; stat < ARRAY_LEN(STATISTICS); stat++) {
        rule.statistic = STATISTICS[stat];
        rule.trim_count = rule.statistic == STAT_TRIMMED_MEAN ? TRIM_COUNT : 0;
        rule.trim_share = rule.statistic == STAT_TRIMMED_MEAN ? TRIM_SHARE : 0;
        for (int64_t drop = 0; drop <= DROP_MAX; drop++) {
            for (int64_t skip = 0; skip <= SKIP_MAX && skip + drop < n; skip++) {
                rule.window.skip = skip;
                rule.window.drop_last = drop;
                try_rule(s, &rule);
            }
        }
    }
    rule.window = (struct window){0};
    rule.trim_count = 0;
    rule.trim_share = 0;
    for (int64_t last = 1; last <= LAST_MAX && last < n; last++) {
        rule.window.last = last;
        rule.statistic = STAT_MEAN;
        try_rule(s, &rule);
        rule.statistic = STAT_MEDIAN;
        try_rule(s, &rule);
    }
}

static void try_singles(struct search *s, struct rule rule, int64_t n)
{
    rule.statistic = STAT_FIRST;
    for (int64_t skip = 0; skip < SINGLES_MAX && skip < n; skip++) {
        rule.window.skip = skip;
        try_rule(s, &rule);
    }
}

static void try_stamps(struct search *s, struct rule rule, int64_t n)
{
    rule.statistic = STAT_TIMESTAMPS;
    rule.scale = SCALE_NONE;
    for (int64_t skip = 0; skip <= STAMP_SKIP_MAX && skip + 1 < n; skip++) {
        rule.window.skip = skip;
        try_rule(s, &rule);
    }
}

/* Step times become rates by a batch: each other batch is a candidate. */
static void try_batches(struct search *s, struct rule rule, int64_t n)
{
    rule.statistic = STAT_MEAN;
    for (int64_t batch = 1; batch <= OTHER_BATCH_MAX; batch *= 2) {
        s->batch_factor = (double)batch / (double)s->cell->of_case->batch_per_gpu;
        for (int64_t skip = 0; skip <= STAMP_SKIP_MAX && skip < n; skip++) {
            rule.window.skip = skip;
            if (batch != s->cell->of_case->batch_per_gpu) {
                try_rule(s, &rule);
            }
        }
    }
    s->batch_factor = 1;
}

enum scale audit_scale_of(const struct series *series)
{
    if (series->quantity == QTY_STEP_TIME) {
        return SCALE_GLOBAL_BATCH_OVER;
    }
    return series->scope == SCOPE_RANK   ? SCALE_GPUS
           : series->scope == SCOPE_NODE ? SCALE_NODES
                                         : SCALE_NONE;
}

/* Whether this series has the same kind of number as that of the stated rule. */
static bool is_candidate(const struct search *s, const struct series *series)
{
    bool is_rate = s->cell->cell->metric == METRIC_THROUGHPUT ||
                   s->cell->cell->metric == METRIC_RUN_THROUGHPUT;
    if (!is_rate || series->n == 0) {
        return series->n > 0 && str_eq(series->name, s->base->series);
    }
    return str_eq(series->name, s->base->series) || series->quantity == QTY_RATE ||
           series->quantity == QTY_RUNNING_MEAN || series->quantity == QTY_SUMMARY;
}

static void search_series(struct search *s, const struct series *series)
{
    struct rule rule = *s->base;
    int64_t n = (int64_t)series->n;
    bool is_own = str_eq(series->name, s->base->series);
    rule.series = series->name;
    rule.scale = is_own ? s->base->scale : audit_scale_of(series);
    rule.window = (struct window){0};
    rule.rounding = ROUND_NEAREST;
    rule.trim_count = 0;
    rule.trim_share = 0;
    try_windows(s, rule, n);
    try_singles(s, rule, n);
    if (is_own && s->cell->cell->metric == METRIC_THROUGHPUT) {
        try_stamps(s, rule, n);
    }
    if (rule.scale == SCALE_GLOBAL_BATCH_OVER) {
        try_batches(s, rule, n);
    }
}

static void search_logs(struct audit *audit, struct cell_audit *a)
{
    struct search s = {.audit = audit, .cell = a, .base = a->by, .batch_factor = 1};
    const struct measurement *m = cell_measurement(a, 0);
    if (!s.base || !m) {
        return;
    }
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        s.found.n_group += is_in_group(a, &audit->out->cells[idx]);
    }
    for (size_t idx = 0; idx < m->n_series; idx++) {
        if (is_candidate(&s, &m->series[idx])) {
            search_series(&s, &m->series[idx]);
        }
    }
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        rule_memo_release(&s.memos[idx]);
    }
    a->explanation = s.found;
}

/* --- ratios -------------------------------------------------------------------------------------- */

static bool same_base(const struct cell_audit *a, const struct cell_audit *b)
{
    return b->cell->derive == DERIVE_RATIO && a->of_case->stack == b->of_case->stack &&
           a->bound->of[1] == b->bound->of[1];
}

/* Tries other numbers printed for the denominator's case, such as one of its runs, as the denominator. */
static void search_ratio(struct audit *audit, struct cell_audit *a)
{
    const struct bound_cell *own = a->bound->of[1];
    const struct report_case *base = own->of_case;
    const struct report_audit *out = audit->out;
    struct explanation *e = &a->explanation;
    for (size_t idx = 0; idx < out->n_cells; idx++) {
        e->n_group += same_base(a, &out->cells[idx]);
    }
    for (size_t idx = 0; idx < base->n_cells; idx++) {
        const struct cell *other = &base->cells[idx];
        size_t n_given = 0;
        bool is_rate = other->metric == METRIC_THROUGHPUT || other->metric == METRIC_RUN_THROUGHPUT;
        if (other == own->cell || !is_rate) {
            continue;
        }
        e->n_tried++;
        if (!gives(a, a->bound->of[0]->cell->published / other->published, ROUND_NEAREST)) {
            continue;
        }
        e->n_matching++;
        for (size_t cell = 0; cell < out->n_cells; cell++) {
            const struct cell_audit *b = &out->cells[cell];
            n_given += same_base(a, b) &&
                       gives(b, b->bound->of[0]->cell->published / other->published, ROUND_NEAREST);
        }
        if (n_given > e->best_explains) {
            e->best_explains = n_given;
            e->best = str_printf(audit->arena, "over %s (%s)", other->printed.ptr, other->id.ptr);
        }
    }
}

bool explains(const struct explanation *e)
{
    return e->best.ptr && e->n_group > 1 && e->best_explains == e->n_group;
}

static void note_search(struct audit *audit, struct cell_audit *a)
{
    const struct explanation *e = &a->explanation;
    if (e->n_tried == 0 || a->note.ptr) {
        return;
    }
    if (e->n_matching == 0) {
        a->note = str_printf(audit->arena, "none of %zu other rules gives it", e->n_tried);
    } else if (explains(e)) {
        a->note = str_printf(audit->arena, "%s gives all %zu numbers of its group (" OF_GROUP ")",
                             e->best.ptr, e->n_group);
    } else if (e->n_group == 1) {
        a->note =
            str_printf(audit->arena,
                       "%zu of %zu other rules give it; as the only number of its group (" OF_GROUP
                       "), it proves none of them",
                       e->n_matching, e->n_tried);
    } else {
        a->note =
            str_printf(audit->arena,
                       "%zu of %zu other rules give it, but none gives its whole group (" OF_GROUP
                       "); %s gives %zu of %zu",
                       e->n_matching, e->n_tried, e->best.ptr, e->best_explains, e->n_group);
    }
}

void audit_explain(struct audit *audit)
{
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        struct cell_audit *a = &audit->out->cells[idx];
        if (a->verdict != AUDIT_DIFFERS && a->verdict != AUDIT_MATCH) {
            continue;
        }
        if (a->cell->derive == DERIVE_RATIO) {
            search_ratio(audit, a);
        } else if (a->cell->derive == DERIVE_NONE) {
            search_logs(audit, a);
        }
        note_search(audit, a);
    }
}
