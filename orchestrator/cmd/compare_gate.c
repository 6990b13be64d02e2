/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the second run is slower than somebody will have it. */
#include "base/base.h"

#include <math.h>

#include "base/log.h"
#include "cmd/compare_parts.h"
#include "judge/stats.h"

static struct stats_sample sample_of(const struct cell_result *cell)
{
    return (struct stats_sample){cell->summary.n, cell->summary.mean, cell->summary.std};
}

struct compare_change compare_change_of(const struct cell_result *a, const struct cell_result *b)
{
    struct compare_change c = {.change = (double)NAN};
    double half = 0;
    if (!a || !b || !isfinite(a->value) || !isfinite(b->value)) {
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
    return c;
}

void compare_interval_text(const struct compare_change *change, const struct cell_result *a,
                           const struct cell_result *b, struct strbuf *out)
{
    if (change->has_interval) {
        strbuf_printf(out, "95 %% interval %+.2f %% to %+.2f %%, from %zu and %zu repeats",
                      100 * change->low, 100 * change->high, a->summary.n, b->summary.n);
    } else {
        strbuf_printf(out, "%zu and %zu repeats give no interval: each run needs two that count",
                      a->summary.n, b->summary.n);
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

/* Whether a cell of A passes: B has it, and is not slower by more than the share. What the interval leaves open is said. */
static bool passes(const struct cell_result *a, const struct cell_result *b, double share)
{
    CLEANUP(strbuf) struct strbuf interval;
    struct compare_change c = compare_change_of(a, b);
    const char *id = a->of_case->id.ptr;
    bool is_slower = c.change < -share;
    const char *doubt = "";
    strbuf_init(&interval, 512);
    if (!isfinite(c.change)) {
        log_line(LOG_ERROR, "%s: a value in A and none in B", id);
        return false;
    }
    compare_interval_text(&c, a, b, &interval);
    if (c.has_interval && is_slower && c.high >= -share) {
        doubt = "; the interval reaches into the tolerance: more repeats would tell";
    } else if (c.has_interval && !is_slower && c.low < -share) {
        doubt = "; the interval reaches beyond the tolerance: more repeats would tell";
    }
    log_line(is_slower                     ? LOG_ERROR
             : doubt[0] || !c.has_interval ? LOG_WARN
                                           : LOG_INFO,
             "%s: %s by %.2f %%, %s %.4g %% (%s)%s", id, c.change < 0 ? "slower" : "faster",
             100 * fabs(c.change), is_slower ? "more than" : "tolerance", 100 * share, interval.ptr,
             doubt);
    log_outliers(a, 'A');
    log_outliers(b, 'B');
    return !is_slower;
}

int compare_gate(const struct compare *c, double share)
{
    size_t n = 0;
    size_t n_bad = 0;
    for (size_t idx = 0; idx < c->a.result.n_cells; idx++) {
        const struct cell_result *a = &c->a.result.cells[idx];
        if (isfinite(a->value)) {
            n++;
            n_bad += !passes(a, compare_find(&c->b, a->of_case->id), share);
        }
    }
    if (n == 0) {
        log_line(LOG_ERROR, "no cell of A has a value: nothing was compared");
    } else {
        log_line(n_bad ? LOG_ERROR : LOG_INFO,
                 "%zu cells compared, %zu slower by more than %.4g %%", n, n_bad, 100 * share);
    }
    return n == 0 || n_bad > 0;
}
