/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to samples, runs and facts, and at the end the measurement.

   A line goes through parser_line in one order:

       run_start, begin, resumed -> launcher_look -> every series: match, read_sample, follow_table -> loss
         -> what looks like a sample but was not read, progress, crash -> end: settle_facts -> fatal -> facts

   (1) A run begins at a line that says so (run_start), at a step that goes back while its epoch does not advance, and at a second
       summary of one kind (begins_run). next_run ends the one before, and what its lines said (struct run_state) is begun anew as
       a whole.
   (2) A fact that stands after samples waits (struct late_fact): the next sample of the same run, or its end, makes it this run's
       (settle_facts); if a run begins first, it is that one's (pass_facts). So a header belongs to the run below it.
   (3) A value that ends where an unterminated last line ends may have lost digits: it gives no sample, and the log is truncated.
   (4) What speaks against the log is counted as a cause with its line, of the run in which it stands; completeness.c makes a
       verdict of them when the run ends, and nothing is decided here. */
#include "base/base.h"

#include "log/engine.h"
#include "log/logtime.h"
#include "log/numbers.h"

#include <math.h>

#include "log/parser_impl.h"

#define FACTS_MAX         4096
#define SAMPLES_FIRST     256
#define DATE_BYTES        10 /* "2020-12-16" */
#define GROUPED_BYTES     32
#define SUMMARIES_APART   3  /* lines from one process's summary to the next one's */
#define PARTIAL_BYTES_MIN 12 /* a cut line must hold this much of a record to count as one */

static bool is_measured(enum quantity quantity)
{
    return quantity != QTY_SCORE && quantity != QTY_CLOCK && quantity != QTY_PROGRESS;
}

/* ---- facts ---- */

/* A probe without a pattern finds nothing. */
static int probe_line(struct parser *p, const struct probe *probe, const struct line *line,
                      bool *ret_found, struct err *err)
{
    *ret_found = false;
    if (!probe->pattern || probe->bit == NO_LITERAL || !(line->mask >> probe->bit & 1)) {
        return 0;
    }
    return pattern_match(probe->pattern, line->text, &p->budget, ret_found, err);
}

static struct fact fact_of(const struct parser *p, struct str name, struct str value, int64_t line)
{
    return (struct fact){name, value, line, p->run, p->run};
}

/* The value points into a line and is copied. */
static int push_fact(struct parser *p, struct fact fact, struct err *err)
{
    if (p->facts.n == FACTS_MAX) {
        return err_set(err, ERR_PARSE, "more than %d different facts in one log", FACTS_MAX);
    }
    fact.value = str_dup(p->arena, fact.value);
    VEC_PUSH(&p->facts, fact);
    return 0;
}

/* Keeps a new fact; *ret_place is its index plus one, SIZE_MAX for one that says nothing. The value is copied. */
static int keep_fact(struct parser *p, struct str name, struct str value, int64_t line,
                     size_t *ret_place, struct err *err)
{
    struct fact fact = fact_of(p, name, str_trim(value), line);
    for (size_t idx = 0; idx < p->facts.n; idx++) {
        struct fact *old = &p->facts.items[idx];
        if (str_eq(old->name, name) && str_eq(old->value, fact.value) &&
            old->first_run <= old->last_run && old->last_run + 1 >= fact.first_run) {
            old->last_run = fact.last_run;
            *ret_place = idx + 1;
            return 0;
        }
    }
    if (!fact.value.len) {
        *ret_place = SIZE_MAX;
        return 0;
    }
    if (push_fact(p, fact, err) < 0) {
        return -1;
    }
    *ret_place = p->facts.n;
    return 0;
}

/* Notes a fact that says how many steps or epochs the run makes, or how often it prints; text that is not such a number is
   ignored. */
static void note_total(struct parser *p, struct str name, struct str value)
{
    int64_t total;
    bool is_steps = p->format->total_from.ptr && str_eq(name, p->format->total_from);
    bool is_epochs = p->format->epochs_from.ptr && str_eq(name, p->format->epochs_from);
    bool is_interval = str_eq_z(name, "log_interval");
    if ((is_steps || is_epochs || is_interval) &&
        str_to_i64(value, 1, TOTAL_MAX, &total, ERR_IGNORED) == 0) {
        *(is_steps    ? &p->now.total_steps
          : is_epochs ? &p->now.total_epochs
                      : &p->now.log_interval) = total;
    }
}

/* The number of items in a comma-separated list. */
static struct str count_parts(struct str list, char *buf, size_t size)
{
    size_t n = 1;
    for (size_t idx = 0; idx < list.len; idx++) {
        n += list.ptr[idx] == ',';
    }
    snprintf(buf, size, "%zu", list.len ? n : 0);
    return str_of(buf);
}

/* Replaces a fact that the same spec read earlier in this run: the later statement counts. */
static int replace_fact(struct parser *p, size_t *place, struct str value, int64_t line,
                        struct err *err)
{
    struct fact *fact = &p->facts.items[*place - 1];
    struct str name = fact->name;
    value = str_trim(value);
    if (!value.len || str_eq(fact->value, value)) {
        return 0;
    }
    if (fact->first_run < p->run) { /* also of an earlier run */
        fact->last_run = p->run - 1;
        return keep_fact(p, name, value, line, place, err);
    }
    *fact = fact_of(p, name, str_dup(p->arena, value), line);
    return 0;
}

static int state_fact(struct parser *p, size_t idx, struct str value, int64_t line, struct err *err)
{
    const struct fact_spec *spec = &p->format->facts[idx];
    size_t *place = &p->fact_of[idx];
    note_total(p, spec->name, value);
    return spec->is_last && *place && *place <= p->facts.n
               ? replace_fact(p, place, value, line, err)
               : keep_fact(p, spec->name, value, line, place, err);
}

/* ---- after samples ---- */

static void keep_late(struct parser *p, size_t idx, struct str value, int64_t line)
{
    struct late_fact *late = &p->gap.facts[idx];
    value = str_trim(value);
    if (late->max < value.len) {
        late->max = value.len;
        late->text = xrealloc(late->text, late->max);
    }
    if (value.len) {
        memcpy(late->text, value.ptr, value.len);
    }
    late->len = value.len;
    late->line = line;
    p->gap.has_facts = true;
}

static struct str late_text(const struct late_fact *late)
{
    return late->len ? (struct str){late->text, late->len} : STR_EMPTY;
}

/* Another header while the run goes on: it states again facts on which identity depends. */
static bool is_second_header(const struct parser *p)
{
    for (size_t idx = 0; idx < p->format->n_facts; idx++) {
        if (p->gap.facts[idx].line && p->fact_of[idx] &&
            fact_is_of_identity(p->format->facts[idx].name)) {
            return true;
        }
    }
    return false;
}

/* Assigns a fact to this run. A fact on which identity depends counts in addition to the first statement; one that only
   another header states belongs to no run. */
static int settle_fact(struct parser *p, size_t idx, bool is_second, struct err *err)
{
    const struct fact_spec *spec = &p->format->facts[idx];
    struct str value = late_text(&p->gap.facts[idx]);
    int64_t line = p->gap.facts[idx].line;
    bool stands_on = fact_is_of_identity(spec->name);
    size_t place;
    if (p->fact_of[idx] && !spec->is_last) {
        return stands_on ? keep_fact(p, spec->name, value, line, &place, err) : 0;
    }
    if (stands_on && is_second && !p->fact_of[idx]) {
        return value.len ? push_fact(p, (struct fact){spec->name, value, line, FACT_OF_NONE}, err)
                         : 0;
    }
    return state_fact(p, idx, value, line, err);
}

/* How a gap between samples ends. */
static int end_gap(struct parser *p, bool is_passed, struct err *err)
{
    bool is_second = p->gap.has_facts && !is_passed && is_second_header(p);
    for (size_t idx = 0; p->gap.has_facts && idx < p->format->n_facts; idx++) {
        struct late_fact *late = &p->gap.facts[idx];
        if (!late->line) {
            continue;
        }
        if ((is_passed ? state_fact(p, idx, late_text(late), late->line, err)
                       : settle_fact(p, idx, is_second, err)) < 0) {
            return -1;
        }
        late->line = 0;
    }
    p->gap = (struct gap){.facts = p->gap.facts};
    return 0;
}

/* Assigns what was stated since the last sample to this run, or, passed on, to the next if one has begun (2). */
static int settle_facts(struct parser *p, struct err *err)
{
    return end_gap(p, false, err);
}

static int pass_facts(struct parser *p, struct err *err)
{
    p->now.has_begin = p->gap.has_begin;
    p->now.is_resumed = p->gap.is_resumed;
    return end_gap(p, true, err);
}

/* Whether a line needs to be checked against a spec. */
static bool is_wanted(const struct parser *p, size_t idx, bool is_sample, bool is_late)
{
    const struct fact_spec *spec = &p->format->facts[idx];
    return is_sample == spec->is_in_sample &&
           (is_sample || spec->is_last || (is_late ? !p->gap.facts[idx].line : !p->fact_of[idx]));
}

/* Reads the facts of a line, which may be a sample. */
static int read_facts(struct parser *p, const struct line *line, bool is_sample, struct err *err)
{
    bool is_late = !is_sample && p->now.has_samples;
    if (!(line->mask & p->format->fact_mask[is_sample])) {
        return 0;
    }
    for (size_t idx = 0; idx < p->format->n_facts; idx++) {
        const struct fact_spec *spec = &p->format->facts[idx];
        struct str value;
        char count[32];
        bool is_hit = false;
        if (!is_wanted(p, idx, is_sample, is_late)) {
            continue;
        }
        if (probe_line(p, &spec->line, line, &is_hit, err) < 0) {
            return -1;
        }
        if (!is_hit) {
            continue;
        }
        value =
            spec->says.ptr ? spec->says : pattern_text(spec->line.pattern, line->text, spec->value);
        if (spec->is_list) {
            value = count_parts(value, count, sizeof(count));
        }
        if (spec->is_grouped) {
            value = lognumber_ungroup(str_trim(value), count, sizeof(count));
        }
        if (is_late) {
            keep_late(p, idx, value, line->number);
        } else if (state_fact(p, idx, value, line->number, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int next_run(struct parser *p, struct err *err)
{
    if (p->run + 1 == RUNS_MAX) {
        return err_set(err, ERR_PARSE, "more than %d runs in one log", RUNS_MAX);
    }
    parser_end_run(p);
    p->run++;
    p->now = RUN_NEW;
    memset(p->fact_of, 0, p->format->n_facts * sizeof(p->fact_of[0]));
    for (size_t idx = 0; idx < p->format->n_series; idx++) {
        free(p->series[idx].ranks);
        p->series[idx].ranks = NULL;
        p->series[idx].n_ranks = 0;
        p->series[idx].ordinal = 0;
    }
    return pass_facts(p, err);
}

/* NULL with *err filled if there are too many ranks. */
static struct rank_state *rank_state_of(struct series_state *state, int32_t rank, struct err *err)
{
    size_t idx = rank < 0 ? 0 : (size_t)rank + 1;
    if (rank >= FORMAT_RANKS_MAX) {
        int status =
            err_set(err, ERR_PARSE, "rank %d: expected less than %d", rank, FORMAT_RANKS_MAX);
        ASSERT(status < 0);
        return NULL;
    }
    if (idx >= state->n_ranks) {
        size_t n = 2 * idx + 2;
        state->ranks = xrealloc(state->ranks, n * sizeof(state->ranks[0]));
        memset(state->ranks + state->n_ranks, 0, (n - state->n_ranks) * sizeof(state->ranks[0]));
        state->n_ranks = n;
    }
    return &state->ranks[idx];
}

static int push_sample(const struct parser *p, struct series_state *state,
                       const struct sample *sample, int64_t line, struct err *err)
{
    size_t all = 0;
    if (state->n == state->n_max) {
        for (size_t idx = 0; idx < p->format->n_series; idx++) {
            all += p->series[idx].n;
        }
        if (all >= FORMAT_SAMPLES_MAX) {
            return err_set(err, ERR_PARSE, "more than %u samples in one log", FORMAT_SAMPLES_MAX);
        }
        state->n_max = state->n_max ? 2 * state->n_max : SAMPLES_FIRST;
        state->items = xrealloc(state->items, state->n_max * sizeof(state->items[0]));
        if (p->keeps_lines) {
            state->lines = xrealloc(state->lines, state->n_max * sizeof(state->lines[0]));
        }
    }
    if (p->keeps_lines) {
        state->lines[state->n] = line;
    }
    state->last_line = line;
    state->items[state->n++] = *sample;
    return 0;
}

/* The whole number in a group, or `absent` if the group took no part or is not a number. */
static int64_t group_i64(const struct series_spec *spec, struct str text, int group, int64_t max,
                         int64_t absent)
{
    int64_t value;
    return group >= 0 && logwhole_parse(pattern_text(spec->line.pattern, text, group), max, &value)
               ? value
               : absent;
}

/* A step that goes backward while the epoch does not advance, an epoch that goes backward, or a second summary of the same
   kind begins another run. Equal steps do not: loss scaling repeats an iteration. */
static bool begins_run(const struct series_spec *spec, const struct rank_state *state,
                       const struct series_state *series, const struct sample *sample,
                       int64_t epoch)
{
    if (spec->quantity == QTY_SUMMARY) {
        for (size_t idx = series->n; state->has_summary && idx-- > 0;) {
            const struct sample *old = &series->items[idx];
            if (old->run != sample->run) {
                break;
            }
            if (old->rank == sample->rank && old->gpus == sample->gpus) {
                return true;
            }
        }
        return false;
    }
    if (!state->has_step || spec->step < 0 || spec->quantity == QTY_SCORE) {
        return false;
    }
    return epoch < state->epoch || (epoch == state->epoch && sample->step < state->step);
}

static void note_bad_value(struct parser *p, const struct line *line, struct str value)
{
    cause_add(&p->now.causes, CAUSE_UNREADABLE, line->number);
    if (p->first_bad_line == 0) {
        p->first_bad_line = line->number;
        snprintf(p->bad_value, sizeof(p->bad_value), "%.*s", STR_ARG(str_sub(value, 0, 30)));
    }
}

static bool takes_part(const struct series_spec *spec, const struct line *line, int group)
{
    return group >= 0 && pattern_text(spec->line.pattern, line->text, group).ptr;
}

static double read_value(struct parser *p, const struct series_spec *spec, const struct line *line)
{
    struct str text = pattern_text(spec->line.pattern, line->text, spec->value);
    char plain[GROUPED_BYTES];
    double value;
    if (spec->is_grouped) {
        text = lognumber_ungroup(str_trim(text), plain, sizeof(plain));
    }
    if (spec->quantity == QTY_CLOCK || spec->quantity == QTY_PROGRESS) {
        return (double)NAN;
    }
    if (lognumber_parse(text, &value) != NUMBER_OK ||
        (is_measured(spec->quantity) && !(value > 0))) {
        if (is_measured(spec->quantity)) {
            note_bad_value(p, line, text);
        }
        return (double)NAN;
    }
    value *= takes_part(spec, line, spec->kilo) ? 1e3 : 1;
    value *= takes_part(spec, line, spec->mega) ? 1e6 : 1;
    value /= takes_part(spec, line, spec->milli) ? 1e3 : 1;
    value /= takes_part(spec, line, spec->micro) ? 1e6 : 1;
    value = takes_part(spec, line, spec->inverse) ? 1 / value : value; /* over 0: is_measured */
    return spec->factor == 1 ? value : value * spec->factor;
}

static bool is_loss(const struct series_spec *spec)
{
    return spec->quantity == QTY_SCORE && str_eq_z(spec->name, "loss");
}

/* A value at the very end of an unterminated line may have lost digits (3). */
static bool may_be_cut(const struct series_spec *spec, const struct line *line)
{
    struct str value =
        spec->value < 0 ? STR_EMPTY : pattern_text(spec->line.pattern, line->text, spec->value);
    return line->is_cut && value.ptr && value.ptr + value.len == line->text.ptr + line->text.len;
}

/* Steps and totals of an epoch become those of the run, as far as the line and the facts tell. */
static void count_over_epochs(struct parser *p, const struct series_spec *spec, int64_t epoch,
                              int64_t epochs, struct sample *sample, int64_t *total)
{
    int64_t each = *total;
    int64_t before = epoch - spec->epoch_from;
    epochs = epochs > 0 ? epochs : p->now.total_epochs;
    if (spec->epoch_from >= 0) {
        p->now.epochs_left = epochs > 0 && before >= 0 ? epochs - before - 1 : 0;
        p->now.of_epochs = epochs > 0 ? 1 : -1;
    }
    if (spec->epoch_from < 0 || before < 0 || each <= 0 || sample->step < 0 || each > TOTAL_MAX ||
        before >= TOTAL_MAX / each || sample->step > TOTAL_MAX) {
        return;
    }
    p->now.epoch_steps = each;
    sample->step += before * each;
    *total = epochs > before && epochs < TOTAL_MAX / each ? epochs * each : (before + 1) * each;
}

/* A summary right below the same one, which no launcher has tagged: of another process of the job. */
static bool is_of_next_writer(const struct series_spec *spec, const struct rank_state *state,
                              const struct sample *sample, const struct line *line)
{
    return spec->quantity == QTY_SUMMARY && state->has_summary && sample->rank < 0 &&
           sample->gpus < 0 && line->number - state->line <= SUMMARIES_APART;
}

/* The first line of many tools has a rate of 0: they measure since the line before. */
static bool is_not_measured_yet(const struct series_spec *spec, const struct line *line)
{
    double value;
    bool is_of_lines = spec->quantity == QTY_RATE || spec->quantity == QTY_RUNNING_MEAN ||
                       spec->quantity == QTY_STEP_TIME;
    return is_of_lines && !line->is_cut &&
           lognumber_parse(pattern_text(spec->line.pattern, line->text, spec->value), &value) ==
               NUMBER_OK &&
           !(value < 0) && !(value > 0);
}

/* The day of the run's first sample. */
static int note_date(struct parser *p, struct str time, const struct line *line, struct err *err)
{
    size_t place;
    bool is_dated = time.ptr && time.len > DATE_BYTES && (time.ptr[4] == '-' || time.ptr[4] == '/');
    if (p->now.has_date || !is_dated) {
        return 0;
    }
    p->now.has_date = true;
    return keep_fact(p, STR_LIT("log_date"), str_sub(time, 0, DATE_BYTES), line->number, &place,
                     err);
}

/* A bar may be drawn again at its step, with other figures or after a validation: its first line holds the steps alone. */
static bool is_drawn_again(const struct series_spec *spec, const struct rank_state *state,
                           const struct sample *sample, int64_t epoch)
{
    return spec->repeats && spec->quantity == QTY_RUNNING_MEAN && state->has_step && epoch >= 0 &&
           epoch == state->epoch && sample->step == state->step;
}

static bool lacks_step(const struct series_spec *spec, const struct sample *sample)
{
    return spec->step >= 0 && sample->step < 0;
}

/* The state of the rank and run that the sample belongs to, which it may begin (1); NULL: *err says why. */
static struct rank_state *place_sample(struct parser *p, size_t idx, const struct line *line,
                                       struct sample *sample, int64_t epoch, struct err *err)
{
    const struct series_spec *spec = &p->format->series[idx];
    struct series_state *series = &p->series[idx];
    struct rank_state *state = rank_state_of(series, sample->rank, err);
    if (state && is_of_next_writer(spec, state, sample, line)) {
        sample->rank = (int32_t)state->line_n++;
        state->line = line->number;
        state = rank_state_of(series, sample->rank, err);
    }
    if (!state || lacks_step(spec, sample) || !begins_run(spec, state, series, sample, epoch)) {
        return state;
    }
    if (next_run(p, err) < 0) {
        return NULL;
    }
    sample->run = (int16_t)p->run;
    return rank_state_of(series, sample->rank, err);
}

static int read_sample(struct parser *p, size_t idx, const struct line *line, struct err *err)
{
    const struct series_spec *spec = &p->format->series[idx];
    struct series_state *series = &p->series[idx];
    struct str time =
        spec->time < 0 ? STR_EMPTY : pattern_text(spec->line.pattern, line->text, spec->time);
    int64_t epoch = group_i64(spec, line->text, spec->epoch, INT64_MAX, -1);
    int64_t total = group_i64(spec, line->text, spec->total, INT64_MAX, -1);
    struct sample sample = {
        .step = group_i64(spec, line->text, spec->step, INT64_MAX, -1),
        .time_s = (double)NAN,
        .rank = (int32_t)group_i64(spec, line->text, spec->rank, INT32_MAX, line->rank),
        .run = (int16_t)p->run,
        .gpus = (int16_t)group_i64(spec, line->text, spec->gpus, INT16_MAX, -1),
    };
    count_over_epochs(p, spec, epoch, group_i64(spec, line->text, spec->epochs, TOTAL_MAX, -1),
                      &sample, &total);
    if (time.ptr && !logtime_parse(time, &sample.time_s) && !logspan_parse(time, &sample.time_s)) {
        sample.time_s = (double)NAN;
    }
    struct rank_state *state = place_sample(p, idx, line, &sample, epoch, err);
    if (!state || note_date(p, time, line, err) < 0) {
        return -1;
    }
    bool is_stepless = lacks_step(spec, &sample);
    p->now.has_stepless = p->now.has_stepless || is_stepless;
    bool is_first = !state->has_step && !state->has_summary;
    bool is_again = is_drawn_again(spec, state, &sample, epoch);
    series->ordinal++;
    if (sample.step < 0) {
        sample.step = series->ordinal;
    }
    if (!is_stepless) {
        *state = (struct rank_state){sample.step,  epoch, true, spec->quantity == QTY_SUMMARY,
                                     line->number, 1};
    }
    p->now.has_samples = true;
    p->now.total_steps = total >= 0 ? total : p->now.total_steps;
    if (is_again) {
        return 0;
    }
    if (is_first && is_not_measured_yet(spec, line)) {
        p->now.has_unmeasured = true;
        return 0;
    }
    sample.value = read_value(p, spec, line);
    return push_sample(p, series, &sample, line->number, err);
}

/* An unterminated last line that opens an object and does not close it. */
static bool ends_in_object(const struct line *line)
{
    return line->is_cut && memchr(line->text.ptr, '{', line->text.len) &&
           line->text.ptr[line->text.len - 1] != '}';
}

static int read_series(struct parser *p, size_t idx, const struct line *line, bool *ret_found,
                       struct err *err)
{
    const struct series_spec *spec = &p->format->series[idx];
    bool has_literal = spec->line.bit == NO_LITERAL || (line->mask >> spec->line.bit & 1) != 0;
    bool is_partial = false;
    *ret_found = false;
    if (spec->after.pattern && !p->series[idx].is_open) {
        return 0;
    }
    if (p->skips_scores && spec->quantity == QTY_SCORE && !str_eq(spec->name, p->named)) {
        return 0;
    }
    if (has_literal &&
        pattern_match(spec->line.pattern, line->text, &p->budget, ret_found, err) < 0) {
        return -1;
    }
    if (*ret_found && may_be_cut(spec, line)) {
        /* The printed value is unknown. A truncated score does not affect the rates. */
        p->is_truncated = p->is_truncated || is_measured(spec->quantity);
        return 0;
    }
    if (*ret_found && spec->quantity == QTY_CLOCK && ends_in_object(line)) {
        p->is_truncated = true; /* the step is known, but not its value */
        return 0;
    }
    if (*ret_found) {
        return read_sample(p, idx, line, err);
    }
    if (line->is_cut && spec->quantity != QTY_SCORE) {
        if (pattern_match_partial(spec->line.pattern, line->text, PARTIAL_BYTES_MIN, &p->budget,
                                  &is_partial, err) < 0) {
            return -1;
        }
        p->is_truncated = p->is_truncated || is_partial;
    }
    return 0;
}

/* Opens and closes tables. */
static int follow_table(struct parser *p, size_t idx, const struct line *line, struct err *err)
{
    const struct series_spec *spec = &p->format->series[idx];
    struct series_state *state = &p->series[idx];
    bool is_hit = false;
    if (!spec->after.pattern) {
        return 0;
    }
    if (state->is_open && spec->until) {
        if (pattern_match(spec->until, line->text, &p->budget, &is_hit, err) < 0) {
            return -1;
        }
        p->n_open -= is_hit;
        state->is_open = !is_hit;
    }
    if (!state->is_open) {
        if (probe_line(p, &spec->after, line, &is_hit, err) < 0) {
            return -1;
        }
        p->n_open += is_hit;
        state->is_open = is_hit;
    }
    return 0;
}

bool parser_lacks_loss(struct patterns *patterns, struct str line, bool *ret_is_word)
{
    static const char LACKS[] =
        "[lL]oss((?<=val[ _/.].oss)|(?<=test[ _/.].oss)|(?<=dev[ _/.].oss)|(?<=valid[ _/.].oss)|"
        "(?<=validation[ _/.].oss)|(?<=best[ _/.].oss)|(?<=min[ _/.].oss))?[ :\"'=+|-]*+"
        "(?=[nNiI])((?i:nan|inf(?:inity)?)(?![A-Za-z0-9_]))?";
    struct str g[3];
    bool lacks = false;
    struct str rest = line;
    for (int64_t at; !lacks && (at = str_find(rest, STR_LIT("oss"))) >= 0;) {
        rest = str_sub(rest, (size_t)at + 3, SIZE_MAX);
        size_t end = str_span(rest, 0, " :\"'=+|-"); /* nearly always a digit */
        lacks = end < rest.len && strchr("nNiI", rest.ptr[end]);
    }
    lacks = lacks && patterns_find(patterns, LACKS, line, g, 3);
    *ret_is_word = lacks && g[2].ptr && !g[1].ptr;
    return lacks;
}

/* Whether the loss on a line is a number, even if scores are left out, and if the format reads none there; few lines hold any. */
static int look_at_loss(struct parser *p, const struct line *line, struct err *err)
{
    bool is_word;
    bool is_read = false;
    bool is_named = parser_lacks_loss(&p->patterns, line->text, &is_word);
    for (size_t idx = 0; idx < p->format->n_series; idx++) {
        const struct series_spec *spec = &p->format->series[idx];
        bool is_bare = spec->is_bare && (line->mask >> spec->line.bit & 1) != 0;
        bool is_there = false;
        double value;
        if (!is_loss(spec) || !(is_named || is_bare)) {
            continue;
        }
        if (pattern_match(spec->line.pattern, line->text, &p->budget, &is_there, err) < 0) {
            return -1;
        }
        if (is_there && lognumber_parse(pattern_text(spec->line.pattern, line->text, spec->value),
                                        &value) != NUMBER_OK) {
            cause_add(&p->now.causes, CAUSE_NAN_LOSS, line->number);
        }
        is_read = is_read || is_there;
    }
    if (is_word && !is_read && !numbers_is_of_eval(line->text)) {
        cause_add(&p->now.causes, CAUSE_NAN_LOSS, line->number);
    }
    return 0;
}

/* A line that looks like the metric but that no series of the metric has read is a cause (4). */
static int look_at_like(struct parser *p, const struct line *line, bool *ret_is_like,
                        struct err *err)
{
    *ret_is_like = false;
    for (size_t idx = 0; !*ret_is_like && idx < p->format->n_series; idx++) {
        const struct series_spec *spec = &p->format->series[idx];
        bool is_like = spec->like && (line->mask >> spec->line.bit & 1) != 0;
        if (is_like && pattern_match(spec->like, line->text, &p->budget, &is_like, err) < 0) {
            return -1;
        }
        *ret_is_like = is_like;
    }
    if (*ret_is_like) {
        cause_add(&p->now.causes, CAUSE_UNREADABLE, line->number);
    }
    return 0;
}

/* "Killed" is a word of its own, as a shell prints it. */
static bool breaks_off(struct parser *p, const struct line *line)
{
    static const char BROKEN[] =
        "(?:^| )Killed(?: |\\z)|job killed|(?:exit|exited with|return) code[ :=]+-?[1-9]|"
        "OutOfMemoryError|ResourceExhaustedError|ChildFailedError|AssertionError|"
        "(?:Runtime|FloatingPoint)Error: |(?:CUDA|NCCL|Fatal Python|bus) error|"
        "(?:slurmstepd|srun): error: ";
    return (line->mask & p->format->crash_mask) != 0 ||
           ((line->mask & p->format->broken_mask) != 0 &&
            patterns_find(&p->patterns, BROKEN, line->text, NULL, 0));
}

/* A line that no series reads: it may still look like one, state the progress of the run, or be a crash message. */
static int look_at_rest(struct parser *p, const struct line *line, struct err *err)
{
    const struct format *f = p->format;
    bool is_hit = false;
    if (probe_line(p, &f->done, line, &is_hit, err) < 0) {
        return -1;
    }
    if (is_hit) {
        int64_t step;
        if (logwhole_parse(pattern_text(f->done.pattern, line->text, f->done_step), INT64_MAX,
                           &step)) {
            p->now.done_step = step > p->now.done_step ? step : p->now.done_step;
        }
        return 0;
    }
    if (look_at_like(p, line, &is_hit, err) < 0 || is_hit) {
        return is_hit ? 0 : -1;
    }
    if (breaks_off(p, line) && p->now.has_samples && !p->now.has_end && !parser_is_done(p)) {
        cause_add(&p->now.causes, CAUSE_CRASH, line->number);
    }
    return 0;
}

/* For a line of which only the loss was read: whether the metric should have been, too. */
static int look_at_unread(struct parser *p, const struct line *line, bool has_score,
                          struct err *err)
{
    bool is_like;
    if (!has_score) {
        return look_at_rest(p, line, err);
    }
    return look_at_like(p, line, &is_like, err);
}

/* A line that begins a run, or the next run if there is one already. */
static int follow_start(struct parser *p, const struct line *line, struct err *err)
{
    bool is_hit = false;
    if (probe_line(p, &p->format->run_start, line, &is_hit, err) < 0) {
        return -1;
    }
    if (!is_hit) {
        return 0;
    }
    return p->now.has_samples || p->now.has_end ? next_run(p, err) : 0;
}

/* Lines that begin or resume a run: after samples, perhaps the next one. */
static int look_at_begin(struct parser *p, const struct line *line, struct err *err)
{
    bool is_begin = false;
    bool is_resumed = false;
    if (probe_line(p, &p->format->begin, line, &is_begin, err) < 0 ||
        probe_line(p, &p->format->resumed, line, &is_resumed, err) < 0) {
        return -1;
    }
    *(p->now.has_samples ? &p->gap.has_begin : &p->now.has_begin) |= is_begin;
    *(p->now.has_samples ? &p->gap.is_resumed : &p->now.is_resumed) |= is_resumed;
    return 0;
}

static int look_at_fatal(struct parser *p, const struct line *line, bool *ret_is_hit,
                         struct err *err)
{
    /* "[ FAIL ]", "[  FAILED  ]": not "0 FAILED" nor "FAILED: 0". */
    static const char FAILS[] =
        "FAIL ]|failed to meet|(?<![_0])(?<!0 )(?<!0  )FAILED(?![_\\d])(?![ :=]*0)";
    if (probe_line(p, &p->format->fatal, line, ret_is_hit, err) < 0) {
        return -1;
    }
    *ret_is_hit = *ret_is_hit || ((line->mask & p->format->failed_mask) != 0 &&
                                  patterns_find(&p->patterns, FAILS, line->text, NULL, 0));
    return 0;
}

int parser_line(struct parser *p, const struct line *line, struct err *err)
{
    bool is_read = false; /* by one series */
    bool is_end = false;
    bool is_fatal = false;
    bool is_sample = false;
    bool is_step = false; /* a line that would begin another run if there already was one */
    if (follow_start(p, line, err) < 0 || look_at_begin(p, line, err) < 0) {
        return -1;
    }
    if ((line->mask & p->format->launch_mask) != 0) {
        launcher_look(&p->launch, line->text, line->number);
    }
    for (size_t idx = 0; idx < p->format->n_series; idx++) {
        if (read_series(p, idx, line, &is_read, err) < 0 || follow_table(p, idx, line, err) < 0) {
            return -1;
        }
        is_sample = is_sample || is_read;
        is_step = is_step || (is_read && p->format->series[idx].quantity != QTY_SCORE);
    }
    if (look_at_loss(p, line, err) < 0 ||
        (!is_step && !line->is_cut && look_at_unread(p, line, is_sample, err) < 0) ||
        probe_line(p, &p->format->end, line, &is_end, err) < 0) {
        return -1;
    }
    if ((is_step || is_end) && settle_facts(p, err) < 0) {
        return -1;
    }
    p->now.has_end = p->now.has_end || is_end;
    if (look_at_fatal(p, line, &is_fatal, err) < 0) {
        return -1;
    }
    if (is_fatal && p->now.fatal_line == 0) {
        p->now.fatal_line = line->number;
    }
    return read_facts(p, line, is_sample, err);
}

static int64_t stated_warmup(const struct parser *p)
{
    int64_t value;
    for (size_t idx = 0; idx < p->facts.n; idx++) {
        if (str_eq_z(p->facts.items[idx].name, "warmup") &&
            str_to_i64(p->facts.items[idx].value, 0, INT64_MAX, &value, ERR_IGNORED) == 0) {
            return value;
        }
    }
    return -1;
}

/* GPUs of a log's only run that are fewer than the ranks which launchers name, or than the processes they start, are those of one
   process. */
static bool is_of_one_rank(const struct parser *p, const struct fact *fact)
{
    int64_t gpus;
    return str_eq_z(fact->name, "gpus") && p->run == 0 &&
           str_to_i64(fact->value, 0, INT64_MAX, &gpus, ERR_IGNORED) == 0 &&
           (gpus <= p->most_rank || gpus < p->launch.n_processes);
}

int parser_finish(struct parser *p, struct measurement *ret_measurement, struct err *err)
{
    const struct format *f = p->format;
    struct measurement m = {.format = f->id, .last_step = -1};
    if (parser_finish_bytes(p, err) < 0 || settle_facts(p, err) < 0) {
        return -1;
    }
    parser_end_run(p);
    size_t first = parser_primary(p);
    m.series = arena_array(p->arena, struct series, f->n_series);
    m.n_series = f->n_series;
    for (size_t idx = 0; idx < f->n_series; idx++) {
        struct series_state *state = &p->series[idx];
        if (state->n > 0) {
            state->items = xrealloc(state->items, state->n * sizeof(state->items[0]));
            arena_adopt(p->arena, state->items);
            if (state->lines) {
                arena_adopt(p->arena, state->lines);
            }
        }
        m.series[idx] = parser_series(p, idx);
        m.series[idx].is_primary = idx == first;
        m.n_runs = state->n ? p->run + 1 : m.n_runs;
        state->items = NULL; /* given away, or never allocated */
        state->lines = NULL;
    }
    m.facts = arena_array(p->arena, struct fact, p->facts.n ? p->facts.n : 1);
    for (size_t idx = 0; idx < p->facts.n; idx++) {
        if (!is_of_one_rank(p, &p->facts.items[idx])) {
            m.facts[m.n_facts++] = p->facts.items[idx];
        }
    }
    const struct series *primary = &m.series[first];
    m.last_step = primary->n ? primary->samples[primary->n - 1].step : -1;
    m.total_steps = p->now.total_steps;
    m.warmup_steps = stated_warmup(p);
    m.n_bytes = p->bytes.n_bytes;
    m.n_lines = (uint64_t)p->bytes.n_lines;
    parser_judge(p, &m);
    struct str doubt = launcher_doubt(p->arena, &p->launch);
    if (doubt.len) {
        engine_contradict(&m, p->launch.socket_line, doubt);
    }
    *ret_measurement = m;
    return 0;
}
