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

/* Only one of the runs is a rehearsal: their numbers are of different work. */
static bool compare_is_apart(const struct compare *c)
{
    return c->a.frozen.plan.is_rehearsal != c->b.frozen.plan.is_rehearsal;
}

static struct compare_change change_of(const struct compare *compare, const struct cell_result *a,
                                       const struct cell_result *b)
{
    struct compare_change c = {.change = (double)NAN, .low = (double)NAN, .high = (double)NAN};
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
    c.low = c.has_interval ? c.change - half : (double)NAN;
    c.high = c.has_interval ? c.change + half : (double)NAN;
    bool is_time = unit_is(compare->a.frozen.vocabulary, a->unit, "time");
    c.speed = is_time ? 1 / (1 + c.change) - 1 : c.change;
    c.speed_low = is_time ? 1 / (1 + c.high) - 1 : c.low;
    c.speed_high = is_time ? 1 / (1 + c.low) - 1 : c.high;
    return c;
}

/* "95 % interval -13.10 % to -11.90 %, from 3 and 3 repeats", or that there is none, and why. */
static void compare_interval_text(const struct compare_row *row, struct strbuf *out)
{
    const struct compare_change *change = &row->change;
    const struct cell_result *a = row->a, *b = row->b;
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
    CLEANUP(strbuf) struct strbuf text = STRBUF(65536);
    compare_outliers_text(cell, &text);
    if (text.len) {
        log_line(LOG_WARN, "%s: of %c these repeats stand out: %s", cell->of_case->id.ptr, side,
                 text.ptr);
    }
}

const char *const GATE_NAMES[] = {NULL, "within", "undecided", "slower", "missing"};

static enum gate gate_of(const struct compare_row *row, double share)
{
    const struct compare_change *c = &row->change;
    if (!row->a || !isfinite(row->a->value)) {
        return GATE_UNDECIDED;
    }
    if (!isfinite(c->change)) {
        return GATE_MISSING;
    }
    if (!c->has_interval || (c->speed_low < -share && c->speed_high >= -share)) {
        return GATE_UNDECIDED;
    }
    return c->speed_high < -share ? GATE_SLOWER : GATE_WITHIN;
}

void compare_rows(struct arena *arena, struct compare *c)
{
    const struct run_result *a = &c->a.result, *b = &c->b.result;
    c->rows = arena_array(arena, struct compare_row, a->n_cells + b->n_cells + 1);
    c->outcome = a->n_cells + b->n_cells ? GATE_WITHIN : GATE_UNDECIDED;
    for (size_t at = 0; at < a->n_cells + b->n_cells; at++) {
        bool is_of_a = at < a->n_cells;
        struct compare_row row = {
            .case_id = (is_of_a ? &a->cells[at] : &b->cells[at - a->n_cells])->of_case->id};
        row.a = compare_find(&c->a, row.case_id);
        row.b = compare_find(&c->b, row.case_id);
        row.change = change_of(c, row.a, row.b);
        row.gate = c->gate.is_asked ? gate_of(&row, c->gate.share) : GATE_NONE;
        if (is_of_a || !row.a) {
            c->rows[c->n_rows++] = row;
            c->outcome = row.gate > c->outcome ? row.gate : c->outcome;
        }
    }
}

static bool passes(const struct compare_gate *opts, const struct compare_row *row)
{
    bool is_beyond = isfinite(row->change.change) && row->change.speed < -opts->share;
    return row->gate == GATE_WITHIN ||
           (row->gate == GATE_UNDECIDED && opts->allows_undecided && !is_beyond);
}

static void say(const struct compare *compare, const struct compare_row *row)
{
    const struct compare_gate *opts = &compare->gate;
    CLEANUP(strbuf) struct strbuf interval = STRBUF(512);
    const struct compare_change *c = &row->change;
    enum gate gate = row->gate;
    enum log_level level = !passes(opts, row)       ? LOG_ERROR
                           : gate == GATE_UNDECIDED ? LOG_WARN
                                                    : LOG_INFO;
    if (!isfinite(c->change)) {
        log_line(level, "%.*s: %s: %s", STR_ARG(row->case_id), GATE_NAMES[gate],
                 compare_is_apart(compare) ? "only one of the runs is a rehearsal"
                 : gate == GATE_MISSING    ? "a value in A, none in B with that unit"
                                           : "no value in A to compare with");
        return;
    }
    compare_interval_text(row, &interval);
    log_line(level, "%.*s: %s: %s by %.2f %%, tolerance %.4g %% (%s)%s", STR_ARG(row->case_id),
             GATE_NAMES[gate], c->speed < 0 ? "slower" : "faster", 100 * fabs(c->speed),
             100 * opts->share, interval.ptr,
             gate == GATE_UNDECIDED ? "; too few repeats to tell" : "");
    log_outliers(row->a, 'A');
    log_outliers(row->b, 'B');
}

int gate_run(const struct compare *c)
{
    size_t n[GATE_MISSING + 1] = {0};
    size_t n_values = 0;
    bool is_passed = true;
    for (size_t idx = 0; idx < c->n_rows; idx++) {
        const struct compare_row *row = &c->rows[idx];
        say(c, row);
        n[row->gate]++;
        n_values += isfinite(row->change.change);
        is_passed = is_passed && passes(&c->gate, row);
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
