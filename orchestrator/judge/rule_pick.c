/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples of its series a rule's window holds. */
#include "base/base.h"

#include "judge/rule_impl.h"
#include "judge/stats.h"

#include <math.h>

void picked_cleanup(struct picked *picked)
{
    if (!picked->kept) {
        free(picked->items);
    }
}

struct runs { /* that a series has samples of */
    int32_t first, last;
};

/* Taken from the series itself, so that a table after two runs belongs to one run. */
static struct runs runs_of(const struct series *series)
{
    struct runs runs = {INT32_MAX, -1};
    for (size_t idx = 0; idx < series->n; idx++) {
        int32_t run = series->samples[idx].run;
        runs.first = run < runs.first ? run : runs.first;
        runs.last = run > runs.last ? run : runs.last;
    }
    return runs;
}

static bool is_choice(const struct rule *rule, struct runs runs)
{
    return rule->run != RUN_ONLY || runs.first == runs.last;
}

int32_t rule_run(const struct rule *rule, const struct measurement *m)
{
    const struct series *series = measurement_series(m, rule->series);
    struct runs runs = series ? runs_of(series) : (struct runs){0};
    return !series || series->n == 0 || rule->match_gpus || !is_choice(rule, runs) ? -1
           : rule->run == RUN_LAST                                                 ? runs.last
                                                                                   : runs.first;
}

static int choose_run(const struct rule *rule, const struct series *series, int32_t *ret_run,
                      struct err *err)
{
    struct runs runs = runs_of(series);
    if (!is_choice(rule, runs)) {
        return err_set(err, ERR_PARSE, "the log holds %d runs and rule %.*s does not choose one",
                       runs.last - runs.first + 1, STR_ARG(rule->id));
    }
    *ret_run = rule->run == RUN_LAST ? runs.last : runs.first;
    return 0;
}

/* Warm-up steps that the run states, -1: none; for a log of one run also those that a kept series states. */
static int64_t warmup_of(const struct measurement *m, int32_t run)
{
    struct err ignored = {0};
    int64_t steps;
    for (size_t idx = 0; m->n_runs > 1 && idx < m->n_facts; idx++) {
        const struct fact *fact = &m->facts[idx];
        if (fact_is_of(fact, run) && str_eq_z(fact->name, "warmup") &&
            str_to_i64(fact->value, 0, INT64_MAX, &steps, &ignored) == 0) {
            return steps;
        }
    }
    return m->n_runs > 1 ? -1 : m->warmup_steps;
}

void picked_note(const struct picked *picked, const struct sample *s, enum sample_use use)
{
    if (picked->uses) {
        picked->uses[s - picked->series->samples] = use;
    }
}

static enum sample_use use_of(const struct rule *rule, const struct sample *s, int32_t run,
                              int64_t gpus, int64_t warmup_steps)
{
    const struct window *w = &rule->window;
    bool is_outside = w->has_steps && (s->step < w->step_from || s->step > w->step_to);
    return s->run != run                                ? USE_OTHER_RUN
           : rule->match_gpus && s->gpus != gpus        ? USE_OTHER_GPUS
           : is_outside                                 ? USE_OUTSIDE_STEPS
           : w->skips_warmup && s->step <= warmup_steps ? USE_WARMUP
                                                        : USE_COUNTED;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct sample *x = *(const struct sample *const *)a;
    const struct sample *y = *(const struct sample *const *)b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return (x > y) - (x < y); /* same array: keeps file order */
}

/* Most logs have one rank and are already in order. */
void picked_sort_by_rank(const struct sample **items, size_t n)
{
    size_t n_sorted = n ? 1 : 0;
    while (n_sorted < n && items[n_sorted - 1]->rank <= items[n_sorted]->rank) {
        n_sorted++;
    }
    if (n_sorted < n) {
        qsort(items, n, sizeof(items[0]), compare_ranks);
    }
}

struct cut { /* what a window leaves of n samples in a row */
    size_t skip, drop, before_last, keep;
};

static struct cut cut_of(const struct window *w, size_t n)
{
    size_t skip = (size_t)w->skip < n ? (size_t)w->skip : n;
    size_t drop = (size_t)w->drop_last < n - skip ? (size_t)w->drop_last : n - skip;
    size_t left = n - skip - drop;
    size_t keep = w->last > 0 && (size_t)w->last < left ? (size_t)w->last : left;
    return (struct cut){skip, drop, left - keep, keep};
}

/* Cuts items[from, to), one rank's or all; the rest moves to items[at...]. Returns their number. */
static size_t cut_window(const struct window *w, const struct picked *picked, size_t from,
                         size_t to, size_t at)
{
    const struct sample **items = picked->items;
    size_t n = to - from;
    struct cut cut = cut_of(w, n);
    for (size_t idx = 0; idx < n; idx++) {
        picked_note(picked, items[from + idx],
                    idx < cut.skip                     ? USE_SKIPPED
                    : idx >= n - cut.drop              ? USE_DROPPED
                    : idx < cut.skip + cut.before_last ? USE_BEFORE_LAST
                                                       : USE_COUNTED);
    }
    if (cut.keep > 0) {
        memmove(&items[at], &items[from + cut.skip + cut.before_last], cut.keep * sizeof(items[0]));
    }
    return cut.keep;
}

static bool has_one_rank(const struct picked *picked)
{
    for (size_t idx = 1; idx < picked->n; idx++) {
        if (picked->items[idx]->rank != picked->items[0]->rank) {
            return false;
        }
    }
    return true;
}

/* Usually the whole log is one sequence; with scope rank and several ranks, each rank is. */
static void cut_windows(const struct rule *rule, struct picked *picked)
{
    const struct sample **items = picked->items;
    size_t at = 0;
    if (picked->kept) {
        struct cut cut = cut_of(&rule->window, picked->n);
        picked->items += cut.skip + cut.before_last;
        picked->n = cut.keep;
        return;
    }
    if (picked->series->scope != SCOPE_RANK || has_one_rank(picked)) {
        picked->n = cut_window(&rule->window, picked, 0, picked->n, 0);
        return;
    }
    picked_sort_by_rank(items, picked->n);
    for (size_t from = 0, to; from < picked->n; from = to) {
        for (to = from + 1; to < picked->n && items[to]->rank == items[from]->rank; to++) {
        }
        at += cut_window(&rule->window, picked, from, to, at);
    }
    picked->n = at;
}

/* The samples that the window is cut from. */
static int gather(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
                  struct picked *picked, struct err *err)
{
    const struct series *series = picked->series;
    int64_t warmup_steps;
    int32_t run = 0;
    if (rule->match_gpus && of->gpus <= 0) {
        return err_set(err, ERR_PARSE, "rule %.*s needs to know how many GPUs", STR_ARG(rule->id));
    }
    if (choose_run(rule, series, &run, err) < 0) {
        return -1;
    }
    warmup_steps = warmup_of(m, run);
    if (rule->window.skips_warmup && warmup_steps < 0) {
        return err_set(err, ERR_PARSE, "rule %.*s: the log does not state its warm-up steps",
                       STR_ARG(rule->id));
    }
    picked->items = xcalloc(series->n, sizeof(picked->items[0]));
    for (size_t idx = 0; idx < series->n; idx++) {
        const struct sample *s = &series->samples[idx];
        enum sample_use use = use_of(rule, s, run, of->gpus, warmup_steps);
        picked_note(picked, s, use);
        if (use == USE_COUNTED) {
            picked->items[picked->n++] = s;
        }
    }
    return 0;
}

/* NULL: every sample has a usable value. */
static const struct sample *find_unusable(const struct picked *picked)
{
    for (size_t idx = 0; idx < picked->n; idx++) {
        if (!isfinite(picked->items[idx]->value)) {
            return picked->items[idx];
        }
    }
    return NULL;
}

static int check_usable(const struct rule *rule, const struct picked *picked, struct err *err)
{
    bool is_timed = rule->statistic == STAT_TIMESTAMPS || rule->statistic == STAT_ELAPSED;
    const struct sample *sample = is_timed || picked->kept ? NULL : find_unusable(picked);
    return sample ? err_set(err, ERR_PARSE, "step %" PRId64 " in the window has no usable value",
                            sample->step)
                  : 0;
}

/* ---- samples that are kept ---- */

struct rule_kept {
    double value;
    size_t at; /* in file order */
};

static int compare_kept(const void *a, const void *b)
{
    const struct rule_kept *x = a;
    const struct rule_kept *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value)
                                : (x->at > y->at) - (x->at < y->at);
}

void rule_memo_release(struct rule_memo *memo)
{
    free(memo->items);
    free(memo->values);
    free(memo->ordered);
    *memo = (struct rule_memo){0};
}

static bool is_kept(const struct rule_memo *memo, const struct rule *rule,
                    const struct rule_case *of, const struct series *series)
{
    return memo->series == series && memo->run == rule->run &&
           memo->gpus == (rule->match_gpus ? of->gpus : -1);
}

/* Keeps one sequence of numbers, which most logs are; others are gathered each time. */
static void keep(struct rule_memo *memo, const struct rule *rule, const struct rule_case *of,
                 struct picked *picked)
{
    rule_memo_release(memo);
    if (!has_one_rank(picked) || find_unusable(picked)) {
        return;
    }
    *memo = (struct rule_memo){.series = picked->series,
                               .run = rule->run,
                               .gpus = rule->match_gpus ? of->gpus : -1,
                               .items = picked->items,
                               .values = xcalloc(picked->n, sizeof(*memo->values)),
                               .ordered = xcalloc(picked->n, sizeof(*memo->ordered)),
                               .n = picked->n};
    for (size_t idx = 0; idx < memo->n; idx++) {
        memo->values[idx] = memo->items[idx]->value;
        memo->ordered[idx] = (struct rule_kept){memo->values[idx], idx};
    }
    qsort(memo->ordered, memo->n, sizeof(*memo->ordered), compare_kept);
    picked->kept = memo;
}

int rule_pick(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
              struct picked *picked, struct err *err)
{
    const struct window *w = &rule->window;
    struct rule_memo *memo = picked->uses || w->has_steps || w->skips_warmup ? NULL : of->memo;
    picked->series = measurement_series(m, rule->series);
    if (!picked->series || picked->series->n == 0) {
        return err_set(err, ERR_PARSE, "the log has no series \"%.*s\"", STR_ARG(rule->series));
    }
    if (memo && is_kept(memo, rule, of, picked->series)) {
        picked->kept = memo;
        picked->items = memo->items;
        picked->n = memo->n;
    } else if (gather(rule, m, of, picked, err) < 0) {
        return -1;
    } else if (memo) {
        keep(memo, rule, of, picked);
    }
    cut_windows(rule, picked);
    if (picked->n == 0) {
        return err_set(err, ERR_PARSE,
                       "rule %.*s leaves none of the %zu samples of series \"%.*s\"",
                       STR_ARG(rule->id), picked->series->n, STR_ARG(picked->series->name));
    }
    return check_usable(rule, picked, err);
}

const double *picked_values(const struct picked *picked, double **own)
{
    if (picked->kept) {
        return picked->kept->values + (picked->items - picked->kept->items);
    }
    *own = xcalloc(picked->n, sizeof(**own));
    for (size_t idx = 0; idx < picked->n; idx++) {
        (*own)[idx] = picked->items[idx]->value;
    }
    return *own;
}

const double *picked_sorted(const struct picked *picked, double **own)
{
    if (!picked->kept) {
        stats_sort(*own, picked->n);
        return *own;
    }
    const struct rule_memo *kept = picked->kept;
    size_t first = (size_t)(picked->items - kept->items);
    size_t n = 0;
    *own = xcalloc(picked->n, sizeof(**own));
    for (size_t idx = 0; idx < kept->n; idx++) {
        if (kept->ordered[idx].at - first < picked->n) {
            (*own)[n++] = kept->ordered[idx].value;
        }
    }
    return *own;
}
