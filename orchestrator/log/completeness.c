/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log is the whole record of one run, and if not, why: the one table of causes, the one function that looks at the
   samples of a run, and the verdict on the log. What contradicts its figure is added to the causes later (engine.h). Pure. */
#include "base/base.h"

#include "log/parser_impl.h"

#include <math.h>

#define WHY_BYTES       256
#define CLOCK_SLACK_S   1.0
#define YEAR_WRAP_S     (300 * 86400.0) /* times without a year start over in January */
#define GRID_DELTAS_MIN 3               /* intervals whose majority shows a grid, */
#define GRID_FEW        2               /* or fewer, if each is a multiple of the smallest */
#define GRID_ALIKE      2               /* at least 2 of 3 are alike */
#define GRID_OF         3
#define AGREE_FAR       1.02
#define WRITERS_APART_S 2.0 /* lines of one step by several writers */

/* In `why`, @ is where the cause was first seen, # how often, ~ the verb for so many, $ the steps of the run. */
static const struct cause_row {
    const char *name;
    enum parse_verdict verdict;
    const char *why;
} ROWS[CAUSES] = {
    [CAUSE_UNREADABLE] = {"unreadable", PARSE_NAN,
                          "line @ looks like the metric and cannot be read"},
    [CAUSE_NAN_LOSS] = {"nan_loss", PARSE_NAN, "line @: the loss is not a finite number"},
    [CAUSE_NO_METRIC] = {"no_metric", PARSE_NO_METRIC, "no line holds this format's metric"},
    [CAUSE_RUNS] = {"runs", PARSE_AMBIGUOUS, "the log holds # runs"},
    [CAUSE_WRITERS] = {"writers", PARSE_AMBIGUOUS,
                       "# ranks or cases have a figure of the whole job each"},
    [CAUSE_DUPLICATE] = {"duplicates", PARSE_AMBIGUOUS, "step @ is there twice (# such steps)"},
    [CAUSE_BEYOND] = {"beyond", PARSE_AMBIGUOUS, "step @ is beyond the last of the run, $"},
    [CAUSE_CLOCK] = {"clock", PARSE_AMBIGUOUS, "the clock goes back at step @"},
    [CAUSE_ARITHMETIC] = {"arithmetic", PARSE_CONTRADICTS_ITSELF, ""},
    [CAUSE_LEVELS] = {"levels", PARSE_TWO_LEVELS, ""},
    [CAUSE_TRUNCATED] = {"truncated", PARSE_TRUNCATED,
                         "the last line ends in the middle of a record"},
    [CAUSE_FATAL] = {"fatal", PARSE_INCOMPLETE, "line @ says that the run failed"},
    [CAUSE_CRASH] = {"crash", PARSE_INCOMPLETE,
                     "line @: the program broke off in the midst of the run"},
    [CAUSE_NO_END] = {"no_end", PARSE_INCOMPLETE, "the line that ends a run is missing"},
    [CAUSE_SHORT] = {"short", PARSE_INCOMPLETE, "the log ends at step @ of $"},
    [CAUSE_BEGIN] = {"begin", PARSE_INCOMPLETE, "the log begins at step @: # line~ missing"},
    [CAUSE_GAP] = {"gaps", PARSE_INCOMPLETE, "# line~ missing before step @"}};

const char *cause_name(enum cause cause)
{
    return ROWS[cause].name;
}

void cause_add(struct causes *causes, enum cause cause, int64_t at)
{
    if (causes->n[cause]++ == 0) {
        causes->at[cause] = at;
    }
}

static int first_of(const struct causes *causes)
{
    int cause = 0;
    while (cause < CAUSES && causes->n[cause] == 0) {
        cause++;
    }
    return cause;
}

enum parse_verdict cause_verdict(enum cause cause)
{
    return ROWS[cause].verdict;
}

enum parse_verdict causes_verdict(const struct causes *causes)
{
    int cause = first_of(causes);
    return cause == CAUSES ? PARSE_OK : ROWS[cause].verdict;
}

/* A sentence that the row's cannot say, or NULL. */
static const char *other_why(struct arena *arena, const struct causes *c, int first)
{
    return first == CAUSE_UNREADABLE && *c->bad_value
               ? arena_printf(arena,
                              "line %" PRId64 ": \"%s\" where a finite number over 0 is expected",
                              c->at[first], c->bad_value)
           : first == CAUSE_NO_METRIC && c->n[CAUSE_TRUNCATED] ? "the only record is cut off"
           : first == CAUSE_SHORT && c->epochs_left > 0
               ? arena_printf(arena, "the log ends %" PRId64 " epochs before the run's last",
                              c->epochs_left)
           : first == CAUSE_BEGIN && c->at[first] <= 0
               ? "the line with which a run begins is missing"
               : NULL;
}

/* One sentence about the first cause; empty if there is none. */
static struct str causes_why(struct arena *arena, const struct causes *causes)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(WHY_BYTES);
    int first = first_of(causes);
    if (first == CAUSES || first == CAUSE_ARITHMETIC || first == CAUSE_LEVELS) {
        return first == CAUSES ? STR_EMPTY : causes->doubt;
    }
    const char *other = other_why(arena, causes, first);
    for (const char *c = other ? "" : ROWS[first].why; *c; c++) {
        if (*c == '~') {
            strbuf_add_z(&text, causes->n[first] == 1 ? " is" : "s are");
        } else if (strchr("@#$", *c)) {
            strbuf_printf(&text, "%" PRId64,
                          *c == '@'   ? causes->at[first]
                          : *c == '#' ? causes->n[first]
                                      : causes->total_steps);
        } else {
            strbuf_add_char(&text, *c);
        }
    }
    return str_dup(arena, other ? str_of(other) : strbuf_str(&text));
}

/* ---- the samples of one run ---- */

struct run_seen { /* one run of one log */
    const struct series *primary;
    const struct series_spec *spec;
    const struct run_state *now;
    int32_t run;
    bool has_steps;      /* the samples' steps are printed, not counted */
    bool has_end;        /* its last step shows how far the run came */
    bool shows_begin;    /* its first step shows whether lines are missing before it */
    int64_t epochs_left; /* if only epochs are counted: the missing ones */
    int64_t n_before;    /* steps made when the first is printed: 1 if that is step 0 */
    int64_t first_step;  /* of its first line; filled in by look_at_samples */
    int64_t edge; /* the last step of an epoch if each counts from the start, -1: none; likewise */
};

/* Each sample of the run, paired with the one before it of the same rank. */
struct pairs {
    const struct series *series;
    int32_t run;
    size_t at;
    const struct sample **last; /* by rank + 1; owned */
    size_t n_last;
};

static const struct sample **last_of(struct pairs *p, int32_t rank)
{
    size_t idx = rank < 0 ? 0 : (size_t)rank + 1;
    if (idx >= p->n_last) {
        size_t n = 2 * idx + 2;
        p->last = xrealloc(p->last, n * sizeof(p->last[0]));
        memset(p->last + p->n_last, 0, (n - p->n_last) * sizeof(p->last[0]));
        p->n_last = n;
    }
    return &p->last[idx];
}

/* *ret_before is NULL for a rank's first. */
static bool next_pair(struct pairs *p, const struct sample **ret_before,
                      const struct sample **ret_sample)
{
    while (p->at < p->series->n && p->series->samples[p->at].run != p->run) {
        p->at++;
    }
    if (p->at == p->series->n) {
        return false;
    }
    *ret_sample = &p->series->samples[p->at++];
    const struct sample **last = last_of(p, (*ret_sample)->rank);
    *ret_before = *last;
    *last = *ret_sample;
    return true;
}

/* What the intervals between a rank's lines have in common. */
struct intervals {
    int64_t n, candidate, votes, alike, least;
    bool are_multiples; /* of the smallest */
};

/* The first pass finds the candidate and the smallest, the second how many agree with them. */
static void count_interval(struct intervals *of, int64_t delta, int pass)
{
    if (pass == 1) {
        of->alike += delta == of->candidate;
        of->are_multiples = of->are_multiples && (delta == of->least || delta % of->least == 0);
        return;
    }
    of->n++;
    of->least = delta < of->least ? delta : of->least;
    of->candidate = of->votes == 0 ? delta : of->candidate;
    of->votes += delta == of->candidate ? 1 : -1;
}

static int64_t few_grid(const struct run_seen *run, const struct intervals *of)
{
    bool is_stated = run->now->log_interval > 0 && run->now->log_interval == of->least;
    return of->are_multiples && (of->n == GRID_FEW || (of->n > 0 && is_stated)) ? of->least : 0;
}

/* Whether the line of the run's last step comes before the next grid step, while the line before it is on the grid. */
static bool is_odd_last(const struct run_seen *run, const struct sample *s, int64_t delta,
                        int64_t former)
{
    int64_t step = s->step - delta;
    return run->now->total_steps > 0 && s->step + run->n_before == run->now->total_steps &&
           delta < former && (step % former == 0 || (step + run->n_before) % former == 0);
}

/* Steps between lines in at least two of three intervals; 0 if the log shows no grid. The vote finds the only candidate
   for a majority in one pass. */
static int64_t grid_of(const struct run_seen *run)
{
    struct pairs p = {.series = run->primary, .run = run->run};
    const struct sample *before;
    const struct sample *s;
    struct intervals of = {.least = INT64_MAX, .are_multiples = true};
    for (int pass = 0; pass < 2; pass++) {
        int64_t former = 0;
        p.at = 0;
        if (p.n_last > 0) {
            memset(p.last, 0, p.n_last * sizeof(p.last[0]));
        }
        while (next_pair(&p, &before, &s)) {
            int64_t delta = before ? s->step - before->step : 0;
            bool is_early =
                run->spec->first_by > 0 && before && before->step == run->spec->first_by;
            if (delta <= 0 || is_early || is_odd_last(run, s, delta, former)) {
                continue; /* they may be off the grid */
            }
            former = delta;
            count_interval(&of, delta, pass);
        }
    }
    free(p.last);
    return of.n >= GRID_DELTAS_MIN && of.alike * GRID_OF >= of.n * GRID_ALIKE ? of.candidate
                                                                              : few_grid(run, &of);
}

/* Lines that are missing between two with an epoch's end between them. Each epoch begins as the run did. */
static int64_t missing_across(const struct run_seen *run, int64_t grid, const struct sample *before,
                              const struct sample *s)
{
    int64_t first = 1 - run->n_before; /* the number of an epoch's first step */
    int64_t each = run->now->epoch_steps;
    int64_t epochs = (s->step - first) / each - (before->step - first) / each;
    int64_t at = (s->step - first) % each;
    int64_t begun = (run->first_step - first) % each;
    int64_t to_end = (each - 1 - (before->step - first) % each) / grid;
    int64_t from_begin = at > begun ? (at - begun) / grid : 0;
    return to_end + from_begin + (epochs - 1) * ((each - 1) / grid + 1);
}

static bool is_across(const struct run_seen *run, const struct sample *before,
                      const struct sample *s)
{
    int64_t first = 1 - run->n_before;
    return run->now->epoch_steps > 0 && before->step >= first &&
           (s->step - first) / run->now->epoch_steps >
               (before->step - first) / run->now->epoch_steps;
}

static void add_gaps(struct causes *causes, int64_t n, int64_t step)
{
    if (n > 0) {
        cause_add(causes, CAUSE_GAP, step);
        causes->n[CAUSE_GAP] += n - 1;
    }
}

/* If each epoch counts from the start, all are equally long, including the last of a known number. */
static void look_at_last_epoch(const struct run_seen *run, int64_t grid, int64_t last,
                               struct causes *causes)
{
    if (last > run->edge) {
        add_gaps(causes, (last - run->edge) / grid, run->edge);
    }
    if (run->edge - last >= grid && run->now->of_epochs > 0 && run->epochs_left == 0) {
        cause_add(causes, CAUSE_SHORT, last);
        causes->total_steps = run->edge + run->n_before;
    }
}

/* If each epoch counts from the start, all begin at the same step, and all except the run's last end at the same
   step. */
static void look_at_edges(const struct run_seen *run, int64_t grid, int64_t last, int64_t first,
                          struct causes *causes)
{
    int64_t apart = run->edge < 0 ? 0 : last > run->edge ? last - run->edge : run->edge - last;
    add_gaps(causes, (first - run->first_step) / grid, first);
    add_gaps(causes, apart / grid, last);
}

static void look_at_steps(const struct run_seen *run, int64_t grid, const struct sample *before,
                          const struct sample *s, struct causes *causes)
{
    int64_t delta = before ? s->step - before->step : 0;
    if (before && delta == 0 && !run->spec->repeats) {
        cause_add(causes, CAUSE_DUPLICATE, s->step);
    }
    if (grid > 0 && delta > grid) {
        add_gaps(causes,
                 is_across(run, before, s) ? missing_across(run, grid, before, s)
                                           : (delta - 1) / grid,
                 s->step);
    }
    if (grid > 0 && delta < 0) {
        look_at_edges(run, grid, before->step, s->step, causes);
    }
    if (run->now->total_steps >= 0 && s->step + run->n_before > run->now->total_steps) {
        cause_add(causes, CAUSE_BEYOND, s->step);
        causes->total_steps = run->now->total_steps;
    }
}

/* A program that prints every n steps prints its first line within n steps, or where its format says. */
static void look_at_begin(const struct run_seen *run, int64_t grid, const struct sample *first,
                          struct causes *causes)
{
    bool is_said = run->spec->first_by >= 0;
    grid = grid > 0 ? grid : run->now->log_interval;
    if (first->step > run->spec->first_by && (is_said || (grid > 0 && first->step > grid))) {
        int64_t n = grid > 0 ? (first->step - (is_said ? run->spec->first_by : 1)) / grid : 0;
        cause_add(causes, CAUSE_BEGIN, first->step);
        causes->n[CAUSE_BEGIN] += n > 0 ? n - 1 : 0;
    }
}

static void look_at_clock(const struct sample *before, const struct sample *s,
                          struct causes *causes)
{
    double back = before ? before->time_s - s->time_s : 0; /* NAN if a line has no time */
    if (back > CLOCK_SLACK_S && back < YEAR_WRAP_S) {
        cause_add(causes, CAUSE_CLOCK, s->step);
    }
}

/* Steps between the last two lines of one rank: as many may be missing at the end of a complete log. */
static int64_t last_interval(const struct run_seen *run)
{
    const struct sample *samples = run->primary->samples;
    size_t n = run->primary->n;
    const struct sample *last = &samples[n - 1];
    for (size_t idx = n - 1; idx-- > 0 && samples[idx].run == last->run;) {
        if (samples[idx].rank == last->rank && samples[idx].step != last->step) {
            return last->step > samples[idx].step ? last->step - samples[idx].step : 1;
        }
    }
    return last->step;
}

static void look_at_end(const struct run_seen *run, struct causes *causes)
{
    const struct sample *last =
        run->primary->n ? &run->primary->samples[run->primary->n - 1] : NULL;
    bool has_samples = last && last->run == run->run;
    int64_t step = has_samples ? last->step : 0;
    int64_t interval = has_samples ? last_interval(run) : 1;
    int64_t made = has_samples ? step + run->n_before : 0;
    interval = interval > 0 ? interval : 1;
    made = run->now->done_step > made ? run->now->done_step : made;
    if (run->epochs_left > 0) {
        cause_add(causes, CAUSE_SHORT, step);
        causes->epochs_left = run->epochs_left;
    }
    if (run->now->total_steps > 0 && run->now->total_steps - made >= interval) {
        cause_add(causes, CAUSE_SHORT, run->now->done_step > step ? run->now->done_step : step);
        causes->total_steps = run->now->total_steps;
    }
}

/* Whether ranks print one summary of the whole job: all the same, but for the moments at which they end. */
static bool agree(const struct series *s, int32_t run)
{
    double least = INFINITY;
    double most = 0;
    for (size_t idx = 0; s->quantity == QTY_SUMMARY && idx < s->n; idx++) {
        double value = s->samples[idx].run == run ? s->samples[idx].value : (double)NAN;
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    return most > 0 && most <= AGREE_FAR * least;
}

/* What a run's samples show: that they begin and end where its grid of steps (every 10th, every 50th) says, that none of it is
   missing or there twice, and that its clock goes on. Causes of lines (a crash, a NaN) are the parser's. */
static void look_at_samples(struct run_seen *run, struct causes *causes)
{
    const struct sample *last = NULL;
    struct pairs p = {.series = run->primary, .run = run->run};
    const struct sample *before;
    const struct sample *s;
    int64_t grid = run->has_steps && run->spec->is_on_grid ? grid_of(run) : 0;
    int64_t n_ranks = 0;
    bool is_first = true;
    run->edge = -1;
    while (next_pair(&p, &before, &s)) {
        n_ranks += !before && (s->rank >= 0 || run->spec->quantity == QTY_SUMMARY);
        if (is_first && run->has_steps && run->shows_begin) {
            look_at_begin(run, grid, s, causes);
        }
        run->first_step = is_first ? s->step : run->first_step;
        is_first = false;
        if (run->has_steps) {
            look_at_steps(run, grid, before, s, causes);
        }
        run->edge = before && s->step < before->step ? before->step : run->edge;
        look_at_clock(before, s, causes);
        last = s;
    }
    if (last && grid > 0 && run->edge >= 0) {
        look_at_last_epoch(run, grid, last->step, causes);
    }
    free(p.last);
    bool is_own = run->primary->scope == SCOPE_RANK || run->primary->scope == SCOPE_NODE;
    if (n_ranks > 1 && !is_own && !agree(run->primary, run->run)) {
        causes->n[CAUSE_WRITERS] = n_ranks;
    }
    if (run->has_end) {
        look_at_end(run, causes);
    }
}

/* ---- the log ---- */

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
    return (struct run_seen){
        .primary = primary,
        .spec = spec,
        .now = &p->now,
        .run = p->run,
        .has_steps = spec->step >= 0 && !p->now.has_stepless,
        .has_end = true,
        .shows_begin = !p->format->begin_why.ptr && !p->now.is_resumed && !p->now.has_unmeasured,
        .epochs_left = p->now.total_steps >= 0 ? 0 : p->now.epochs_left,
        .n_before = 1 - spec->step_from,
    };
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
                           .last_line = state->last_line,
                           .lines = state->lines};
}

bool parser_is_done(const struct parser *p)
{
    size_t first = parser_primary(p);
    const struct series primary = parser_series(p, first);
    int64_t step =
        primary.n ? primary.samples[primary.n - 1].step + 1 - p->format->series[first].step_from
                  : 0;
    step = p->now.done_step > step ? p->now.done_step : step;
    /* Of an unknown number of epochs, the end of each is not the run's. */
    return p->now.of_epochs >= 0 && p->now.total_steps > 0 && step >= p->now.total_steps;
}

/* Whether the run's lines state its length or its end: otherwise a log that was cut between two lines looks whole. */
static bool states_end(const struct parser *p)
{
    const size_t first = parser_primary(p);
    return p->now.has_end || (p->now.of_epochs >= 0 && p->now.total_steps > 0) ||
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
            look_at_samples(&told, &p->now.causes);
            run.has_end = false;
        }
    }
    look_at_samples(&run, &p->now.causes);
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
    if (p->now.fatal_line > 0) {
        cause_add(&p->now.causes, CAUSE_FATAL, p->now.fatal_line);
    }
    if (has_samples && p->format->needs_end && !p->now.has_end) {
        cause_add(&p->now.causes, CAUSE_NO_END, 0);
    }
    if (has_samples && p->format->begin.pattern && !p->now.has_begin) {
        cause_add(&p->now.causes, CAUSE_BEGIN, 0);
    }
    enum parse_verdict verdict = causes_verdict(&p->now.causes) == PARSE_OK && !p->is_truncated
                                     ? PARSE_OK
                                     : PARSE_INCOMPLETE;
    merge(&p->causes, &p->now.causes);
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
