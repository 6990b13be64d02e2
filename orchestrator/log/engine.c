/* SPDX-License-Identifier: Apache-2.0 */
/* One profile, the values of one rank in time order, decides on the window: a slow start and a last line of part of an interval
   are left out, for each rank alike. Then the quantity decides on the statistic. All thresholds stand here. */
#include "base/base.h"

#include "log/engine.h"

#include <math.h>

#define SLOW_START  0.2    /* slower than the level of the second half by more than this share */
#define START_FEW   3      /* of at most so few lines the first, */
#define START_FAR   0.5    /* if it takes so much more time */
#define START_SHARE 4      /* at most a quarter of the lines */
#define UNAWAITED   (-0.5) /* slowness of a step that a program did not wait for */
#define TAIL_FAR    0.2    /* of the level: a last line off the grid that is as far from it */
#define PLAIN_FAR   0.05
#define MEDIAN_FAR  0.2
/* The first line stands for its step, if that is at most so many usual intervals. */
#define FIRST_STEPS  4.0
#define CLOCK_FINE_S 5.0  /* between lines, for a clock of whole seconds to weigh them */
#define ITEMS_FAR    3.0  /* times the usual items of a line */
#define LEVELS_MIN   12   /* lines that show two levels, or a median, */
#define LEVEL_MIN    5    /* each of at least so many lines, */
#define LEVEL_SHARE  7    /* and of a seventh of all */
#define LEVELS_FAR   1.25 /* the slower over the faster */
#define LEVELS_ASIDE 20   /* at most one line of so many is nearer to the other level */
#define CLOCK_MIN    5    /* intervals */
#define CLOCK_FAR    1.5
#define CLOCK_SPAN_S 10.0 /* clocks of whole seconds */

static bool is_time(const struct series *s)
{
    return s->quantity == QTY_STEP_TIME || str_eq_z(s->unit, "s");
}

/* The value at `nth` if they stood in order: Hoare's selection. */
static double nth_of(double *values, size_t n, size_t nth)
{
    size_t from = 0;
    size_t to = n - 1;
    while (from < to) {
        double pivot = values[from + (to - from) / 2];
        size_t low = from;
        size_t high = to;
        for (;;) {
            while (values[low] < pivot) {
                low++;
            }
            while (values[high] > pivot) {
                high--;
            }
            if (low >= high) {
                break;
            }
            double swapped = values[low];
            values[low++] = values[high];
            values[high--] = swapped;
        }
        if (nth <= high) {
            to = high;
        } else {
            from = high + 1;
        }
    }
    return values[nth];
}

/* Of finite values. */
static double median_of(const double *values, size_t n)
{
    CLEANUP(free) double *copy = xcalloc(n + 1, sizeof(double));
    memcpy(copy, values, n * sizeof(double));
    return n ? nth_of(copy, n, n / 2) : (double)NAN;
}

/* ---- the profile: usable samples of the first rank ---- */

struct profile {
    const struct sample **items; /* owned */
    double *values;              /* owned */
    size_t n;
};

static void profile_release(struct profile *p)
{
    free(p->items);
    free(p->values);
}

static struct profile profile_of(const struct series *s)
{
    struct profile p = {.items = xcalloc(s->n + 1, sizeof(struct sample *)),
                        .values = xcalloc(s->n + 1, sizeof(double))};
    for (size_t idx = 0; idx < s->n; idx++) {
        const struct sample *x = &s->samples[idx];
        if (x->rank == s->samples[0].rank && (isfinite(x->value) || s->quantity == QTY_CLOCK)) {
            p.values[p.n] = x->value;
            p.items[p.n++] = x;
        }
    }
    return p;
}

/* ---- the window ---- */

/* How much slower than the level: 0.2 is a fifth more time. */
static double slowness(const struct series *s, double value, double level)
{
    return is_time(s) ? value / level - 1 : level / value - 1;
}

/* Whether three of four are at the level. */
static bool is_settled(const double *values, size_t n, double level)
{
    size_t near = 0;
    for (size_t idx = 0; idx < n; idx++) {
        near += fabs(values[idx] - level) <= SLOW_START * level;
    }
    return 4 * near >= 3 * n;
}

/* A program that does not wait for its first step, which compiles, prints the next ones as though they took no time: up to the
   first line at the level, nothing of it is measured. */
static size_t unawaited(const struct series *s, const struct profile *p, double level)
{
    size_t skip = 0;
    bool is_unawaited = false;
    while (skip < p->n / 2 && fabs(slowness(s, p->values[skip], level)) > SLOW_START) {
        is_unawaited = is_unawaited || slowness(s, p->values[skip], level) < UNAWAITED;
        skip++;
    }
    return is_unawaited && slowness(s, p->values[0], level) > SLOW_START &&
                   fabs(slowness(s, p->values[skip], level)) <= SLOW_START
               ? skip
               : 0;
}

/* Of few lines the first is a start if each other took far less time, settled or not. */
static bool starts_far(const struct series *s, const struct profile *p)
{
    bool is_far = p->n > 1 && p->n <= START_FEW;
    for (size_t idx = 1; is_far && idx < p->n; idx++) {
        is_far = slowness(s, p->values[0], p->values[idx]) > START_FAR;
    }
    return is_far;
}

static size_t slow_start(const struct series *s, const struct profile *p)
{
    size_t half = p->n / 2;
    double level = median_of(p->values + half, p->n - half);
    size_t skip = 0;
    size_t most = p->n / START_SHARE;
    if (starts_far(s, p)) {
        return 1;
    }
    if (!is_settled(p->values + half, p->n - half, level)) {
        return 0;
    }
    while (skip < most && slowness(s, p->values[skip], level) > SLOW_START) {
        skip++;
    }
    size_t n_unawaited = unawaited(s, p, level);
    return n_unawaited > skip ? n_unawaited : skip;
}

/* The last line stands before the next step of the grid and apart from the level: a part of an interval. */
static size_t partial_end(const struct profile *p)
{
    int64_t delta = p->n > 2 ? p->items[p->n - 1]->step - p->items[p->n - 2]->step : 0;
    int64_t before = p->n > 2 ? p->items[p->n - 2]->step - p->items[p->n - 3]->step : 0;
    if (p->n <= 3 || delta <= 0 || delta >= before) {
        return 0;
    }
    double level = median_of(p->values, p->n);
    return fabs(p->values[p->n - 1] - level) > TAIL_FAR * level;
}

/* ---- the statistic ---- */

/* Samples of each rank so far; index rank + 1. */
struct ordinals {
    size_t *n; /* owned */
    size_t n_ranks;
};

static size_t next_ordinal(struct ordinals *o, int32_t rank)
{
    size_t idx = rank < 0 ? 0 : (size_t)rank + 1;
    if (idx >= o->n_ranks) {
        size_t n = 2 * idx + 2;
        o->n = xrealloc(o->n, n * sizeof(o->n[0]));
        memset(o->n + o->n_ranks, 0, (n - o->n_ranks) * sizeof(o->n[0]));
        o->n_ranks = n;
    }
    return o->n[idx]++;
}

/* Steps between lines: the median of those that go on, at least 1. */
static double usual_steps(const struct profile *p)
{
    CLEANUP(free) double *deltas = xcalloc(p->n + 1, sizeof(double));
    size_t n = 0;
    for (size_t idx = 1; idx < p->n; idx++) {
        int64_t delta = p->items[idx]->step - p->items[idx - 1]->step;
        if (delta > 0) {
            deltas[n++] = (double)delta;
        }
    }
    return n ? median_of(deltas, n) : 1;
}

/* Steps that a line stands for: those since the line of the rank before it, or since the beginning. */
static double steps_of(const struct profile *p, size_t idx, double usual)
{
    int64_t first = p->items[0]->step;
    double delta =
        idx > 0 ? (double)(p->items[idx]->step - p->items[idx - 1]->step) : (double)first;
    bool is_near = idx > 0 || delta <= FIRST_STEPS * usual;
    return delta > 0 && is_near ? delta : usual;
}

/* Seconds between the line and the one before it, for all lines; false without a clock that is fine enough. */
static bool moved_of(const struct profile *p, double *moved)
{
    for (size_t idx = 1; idx < p->n; idx++) {
        moved[idx] = p->items[idx]->time_s - p->items[idx - 1]->time_s;
        if (!(moved[idx] >= 0)) {
            return false;
        }
    }
    moved[0] = p->n > 1 ? median_of(moved + 1, p->n - 1) : 0;
    return moved[0] >= CLOCK_FINE_S;
}

/* The time that each line of a rate weighs: by the clock, which knows when the items of a step differ, but no longer than for a
   few times the usual items, since lines may follow a pause; else the time of its steps. */
static void weigh_rates(const struct profile *p, double *weights)
{
    CLEANUP(free) double *items = xcalloc(p->n + 1, sizeof(double));
    double usual = usual_steps(p);
    bool has_clock = moved_of(p, weights);
    for (size_t idx = 0; idx < p->n; idx++) {
        items[idx] = has_clock ? weights[idx] * p->values[idx] : steps_of(p, idx, usual);
    }
    double most = has_clock ? ITEMS_FAR * median_of(items, p->n) : (double)INFINITY;
    for (size_t idx = 0; idx < p->n; idx++) {
        weights[idx] = (items[idx] < most ? items[idx] : most / ITEMS_FAR) / p->values[idx];
    }
}

static void weigh(const struct series *s, const struct profile *p, double *weights)
{
    double usual = usual_steps(p);
    if (!is_time(s)) {
        weigh_rates(p, weights);
        return;
    }
    for (size_t idx = 0; idx < p->n; idx++) {
        weights[idx] = steps_of(p, idx, usual);
    }
}

static void over_time(const struct series *s, const struct profile *p, struct figure *f)
{
    CLEANUP(free) double *weights = xcalloc(p->n + 1, sizeof(double));
    struct ordinals seen = {0};
    double top = 0;
    double bottom = 0;
    double sum = 0;
    double from = p->n > f->n_skipped ? p->values[f->n_skipped]
                                      : 0; /* equal values give exactly themselves */
    weigh(s, p, weights);
    for (size_t idx = 0; idx < s->n; idx++) {
        const struct sample *x = &s->samples[idx];
        if (!isfinite(x->value)) {
            continue;
        }
        size_t at = next_ordinal(&seen, x->rank);
        if (at < f->n_skipped || (f->n_dropped && x->step == p->items[p->n - 1]->step)) {
            continue;
        }
        double weight = weights[at < p->n ? at : p->n - 1];
        top += weight * (x->value - from);
        bottom += weight;
        sum += x->value;
        f->n_used++;
    }
    free(seen.n);
    f->has_value = f->n_used > 0 && bottom > 0;
    f->value = f->has_value ? from + top / bottom : 0;
    sum = f->n_used ? sum / (double)f->n_used : 0;
    f->plain = fabs(sum - f->value) >= PLAIN_FAR * f->value ? sum : 0;
    double median =
        f->n_used >= LEVELS_MIN ? median_of(p->values + f->n_skipped, p->n - f->n_skipped) : 0;
    f->median = median > 0 && fabs(median - f->value) >= MEDIAN_FAR * f->value ? median : 0;
}

/* The last of each count of steps: of a rank, of an epoch. */
static void last_ones(const struct series *s, struct figure *f)
{
    double sum = 0;
    for (size_t idx = 0; idx < s->n; idx++) {
        const struct sample *x = &s->samples[idx];
        size_t next = idx + 1;
        while (next < s->n && s->samples[next].rank != x->rank) {
            next++;
        }
        if (isfinite(x->value) && (next == s->n || s->samples[next].step <= x->step)) {
            sum += is_time(s) ? x->value : 1 / x->value;
            f->n_used++;
        }
    }
    f->has_value = f->n_used > 0;
    sum = f->n_used ? sum / (double)f->n_used : 1;
    f->value = is_time(s) ? sum : 1 / sum;
}

static void stated(const struct series *s, struct figure *f)
{
    double sum = 0;
    for (size_t idx = 0; idx < s->n; idx++) {
        if (s->samples[idx].gpus != s->samples[0].gpus || !isfinite(s->samples[idx].value)) {
            return;
        }
        sum += s->samples[idx].value;
    }
    f->n_used = s->n;
    f->has_value = s->n > 0;
    f->value = s->n ? sum / (double)s->n : 0;
}

static void between(const struct profile *p, struct figure *f)
{
    const struct sample *first = p->n ? p->items[0] : NULL;
    const struct sample *last = p->n ? p->items[p->n - 1] : NULL;
    if (p->n > 1 && last->step > first->step && last->time_s > first->time_s) {
        f->has_value = true;
        f->n_used = 2;
        f->value = (last->time_s - first->time_s) / (double)(last->step - first->step);
    }
}

struct figure engine_figure(const struct series *s)
{
    static const enum figure_by BY[] = {[QTY_RATE] = FIGURE_ITEMS_OVER_TIME,
                                        [QTY_RUNNING_MEAN] = FIGURE_LAST,
                                        [QTY_STEP_TIME] = FIGURE_TIME_OVER_STEPS,
                                        [QTY_SUMMARY] = FIGURE_STATED,
                                        [QTY_CLOCK] = FIGURE_CLOCK,
                                        [QTY_SCORE] = FIGURE_STATED,
                                        [QTY_PROGRESS] = FIGURE_STATED};
    struct figure f = {.by = BY[s->quantity]};
    struct profile p = profile_of(s);
    switch (f.by) {
    case FIGURE_ITEMS_OVER_TIME:
    case FIGURE_TIME_OVER_STEPS:
        f.n_skipped = slow_start(s, &p);
        f.n_dropped = partial_end(&p);
        over_time(s, &p, &f);
        break;
    case FIGURE_LAST:
        last_ones(s, &f);
        break;
    case FIGURE_STATED:
        stated(s, &f);
        break;
    case FIGURE_CLOCK:
        between(&p, &f);
        break;
    }
    profile_release(&p);
    return f;
}

const char *const FIGURE_BY_NAMES[] = {[FIGURE_ITEMS_OVER_TIME] = "items over time",
                                       [FIGURE_TIME_OVER_STEPS] = "time over steps",
                                       [FIGURE_LAST] = "the last",
                                       [FIGURE_STATED] = "as stated",
                                       [FIGURE_CLOCK] = "time between the first and the last step"};

/* ---- what speaks against one number ---- */

/* How many of n values are nearer to the other level. */
static size_t n_aside(const double *values, size_t n, double own, double other)
{
    size_t aside = 0;
    for (size_t idx = 0; idx < n; idx++) {
        aside += fabs(values[idx] - other) < fabs(values[idx] - own);
    }
    return aside;
}

struct levels {
    size_t at; /* the first line of the second; 0: there is one level */
    double before, after;
};

/* The step of a mean that explains the most: the split with the greatest difference between both sides, in squares. */
static size_t best_split(const double *values, size_t n)
{
    double all = 0;
    double left = 0;
    double best = 0;
    size_t at = 0;
    for (size_t idx = 0; idx < n; idx++) {
        all += values[idx];
    }
    for (size_t idx = 1; idx < n; idx++) {
        left += values[idx - 1];
        double gap = left / (double)idx - (all - left) / (double)(n - idx);
        double gain = gap * gap * (double)idx * (double)(n - idx);
        at = gain > best ? idx : at;
        best = gain > best ? gain : best;
    }
    return at;
}

/* Three of four are within a quarter of the gap between both levels: a slope has no level. */
static bool is_level(const double *values, size_t n, double own, double other)
{
    size_t near = 0;
    for (size_t idx = 0; idx < n; idx++) {
        near += 4 * fabs(values[idx] - own) <= fabs(other - own);
    }
    return 4 * near >= 3 * n;
}

static struct levels find_levels(const double *values, size_t n)
{
    size_t least = n / LEVEL_SHARE > LEVEL_MIN ? n / LEVEL_SHARE : LEVEL_MIN;
    size_t at = n >= LEVELS_MIN ? best_split(values, n) : 0;
    struct levels none = {0};
    if (at < least || n - at < least) {
        return none;
    }
    struct levels l = {at, median_of(values, at), median_of(values + at, n - at)};
    double far = l.before > l.after ? l.before / l.after : l.after / l.before;
    size_t aside =
        n_aside(values, at, l.before, l.after) + n_aside(values + at, n - at, l.after, l.before);
    return far >= LEVELS_FAR && aside <= n / LEVELS_ASIDE &&
                   is_level(values, at, l.before, l.after) &&
                   is_level(values + at, n - at, l.after, l.before)
               ? l
               : none;
}

static void add_doubt(struct measurement *m, enum cause cause, int64_t at, const char *text)
{
    cause_add(&m->causes, cause, at);
    if (!m->causes.doubt.ptr) {
        m->causes.doubt = str_of(text);
    }
    if (causes_verdict(&m->causes) == cause_verdict(cause)) {
        m->verdict = cause_verdict(cause);
        m->why = m->causes.doubt;
    }
}

void engine_contradict(struct measurement *m, int64_t line, struct str said)
{
    add_doubt(m, CAUSE_ARITHMETIC, line, said.ptr);
}

static void doubt_levels(struct arena *arena, struct measurement *m, const struct series *s,
                         const struct profile *p)
{
    size_t skip = slow_start(s, p);
    /* What is still as slow after the start is a level. */
    skip = skip > 0 && fabs(slowness(s, p->values[skip - 1], p->values[skip])) <= SLOW_START ? 0
                                                                                             : skip;
    struct levels l = find_levels(p->values + skip, p->n - skip);
    if (l.at > 0) {
        int64_t step = p->items[skip + l.at]->step;
        add_doubt(m, CAUSE_LEVELS, step,
                  arena_printf(arena,
                               "two levels: %.6g %.*s before step %" PRId64 ", %.6g from there",
                               l.before, STR_ARG(s->unit), step, l.after));
    }
}

/* The moments of the lines against the times of the steps between them. Pauses make single intervals longer; their median does
   not lie. */
static void doubt_clock(struct arena *arena, struct measurement *m, const struct profile *p)
{
    CLEANUP(free) double *ratios = xcalloc(p->n + 1, sizeof(double));
    size_t n = 0;
    double span = 0;
    double printed = 0;
    for (size_t idx = 1; idx < p->n; idx++) {
        double moved = p->items[idx]->time_s - p->items[idx - 1]->time_s;
        int64_t steps = p->items[idx]->step - p->items[idx - 1]->step;
        if (isfinite(moved) && moved >= 0 && steps > 0) {
            ratios[n++] = moved / ((double)steps * p->values[idx]);
            span += moved;
            printed += (double)steps * p->values[idx];
        }
    }
    double far = n >= CLOCK_MIN ? median_of(ratios, n) : 1;
    double all = printed > 0 ? span / printed : 1;
    bool is_far =
        (far > CLOCK_FAR && all > CLOCK_FAR) || (far < 1 / CLOCK_FAR && all < 1 / CLOCK_FAR);
    if (is_far && (span > printed ? span : printed) >= CLOCK_SPAN_S) {
        const struct sample *last = p->items[p->n - 1];
        add_doubt(
            m, CAUSE_ARITHMETIC, last->step,
            arena_printf(arena,
                         "the times of the steps add up to %.6g s, and by the clock of the same "
                         "lines they took %.6g s",
                         printed, span));
    }
}

void engine_doubt(struct arena *arena, struct measurement *m, const struct series *s)
{
    struct profile p = profile_of(s);
    doubt_levels(arena, m, s, &p);
    if (s->quantity == QTY_STEP_TIME) {
        doubt_clock(arena, m, &p);
    }
    profile_release(&p);
}
