/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the second run is slower than allowed. */
#include "base/base.h"

#include <math.h>

#include "base/log.h"
#include "cmd/compare_parts.h"
#include "judge/stats.h"

static struct stats_sample sample_of(const struct cell_result *cell)
{
    return (struct stats_sample){cell->summary.n, cell->summary.mean, cell->summary.std};
}

bool compare_is_apart(const struct compare *c)
{
    return c->a.frozen.plan.is_rehearsal != c->b.frozen.plan.is_rehearsal;
}

struct compare_change compare_change_of(const struct compare *compare, const struct cell_result *a,
                                        const struct cell_result *b)
{
    struct compare_change c = {.change = (double)NAN};
    double half = 0;
    if (compare_is_apart(compare) || !a || !b || !isfinite(a->value) || !isfinite(b->value) ||
        !str_eq(a->unit, b->unit)) {
        return c;
    }
    const struct stats_sample of_a = sample_of(a);
    const struct stats_sample of_b = sample_of(b);
    c.change = rel_diff(b->value, a->value);
    c.exceeds_spread = of_a.n > 0 && of_b.n > 0 &&
                       (a->summary.max < b->summary.min || b->summary.max < a->summary.min);
    c.has_interval = stats_change_ci95(&of_a, &of_b, &half);
    c.low = c.change - half;
    c.high = c.change + half;
    bool is_time = unit_is(compare->a.frozen.vocabulary, a->unit, "time");
    c.speed = is_time ? 1 / (1 + c.change) - 1 : c.change;
    c.speed_low = is_time ? 1 / (1 + c.high) - 1 : c.low;
    c.speed_high = is_time ? 1 / (1 + c.low) - 1 : c.high;
    return c;
}

void compare_interval_text(const struct compare_change *change, const struct cell_result *a,
                           const struct cell_result *b, struct strbuf *out)
{
    /* A log has no repeats, but batches of steps. */
    bool is_of_runs = a->n_repeats && b->n_repeats;
    const char *what = is_of_runs                       ? "repeats"
                       : !a->n_repeats && !b->n_repeats ? "batches of steps"
                                                        : "repeats or batches of steps";
    if (change->has_interval) {
        strbuf_printf(out, "95 %% interval %+.2f %% to %+.2f %%, from %zu and %zu %s",
                      100 * change->speed_low, 100 * change->speed_high, a->summary.n, b->summary.n,
                      what);
    } else {
        strbuf_printf(out, "%zu and %zu %s give no interval: each %s", a->summary.n, b->summary.n,
                      what,
                      is_of_runs ? "run needs two that count"
                                 : "run needs two repeats that count, each log 20 steps");
    }
}

bool compare_is_outlier(const struct cell_result *cell, size_t repeat_idx)
{
    CLEANUP(free) double *values = xcalloc(cell->n_repeats + 1, sizeof(*values));
    size_t n = 0;
    size_t own = 0;
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (cell->repeats[idx].counts) {
            own = idx == repeat_idx ? n : own;
            values[n++] = cell->repeats[idx].value;
        }
    }
    return cell->repeats[repeat_idx].counts && stats_is_outlier(values, n, own);
}

void compare_outliers_text(const struct cell_result *cell, struct strbuf *out)
{
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (compare_is_outlier(cell, idx)) {
            strbuf_printf(out, "%s%" PRId64 " (%.6g)", out->len ? ", " : "",
                          cell->repeats[idx].repeat, cell->repeats[idx].value);
        }
    }
}

static void log_outliers(const struct cell_result *cell, char side)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, 65536);
    compare_outliers_text(cell, &text);
    if (text.len) {
        log_line(LOG_WARN, "%s: of %c these repeats stand out: %s", cell->of_case->id.ptr, side,
                 text.ptr);
    }
}

const char *gate_name(enum gate gate)
{
    static const char *const NAMES[] = {"within", "undecided", "slower", "missing"};
    return NAMES[gate];
}

enum gate gate_of(const struct compare *compare, const struct cell_result *a,
                  const struct cell_result *b)
{
    struct compare_change c = compare_change_of(compare, a, b);
    double share = compare->gate.share;
    if (!a || !isfinite(a->value)) {
        return GATE_UNDECIDED;
    }
    if (!isfinite(c.change)) {
        return GATE_MISSING;
    }
    if (!c.has_interval || (c.speed_low < -share && c.speed_high >= -share)) {
        return GATE_UNDECIDED;
    }
    return c.speed_high < -share ? GATE_SLOWER : GATE_WITHIN;
}

bool compare_next(const struct compare *c, size_t *at, const struct cell_result **ret_a,
                  const struct cell_result **ret_b)
{
    while (*at < c->a.result.n_cells + c->b.result.n_cells) {
        bool is_of_a = *at < c->a.result.n_cells;
        const struct cell_result *cell =
            is_of_a ? &c->a.result.cells[*at] : &c->b.result.cells[*at - c->a.result.n_cells];
        ++*at;
        *ret_a = compare_find(&c->a, cell->of_case->id);
        *ret_b = compare_find(&c->b, cell->of_case->id);
        if (is_of_a || !*ret_a) {
            return true;
        }
    }
    return false;
}

enum gate gate_of_runs(const struct compare *c)
{
    const struct cell_result *a;
    const struct cell_result *b;
    enum gate worst = GATE_WITHIN;
    size_t n = 0;
    for (size_t at = 0; compare_next(c, &at, &a, &b);) {
        enum gate gate = gate_of(c, a, b);
        worst = gate > worst ? gate : worst;
        n++;
    }
    return n ? worst : GATE_UNDECIDED;
}

static bool passes(const struct compare_gate *opts, enum gate gate,
                   const struct compare_change *change)
{
    bool is_beyond = isfinite(change->change) && change->speed < -opts->share;
    return gate == GATE_WITHIN || (gate == GATE_UNDECIDED && opts->allows_undecided && !is_beyond);
}

static void say(const struct compare *compare, const struct cell_result *a,
                const struct cell_result *b, enum gate gate)
{
    const struct compare_gate *opts = &compare->gate;
    CLEANUP(strbuf) struct strbuf interval;
    const char *id = (a ? a : b)->of_case->id.ptr;
    struct compare_change c = compare_change_of(compare, a, b);
    enum log_level level = !passes(opts, gate, &c)  ? LOG_ERROR
                           : gate == GATE_UNDECIDED ? LOG_WARN
                                                    : LOG_INFO;
    strbuf_init(&interval, 512);
    if (!isfinite(c.change)) {
        log_line(level, "%s: %s: %s", id, gate_name(gate),
                 compare_is_apart(compare) ? "only one of the runs is a rehearsal"
                 : gate == GATE_MISSING    ? "a value in A, none in B with that unit"
                                           : "no value in A to compare with");
        return;
    }
    compare_interval_text(&c, a, b, &interval);
    log_line(level, "%s: %s: %s by %.2f %%, tolerance %.4g %% (%s)%s", id, gate_name(gate),
             c.speed < 0 ? "slower" : "faster", 100 * fabs(c.speed), 100 * opts->share,
             interval.ptr, gate == GATE_UNDECIDED ? "; too few repeats to tell" : "");
    log_outliers(a, 'A');
    log_outliers(b, 'B');
}

int gate_run(const struct compare *c)
{
    const struct cell_result *a;
    const struct cell_result *b;
    size_t n[GATE_MISSING + 1] = {0};
    size_t n_values = 0;
    bool is_passed = true;
    for (size_t at = 0; compare_next(c, &at, &a, &b);) {
        enum gate gate = gate_of(c, a, b);
        struct compare_change change = compare_change_of(c, a, b);
        say(c, a, b, gate);
        n[gate]++;
        n_values += isfinite(change.change);
        is_passed = is_passed && passes(&c->gate, gate, &change);
    }
    if (compare_is_apart(c)) {
        log_line(LOG_ERROR, "one of the runs is a rehearsal: its numbers are of other work, and "
                            "nothing was compared");
    } else if (n_values == 0) {
        log_line(LOG_ERROR, "no cell has a value in both runs: nothing was compared");
    }
    log_line(is_passed && n_values ? LOG_INFO : LOG_ERROR,
             "tolerance %.4g %%: %zu cells within, %zu slower, %zu undecided, %zu missing in B",
             100 * c->gate.share, n[GATE_WITHIN], n[GATE_SLOWER], n[GATE_UNDECIDED],
             n[GATE_MISSING]);
    return !is_passed || n_values == 0;
}
