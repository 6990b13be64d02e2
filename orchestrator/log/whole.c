/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/whole.h"

#include <math.h>

#define CLOCK_SLACK_S   1.0
#define YEAR_WRAP_S     (300 * 86400.0) /* times without a year start over in January */
#define GRID_DELTAS_MIN 3               /* intervals whose majority shows a grid, */
#define GRID_FEW        2               /* or fewer, if each is a multiple of the smallest */
#define GRID_ALIKE      2               /* at least 2 of 3 are alike */
#define GRID_OF         3
#define AGREE_FAR       1.02

struct cause_row {
    const char *name;
    enum parse_verdict verdict;
};
static const struct cause_row ROWS[CAUSES] = {
    [CAUSE_UNREADABLE] = {"unreadable", PARSE_NAN},
    [CAUSE_NAN_LOSS] = {"nan_loss", PARSE_NAN},
    [CAUSE_NO_METRIC] = {"no_metric", PARSE_NO_METRIC},
    [CAUSE_RUNS] = {"runs", PARSE_AMBIGUOUS},
    [CAUSE_WRITERS] = {"writers", PARSE_AMBIGUOUS},
    [CAUSE_DUPLICATE] = {"duplicates", PARSE_AMBIGUOUS},
    [CAUSE_BEYOND] = {"beyond", PARSE_AMBIGUOUS},
    [CAUSE_CLOCK] = {"clock", PARSE_AMBIGUOUS},
    [CAUSE_ARITHMETIC] = {"arithmetic", PARSE_CONTRADICTS_ITSELF},
    [CAUSE_LEVELS] = {"levels", PARSE_TWO_LEVELS},
    [CAUSE_TRUNCATED] = {"truncated", PARSE_TRUNCATED},
    [CAUSE_FATAL] = {"fatal", PARSE_INCOMPLETE},
    [CAUSE_CRASH] = {"crash", PARSE_INCOMPLETE},
    [CAUSE_NO_END] = {"no_end", PARSE_INCOMPLETE},
    [CAUSE_SHORT] = {"short", PARSE_INCOMPLETE},
    [CAUSE_BEGIN] = {"begin", PARSE_INCOMPLETE},
    [CAUSE_GAP] = {"gaps", PARSE_INCOMPLETE}};

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

#define N "%" PRId64

static const char *short_why(struct arena *arena, const struct causes *causes)
{
    return causes->epochs_left > 0
               ? arena_printf(arena, "the log ends " N " epochs before the run's last",
                              causes->epochs_left)
               : arena_printf(arena, "the log ends at step " N " of " N, causes->at[CAUSE_SHORT],
                              causes->total_steps);
}

static const char *begin_why(struct arena *arena, int64_t at, int64_t n)
{
    return at > 0 ? arena_printf(arena, "the log begins at step " N ": " N " line%s missing", at, n,
                                 n == 1 ? " is" : "s are")
                  : "the line with which a run begins is missing";
}

struct str causes_why(struct arena *arena, const struct causes *causes)
{
    int first = first_of(causes);
    int64_t n = first < CAUSES ? causes->n[first] : 0;
    int64_t at = first < CAUSES ? causes->at[first] : 0;
    const char *why = "";
    if (first == CAUSE_ARITHMETIC || first == CAUSE_LEVELS) {
        return causes->doubt;
    }
    switch ((enum cause)first) {
    case CAUSE_UNREADABLE:
        why =
            *causes->bad_value
                ? arena_printf(arena, "line " N ": \"%s\" where a finite number over 0 is expected",
                               at, causes->bad_value)
                : arena_printf(arena, "line " N " looks like the metric and cannot be read", at);
        break;
    case CAUSE_NAN_LOSS:
        why = arena_printf(arena, "line " N ": the loss is not a finite number", at);
        break;
    case CAUSE_NO_METRIC:
        why = causes->n[CAUSE_TRUNCATED] ? "the only record is cut off"
                                         : "no line holds this format's metric";
        break;
    case CAUSE_RUNS:
        why = arena_printf(arena, "the log holds " N " runs", n);
        break;
    case CAUSE_WRITERS:
        why = arena_printf(arena, N " ranks print the figure of the whole job", n);
        break;
    case CAUSE_DUPLICATE:
        why = arena_printf(arena, "step " N " is there twice (" N " such steps)", at, n);
        break;
    case CAUSE_BEYOND:
        why = arena_printf(arena, "step " N " is beyond the last of the run, " N, at,
                           causes->total_steps);
        break;
    case CAUSE_CLOCK:
        why = arena_printf(arena, "the clock goes back at step " N, at);
        break;
    case CAUSE_TRUNCATED:
        why = "the last line ends in the middle of a record";
        break;
    case CAUSE_FATAL:
        why = arena_printf(arena, "line " N " says that the run failed", at);
        break;
    case CAUSE_CRASH:
        why = arena_printf(arena, "line " N ": the program broke off in the midst of the run", at);
        break;
    case CAUSE_NO_END:
        why = "the line that ends a run is missing";
        break;
    case CAUSE_SHORT:
        why = short_why(arena, causes);
        break;
    case CAUSE_BEGIN:
        why = begin_why(arena, at, n);
        break;
    case CAUSE_GAP:
        why = arena_printf(arena, N " line%s missing before step " N, n, n == 1 ? " is" : "s are",
                           at);
        break;
    case CAUSE_ARITHMETIC:
    case CAUSE_LEVELS:
    case CAUSES:
        return STR_EMPTY;
    }
    return str_dup(arena, str_of(why));
}

/* ---- the samples of one run ---- */

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
    bool is_stated = run->log_interval > 0 && run->log_interval == of->least;
    return of->are_multiples && (of->n == GRID_FEW || (of->n > 0 && is_stated)) ? of->least : 0;
}

/* Whether the line of the run's last step comes before the next grid step, while the line before it is on the grid. */
static bool is_odd_last(const struct run_seen *run, const struct sample *s, int64_t delta,
                        int64_t former)
{
    int64_t step = s->step - delta;
    return run->total_steps > 0 && s->step + run->n_before == run->total_steps && delta < former &&
           (step % former == 0 || (step + run->n_before) % former == 0);
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
            bool is_early = run->first_by > 0 && before && before->step == run->first_by;
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
    int64_t each = run->epoch_steps;
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
    return run->epoch_steps > 0 && before->step >= first &&
           (s->step - first) / run->epoch_steps > (before->step - first) / run->epoch_steps;
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
    if (run->edge - last >= grid && run->knows_epochs && run->epochs_left == 0) {
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
    if (before && delta == 0 && !run->repeats) {
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
    if (run->total_steps >= 0 && s->step + run->n_before > run->total_steps) {
        cause_add(causes, CAUSE_BEYOND, s->step);
        causes->total_steps = run->total_steps;
    }
}

/* A program that prints every n steps prints its first line within n steps, or where its format says. */
static void look_at_begin(const struct run_seen *run, int64_t grid, const struct sample *first,
                          struct causes *causes)
{
    bool is_said = run->first_by >= 0;
    grid = grid > 0 ? grid : run->log_interval;
    if (first->step > run->first_by && (is_said || (grid > 0 && first->step > grid))) {
        int64_t n = grid > 0 ? (first->step - (is_said ? run->first_by : 1)) / grid : 0;
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
    made = run->done_step > made ? run->done_step : made;
    if (run->epochs_left > 0) {
        cause_add(causes, CAUSE_SHORT, step);
        causes->epochs_left = run->epochs_left;
    }
    if (run->total_steps > 0 && run->total_steps - made >= interval) {
        cause_add(causes, CAUSE_SHORT, run->done_step > step ? run->done_step : step);
        causes->total_steps = run->total_steps;
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

/* What a run's samples show: that they begin and end where its grid of steps (every 10th, every 50th) says, that none of it is missing or
   there twice, and that its clock goes on. Causes of lines (a crash, a NaN) are the parser's. */
void whole_look(const struct run_seen *seen, struct causes *causes)
{
    struct run_seen of = *seen;
    const struct run_seen *run = &of;
    const struct sample *last = NULL;
    struct pairs p = {.series = run->primary, .run = run->run};
    const struct sample *before;
    const struct sample *s;
    int64_t grid = run->has_steps && !run->is_off_grid ? grid_of(run) : 0;
    int64_t n_ranks = 0;
    bool is_first = true;
    of.edge = -1;
    while (next_pair(&p, &before, &s)) {
        n_ranks += !before && s->rank >= 0;
        if (is_first && run->has_steps && run->shows_begin) {
            look_at_begin(run, grid, s, causes);
        }
        of.first_step = is_first ? s->step : of.first_step;
        is_first = false;
        if (run->has_steps) {
            look_at_steps(run, grid, before, s, causes);
        }
        of.edge = before && s->step < before->step ? before->step : of.edge;
        look_at_clock(before, s, causes);
        last = s;
    }
    if (last && grid > 0 && of.edge >= 0) {
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
