/* SPDX-License-Identifier: Apache-2.0 */
/* What a log states about itself: facts, each read at its first occurrence in a run, or the last. Facts after samples belong to the next
   run if one begins there, because its header precedes its first sample. */
#include "base/base.h"

#include "log/logtime.h"
#include "log/parser_impl.h"

#define FACTS_MAX 4096

int parser_probe(struct parser *p, const struct probe *probe, const struct line *line,
                 bool *ret_found, struct err *err)
{
    *ret_found = false;
    if (!probe->pattern || probe->bit == NO_LITERAL || !(line->mask >> probe->bit & 1)) {
        return 0;
    }
    return pattern_match(probe->pattern, line->text, &p->budget, ret_found, err);
}

/* Before derivation 6 a fact belongs to all runs. */
static struct fact fact_of(const struct parser *p, struct str name, struct str value, int64_t line)
{
    bool is_of_run = p->derivation >= DERIVATION_RUNS;
    return (struct fact){name, value, line, is_of_run ? p->run : 0, is_of_run ? p->run : RUNS_MAX};
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

int parser_add_fact(struct parser *p, struct str name, struct str value, int64_t line,
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
    struct err ignored = {0};
    int64_t total;
    bool is_steps = p->format->total_from.ptr && str_eq(name, p->format->total_from);
    bool is_epochs = p->format->epochs_from.ptr && str_eq(name, p->format->epochs_from);
    bool is_interval = str_eq_z(name, "log_interval");
    if ((is_steps || is_epochs || is_interval) &&
        str_to_i64(value, 1, TOTAL_MAX, &total, &ignored) == 0) {
        *(is_steps ? &p->total_steps : is_epochs ? &p->total_epochs : &p->log_interval) = total;
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
    if (p->derivation >= DERIVATION_RUNS && fact->first_run < p->run) { /* also of an earlier run */
        fact->last_run = p->run - 1;
        return parser_add_fact(p, name, value, line, place, err);
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
               : parser_add_fact(p, spec->name, value, line, place, err);
}

/* ---- after samples ---- */

static void keep_late(struct parser *p, size_t idx, struct str value, int64_t line)
{
    struct late_fact *late = &p->late[idx];
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
    p->has_late = true;
}

static struct str late_text(const struct late_fact *late)
{
    return late->len ? (struct str){late->text, late->len} : STR_EMPTY;
}

/* Another header while the run goes on: it states again facts on which identity depends. */
static bool is_second_header(const struct parser *p)
{
    for (size_t idx = 0; idx < p->format->n_facts; idx++) {
        if (p->late[idx].line && p->fact_of[idx] &&
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
    struct str value = late_text(&p->late[idx]);
    int64_t line = p->late[idx].line;
    bool stands_on = fact_is_of_identity(spec->name);
    size_t place;
    if (p->fact_of[idx] && !spec->is_last) {
        return stands_on ? parser_add_fact(p, spec->name, value, line, &place, err) : 0;
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
    bool is_second = p->has_late && !is_passed && is_second_header(p);
    for (size_t idx = 0; p->has_late && idx < p->format->n_facts; idx++) {
        struct late_fact *late = &p->late[idx];
        if (!late->line) {
            continue;
        }
        if ((is_passed ? state_fact(p, idx, late_text(late), late->line, err)
                       : settle_fact(p, idx, is_second, err)) < 0) {
            return -1;
        }
        late->line = 0;
    }
    p->has_late = false;
    return 0;
}

int parser_settle_facts(struct parser *p, struct err *err)
{
    p->has_late_begin = false;
    p->is_late_resumed = false;
    return end_gap(p, false, err);
}

int parser_pass_facts(struct parser *p, struct err *err)
{
    p->has_begin = p->has_late_begin;
    p->is_resumed = p->is_late_resumed;
    p->has_late_begin = false;
    p->is_late_resumed = false;
    return end_gap(p, true, err);
}

/* Whether a line needs to be checked against a spec. */
static bool is_wanted(const struct parser *p, size_t idx, bool is_sample, bool is_late)
{
    const struct fact_spec *spec = &p->format->facts[idx];
    return is_sample == spec->is_in_sample &&
           (is_sample || spec->is_last || (is_late ? !p->late[idx].line : !p->fact_of[idx]));
}

int parser_facts(struct parser *p, const struct line *line, bool is_sample, struct err *err)
{
    bool is_late = !is_sample && p->has_samples && p->derivation >= DERIVATION_RUNS;
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
        if (parser_probe(p, &spec->line, line, &is_hit, err) < 0) {
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
