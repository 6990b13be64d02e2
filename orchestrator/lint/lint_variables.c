/* SPDX-License-Identifier: Apache-2.0 */
/* Variables in a stack's printed commands: set under one name and used under another, or named without their dollar
   sign. */
#include "base/base.h"

#include "lint/lint_parts.h"

#include "base/nearest.h"

#define DISTANCE_MAX   2
#define NAME_BYTES_MIN 5

void add_name(struct names *names, struct str name)
{
    if (!str_is_in(name, names->items, names->n)) {
        VEC_PUSH(names, name);
    }
}

/* ---- what is set and what is used ---- */

/* NAME=VALUE anywhere, read NAME, for NAME; names that are passed on (export NAME, -x NAME, -e NAME) count as used. */
static void collect_words(const struct lint_command *c, const struct shell_word *words, size_t n,
                          bool is_set, struct names *set, struct names *used)
{
    static const char USE[] = "(?<!\\\\)\\$\\{?[#!]?([A-Za-z_]\\w*)";
    for (size_t idx = 0; idx < n; idx++) {
        struct str name, value, rest = words[idx].raw;
        while (words[idx].has_use && (name = lint_part(c->lint, USE, rest)).ptr) {
            add_name(used, name);
            rest = str_sub(rest, (size_t)(name.ptr - rest.ptr) + name.len, SIZE_MAX);
        }
        if (shell_assignment(words[idx].text, &name, &value)) {
            add_name(set, name);
        } else if (is_set && is_identifier(words[idx].text)) {
            add_name(set, words[idx].text);
        } else if (idx && is_identifier(words[idx].text) &&
                   is_word_of(words[idx - 1].text, "-x -e --env")) {
            add_name(used, words[idx].text);
        }
    }
}

static void collect(const struct lint_command *c, struct names *set, struct names *used)
{
    const struct shell_script *script = c->script;
    for (const struct shell_run *run = script->runs; run < script->runs + script->n; run++) {
        collect_words(c, run->sets, run->n_sets, true, set, used);
        collect_words(c, run->words, run->n, false, set, used);
        collect_words(c, run->files, run->n_files, false, set, used);
    }
}

/* ---- misspelt ---- */

/* Not NODE1 and NODE2, which are two names. */
static bool are_alike(struct str a, struct str b)
{
    bool differ_in_case = a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
    bool are_numbered = str_eq(str_rtrim(a, 0, DIGITS), str_rtrim(b, 0, DIGITS));
    return a.len >= NAME_BYTES_MIN && b.len >= NAME_BYTES_MIN && !are_numbered &&
           (differ_in_case || edit_distance(a, b) <= DISTANCE_MAX);
}

/* Set and never used, while a similar name is used and never set. */
static void lint_misspelt(const struct lint_command *c, const struct names *set,
                          const struct names *used)
{
    struct names here = {.n = 0}, ignored = {.n = 0};
    collect(c, &ignored, &here);
    for (size_t u = 0; u < here.n; u++) {
        for (size_t a = 0; !str_is_in(here.items[u], set->items, set->n) && a < set->n; a++) {
            if (!str_is_in(set->items[a], used->items, used->n) &&
                are_alike(set->items[a], here.items[u])) {
                lint_add(c->lint, "variable-misspelt", c->at,
                         "%.*s is set, but $%.*s is used, which nothing sets",
                         STR_ARG(set->items[a]), STR_ARG(here.items[u]));
            }
        }
    }
    VEC_RELEASE(&here);
    VEC_RELEASE(&ignored);
}

/* ---- without a dollar ---- */

/* A word as it is written, and the one before it. */
static void lint_word(const struct lint_command *c, struct str word, struct str before,
                      const struct names *set)
{
    static const char FALLBACK[] = "^[^']*?(\\$\\{[^}]*:-([A-Z][A-Z0-9_]*)\\})";
    /* One in a list such as $NODE1,$NODE2,NODE3:8, with a sibling that has its dollar. */
    static const char LISTED[] = "^(?=[^',]*,)(?=[^']*\\$\\{?(([A-Za-z_]+)\\d+))[^']*?(?<![\\w${])"
                                 "(\\2\\d+)(?::\\d+)?[,}\"]*(?=,|\\z)";
    static const char LITERAL[] = "^(?:(--?[\\w-]+=|\\w+=)|)([A-Z][A-Z0-9_]{2,})\\z";
    static const char HANDING[] =
        "-x -e -v -u -n -r -f -E --env --export --build-arg -genv -envlist";
    struct patterns *patterns = &c->lint->patterns;
    struct str g[4];
    if (patterns_find(patterns, FALLBACK, word, g, 3) && str_is_in(g[2], set->items, set->n)) {
        lint_add(c->lint, "variable-without-dollar", c->at,
                 "%.*s falls back to the name %.*s, not to its value", STR_ARG(g[1]),
                 STR_ARG(g[2]));
    }
    if (patterns_find(patterns, LISTED, word, g, 4)) {
        lint_add(c->lint, "variable-without-dollar", c->at,
                 "%.*s is used as a name in a list next to $%.*s", STR_ARG(g[3]), STR_ARG(g[1]));
    }
    if (patterns_find(patterns, LITERAL, word, g, 3) && str_is_in(g[2], set->items, set->n) &&
        (g[1].ptr || (before.len > 1 && before.ptr[0] == '-' && !is_word_of(before, HANDING)))) {
        lint_add(c->lint, "variable-without-dollar", c->at,
                 "%.*s is used literally, but is the name of a variable that is set",
                 STR_ARG(g[2]));
    }
}

static void lint_words(const struct lint_command *c, const struct shell_word *words, size_t n,
                       const struct names *set)
{
    for (size_t idx = 0; idx < n; idx++) {
        lint_word(c, words[idx].raw, idx ? words[idx - 1].text : STR_EMPTY, set);
    }
}

void lint_variables(struct lint *lint, const struct stack *s)
{
    struct names set = {.n = 0};
    struct names used = {.n = 0};
    for (struct lint_command c = lint_walk(lint, s); lint_next_command(&c);) {
        if (!is_list_log(c.command)) {
            collect(&c, &set, &used);
        }
    }
    for (struct lint_command c = lint_walk(lint, s); lint_next_command(&c);) {
        if (is_list_log(c.command)) {
            continue;
        }
        lint_misspelt(&c, &set, &used);
        for (size_t at = 0; at < c.script->n; at++) {
            const struct shell_run *run = &c.script->runs[at];
            lint_words(&c, run->sets, run->n_sets, &set);
            lint_words(&c, run->words, run->n, &set);
        }
    }
    VEC_RELEASE(&set);
    VEC_RELEASE(&used);
}
