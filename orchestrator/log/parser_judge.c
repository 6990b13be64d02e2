/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a log, by its causes (log/whole.h). */
#include "base/base.h"

#include "log/parser_impl.h"

#include <math.h>

#define WRITERS_APART_S 2.0 /* lines of one step by several writers */

/* If the log lacks the format's primary figure, another of the same kind takes its place. */
size_t parser_primary(const struct parser *p)
{
    const struct format *f = p->format;
    size_t declared = 0;
    while (!f->series[declared].is_primary) { /* format_decode made sure that there is one */
        declared++;
    }
    for (size_t idx = 0; p->series[declared].n == 0 && f->series[declared].quantity == QTY_RATE &&
                         idx < f->n_series;
         idx++) {
        if (f->series[idx].quantity == QTY_RATE && p->series[idx].n > 0) {
            return idx;
        }
    }
    for (size_t idx = 0; p->series[declared].n == 0 && idx < f->n_series; idx++) {
        if (f->series[idx].stands_in && p->series[idx].n > 0) {
            return idx;
        }
    }
    return declared;
}

static struct run_seen run_of(const struct parser *p, size_t idx, const struct series *primary)
{
    const struct series_spec *spec = &p->format->series[idx];
    return (struct run_seen){.primary = primary,
                             .run = p->run,
                             .total_steps = p->total_steps,
                             .done_step = p->done_step,
                             .repeats = spec->repeats,
                             .has_steps = spec->step >= 0 && !p->has_stepless,
                             .is_off_grid = !spec->is_on_grid,
                             .has_end = true,
                             .shows_begin =
                                 !p->format->begin_why.ptr && !p->is_resumed && !p->has_unmeasured,
                             .first_by = spec->first_by,
                             .log_interval = p->log_interval,
                             .epochs_left = p->total_steps >= 0 ? 0 : p->epochs_left,
                             .n_before = 1 - spec->step_from,
                             .epoch_steps = p->epoch_steps,
                             .knows_epochs = p->of_epochs > 0};
}

struct series parser_series(const struct parser *p, size_t idx)
{
    const struct series_spec *spec = &p->format->series[idx];
    const struct series_state *state = &p->series[idx];
    return (struct series){.name = spec->name,
                           .unit = spec->unit,
                           .scope = spec->scope,
                           .quantity = spec->quantity,
                           .samples = state->n ? state->items : NULL,
                           .n = state->n,
                           .lines = state->lines};
}

bool parser_is_done(const struct parser *p)
{
    size_t first = parser_primary(p);
    const struct series primary = parser_series(p, first);
    int64_t step =
        primary.n ? primary.samples[primary.n - 1].step + 1 - p->format->series[first].step_from
                  : 0;
    step = p->done_step > step ? p->done_step : step;
    return p->total_steps > 0 && step >= p->total_steps;
}

/* Whether the run's lines state its length or its end: otherwise a log that was cut between two lines looks whole. */
static bool states_end(const struct parser *p)
{
    const size_t first = parser_primary(p);
    return p->has_end || (p->of_epochs >= 0 && p->total_steps > 0) ||
           (p->format->series[first].quantity == QTY_SUMMARY && p->series[first].n > 0);
}

static void merge(struct causes *into, const struct causes *from)
{
    for (int cause = 0; cause < CAUSES; cause++) {
        into->at[cause] = into->n[cause] ? into->at[cause] : from->at[cause];
        into->n[cause] += from->n[cause];
    }
    into->total_steps =
        from->n[CAUSE_SHORT] || from->n[CAUSE_BEYOND] ? from->total_steps : into->total_steps;
    into->epochs_left = from->n[CAUSE_SHORT] ? from->epochs_left : into->epochs_left;
}

/* If a run has only one figure, its steps come from its series of quantity progress. */
static void look_at_run(struct parser *p, size_t first)
{
    const struct series primary = parser_series(p, first);
    struct run_seen run = run_of(p, first, &primary);
    for (size_t idx = 0; idx < p->format->n_series; idx++) {
        const struct series progress = parser_series(p, idx);
        struct run_seen told = run_of(p, idx, &progress);
        if (p->format->series[idx].quantity == QTY_PROGRESS && progress.n > 0 &&
            progress.samples[progress.n - 1].run == p->run) {
            whole_look(&told, &p->run_causes);
            run.has_end = false;
        }
    }
    whole_look(&run, &p->run_causes);
}

/* Lines without a rank that repeat each step as often are of as many writers, who get the ranks 0, 1, ... */
static void name_writers(struct series_state *s, int32_t run)
{
    size_t from = s->n;
    size_t each = 0;
    size_t n_groups = 0;
    bool is_even = true;
    while (from > 0 && s->items[from - 1].run == run) {
        from--;
    }
    for (size_t at = from, end; at < s->n; at = end, n_groups++) {
        for (end = at; end < s->n && s->items[end].step == s->items[at].step; end++) {
            is_even = is_even && s->items[end].rank < 0 &&
                      !(fabs(s->items[end].time_s - s->items[at].time_s) > WRITERS_APART_S);
        }
        each = at == from ? end - at : each;
        is_even = is_even && end - at == each;
    }
    for (size_t at = from; is_even && each > 1 && n_groups > 1 && at < s->n; at++) {
        s->items[at].rank = (int32_t)((at - from) % each);
    }
}

void parser_end_run(struct parser *p)
{
    size_t first = parser_primary(p);
    const struct series primary = parser_series(p, first);
    bool has_samples = primary.n > 0 && primary.samples[primary.n - 1].run == p->run;
    if (p->format->series[first].step >= 0 && !p->format->series[first].repeats) {
        name_writers(&p->series[first], p->run);
    }
    look_at_run(p, first);
    if (p->fatal_line > 0) {
        cause_add(&p->run_causes, CAUSE_FATAL, p->fatal_line);
    }
    if (has_samples && p->format->needs_end && !p->has_end) {
        cause_add(&p->run_causes, CAUSE_NO_END, 0);
    }
    if (has_samples && p->format->begin.pattern && !p->has_begin) {
        cause_add(&p->run_causes, CAUSE_BEGIN, 0);
    }
    enum parse_verdict verdict = causes_verdict(&p->run_causes) == PARSE_OK && !p->is_truncated
                                     ? PARSE_OK
                                     : PARSE_INCOMPLETE;
    merge(&p->causes, &p->run_causes);
    p->run_causes = (struct causes){0};
    if (p->run == 0) {
        p->first_run = verdict;
    }
    p->last_run = verdict;
}

/* Noise has no loss to learn: that it is no number says nothing about the speed. */
static bool is_synthetic(const struct measurement *m)
{
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        if (str_eq_z(m->facts[idx].name, "dataset") &&
            str_find(m->facts[idx].value, STR_LIT("synthetic")) >= 0) {
            return true;
        }
    }
    return false;
}

void parser_judge(struct parser *p, struct measurement *m)
{
    const struct series *primary = measurement_primary(m);
    m->first_run = p->first_run;
    m->last_run = p->last_run;
    m->states_end = states_end(p);
    snprintf(p->causes.bad_value, sizeof(p->causes.bad_value), "%s",
             p->first_bad_line == p->causes.at[CAUSE_UNREADABLE] ? p->bad_value : "");
    if (p->is_truncated) {
        cause_add(&p->causes, CAUSE_TRUNCATED, m->last_step);
    }
    if (primary->n == 0) {
        cause_add(&p->causes, CAUSE_NO_METRIC, 0);
    } else if (primary->samples[0].run != primary->samples[primary->n - 1].run) {
        p->causes.n[CAUSE_RUNS] = m->n_runs;
    }
    if (is_synthetic(m)) {
        p->causes.n_synthetic = p->causes.n[CAUSE_NAN_LOSS];
        p->causes.n[CAUSE_NAN_LOSS] = 0;
    }
    m->causes = p->causes;
    m->verdict = causes_verdict(&m->causes);
    m->why = causes_why(p->arena, &m->causes);
}
