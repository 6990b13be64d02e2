/* SPDX-License-Identifier: Apache-2.0 */
/* What a log says of itself: facts, each read where it stands first in a run, or last. */
#include "base/base.h"

#include "judge/logtime.h"
#include "judge/parser_impl.h"

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

int parser_add_fact(struct parser *p, struct str name, struct str value, int64_t line,
                    size_t *ret_place, struct err *err)
{
    struct fact fact = {.name = name, .value = str_trim(value), .line = line};
    for (size_t old = 0; old < p->facts.n; old++) {
        if (str_eq(p->facts.items[old].name, name) &&
            str_eq(p->facts.items[old].value, fact.value)) {
            *ret_place = old + 1;
            return 0;
        }
    }
    if (!fact.value.len) {
        *ret_place = SIZE_MAX;
        return 0;
    }
    if (p->facts.n == FACTS_MAX) {
        return err_set(err, ERR_PARSE, "more than %d different facts in one log", FACTS_MAX);
    }
    fact.value = str_dup(p->arena, fact.value);
    VEC_PUSH(&p->facts, fact);
    *ret_place = p->facts.n;
    return 0;
}

/* A fact that says how many steps or epochs the run makes; text that is no such number says nothing. */
static void note_total(struct parser *p, struct str name, struct str value)
{
    struct err ignored = {0};
    int64_t total;
    bool is_steps = p->format->total_from.ptr && str_eq(name, p->format->total_from);
    bool is_epochs = p->format->epochs_from.ptr && str_eq(name, p->format->epochs_from);
    if ((is_steps || is_epochs) && str_to_i64(value, 1, TOTAL_MAX, &total, &ignored) == 0) {
        *(is_steps ? &p->total_steps : &p->total_epochs) = total;
    }
}

/* How many parts a list with commas has. */
static struct str count_parts(struct str list, char *buf, size_t size)
{
    size_t n = 1;
    for (size_t idx = 0; idx < list.len; idx++) {
        n += list.ptr[idx] == ',';
    }
    snprintf(buf, size, "%zu", list.len ? n : 0);
    return str_of(buf);
}

/* Of what was read by one spec before in this run: the later statement holds. */
static void replace_fact(struct parser *p, size_t at, struct str value, int64_t line)
{
    struct fact *fact = &p->facts.items[at];
    value = str_trim(value);
    if (value.len && !str_eq(fact->value, value)) {
        *fact = (struct fact){fact->name, str_dup(p->arena, value), line};
    }
}

int parser_facts(struct parser *p, const struct line *line, bool is_sample, struct err *err)
{
    for (size_t idx = 0; idx < p->format->n_facts; idx++) {
        const struct fact_spec *spec = &p->format->facts[idx];
        bool is_hit = false;
        if (is_sample != spec->is_in_sample || (p->fact_of[idx] && !is_sample && !spec->is_last)) {
            continue;
        }
        if (parser_probe(p, &spec->line, line, &is_hit, err) < 0) {
            return -1;
        }
        if (is_hit) {
            struct str value = spec->says.ptr
                                   ? spec->says
                                   : pattern_text(spec->line.pattern, line->text, spec->value);
            char count[32];
            if (spec->is_list) {
                value = count_parts(value, count, sizeof(count));
            }
            if (spec->is_grouped) {
                value = lognumber_ungroup(str_trim(value), count, sizeof(count));
            }
            if (spec->is_last && p->fact_of[idx] && p->fact_of[idx] <= p->facts.n) {
                replace_fact(p, p->fact_of[idx] - 1, value, line->number);
            } else if (parser_add_fact(p, spec->name, value, line->number, &p->fact_of[idx], err) <
                       0) {
                return -1;
            }
            note_total(p, spec->name, value);
        }
    }
    return 0;
}
