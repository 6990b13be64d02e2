/* SPDX-License-Identifier: Apache-2.0 */
/* Variables in a stack's printed commands: set under one name and used under another, or named without their dollar
   sign. */
#include "base/base.h"

#include "lint/lint_parts.h"

#include "base/nearest.h"

#define DISTANCE_MAX   2
#define NAME_BYTES_MIN 5
#define BARE_BYTES_MIN 3

bool has_name(const struct names *names, struct str name)
{
    return str_is_in(name, names->items, names->n);
}

void add_name(struct names *names, struct str name)
{
    if (!has_name(names, name)) {
        VEC_PUSH(names, name);
    }
}

/* ---- what is set and what is used ---- */

static void collect_uses(const struct shell_word *words, size_t n, struct names *used)
{
    for (size_t idx = 0; idx < n; idx++) {
        struct shell_cursor cursor = {0};
        struct str name;
        bool has_default;
        while (shell_next_use(words[idx].raw, &cursor, &name, &has_default)) {
            add_name(used, name);
        }
    }
}

/* NAME=VALUE anywhere, read NAME, for NAME; names that are passed on (export NAME, -x NAME, -e NAME) count as used. */
static void collect_set(const struct shell_word *words, size_t n, bool is_set, struct names *set,
                        struct names *used)
{
    for (size_t idx = 0; idx < n; idx++) {
        struct str name;
        struct str value;
        if (shell_assignment(words[idx].text, &name, &value)) {
            add_name(set, name);
        } else if (is_set && is_identifier(words[idx].text)) {
            add_name(set, words[idx].text);
        } else if (!is_set && idx && is_identifier(words[idx].text) &&
                   (str_eq_z(words[idx - 1].text, "-x") || str_eq_z(words[idx - 1].text, "-e") ||
                    str_eq_z(words[idx - 1].text, "--env"))) {
            add_name(used, words[idx].text);
        }
    }
}

static void collect(const struct shell_script *script, struct names *set, struct names *used)
{
    collect_set(script->sets, script->n_sets, true, set, used);
    collect_uses(script->words.items, script->words.n, used);
    for (size_t idx = 0; idx < script->n; idx++) {
        const struct shell_run *run = &script->runs[idx];
        collect_set(run->words, run->n, false, set, used);
        collect_uses(run->words, run->n, used);
        collect_uses(run->sets, run->n_sets, used);
        collect_uses(run->files, run->n_files, used);
    }
}

/* ---- misspelt ---- */

/* NODE1 and NODE2 are two names, not one misspelt. */
static bool same_but_digits(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t idx = 0; idx < a.len; idx++) {
        if (a.ptr[idx] != b.ptr[idx] && !(is_digit(a.ptr[idx]) && is_digit(b.ptr[idx]))) {
            return false;
        }
    }
    return true;
}

static bool are_alike(struct str a, struct str b)
{
    bool differ_in_case = a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
    return a.len >= NAME_BYTES_MIN && b.len >= NAME_BYTES_MIN && !same_but_digits(a, b) &&
           (differ_in_case || edit_distance(a, b) <= DISTANCE_MAX);
}

/* Set here and used nowhere, while a launcher, CUDA, OpenMP or NCCL reads a variable of almost that name. */
static void lint_misspelt_known(const struct lint_command *c, const struct names *here,
                                const struct names *used)
{
    static const char *const KNOWN[] = {"CUDA_VISIBLE_DEVICES",
                                        "NVIDIA_VISIBLE_DEVICES",
                                        "HIP_VISIBLE_DEVICES",
                                        "OMP_NUM_THREADS",
                                        "MKL_NUM_THREADS",
                                        "NCCL_SOCKET_IFNAME",
                                        "NCCL_IB_DISABLE",
                                        "LD_LIBRARY_PATH",
                                        "PYTHONPATH",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "WORLD_SIZE",
                                        "PADDLE_TRAINER_ID",
                                        "PADDLE_TRAINERS_NUM",
                                        NULL};
    for (size_t idx = 0; idx < here->n; idx++) {
        struct str name = here->items[idx];
        for (size_t at = 0; !has_name(used, name) && !str_eq_any(name, KNOWN) && KNOWN[at]; at++) {
            if (are_alike(name, str_of(KNOWN[at]))) {
                lint_add(c->lint, "variable-misspelt", c->at,
                         "%.*s is set, but nothing reads it; the started program reads %s",
                         STR_ARG(name), KNOWN[at]);
            }
        }
    }
}

/* Set and never used, while a similar name is used and never set. */
static void lint_misspelt(const struct lint_command *c, const struct names *set,
                          const struct names *used)
{
    struct names here = {.n = 0};
    struct names unused = {.n = 0};
    collect(c->script, &unused, &here);
    for (size_t u = 0; u < here.n; u++) {
        for (size_t a = 0; !has_name(set, here.items[u]) && a < set->n; a++) {
            if (!has_name(used, set->items[a]) && are_alike(set->items[a], here.items[u])) {
                lint_add(c->lint, "variable-misspelt", c->at,
                         "%.*s is set, but $%.*s is used, which nothing sets",
                         STR_ARG(set->items[a]), STR_ARG(here.items[u]));
            }
        }
    }
    lint_misspelt_known(c, &unused, used);
    VEC_RELEASE(&here);
    VEC_RELEASE(&unused);
}

/* ---- without a dollar ---- */

/* Whether one part of a list such as $NODE1,$NODE2,NODE3 is a name without its dollar sign, next to siblings that have
   one. */
static bool lacks_dollar(struct str part, struct str sibling)
{
    size_t stem = part.len;
    while (stem > 0 && is_digit(part.ptr[stem - 1])) {
        stem--;
    }
    return is_identifier(part) && stem > 0 && stem < part.len && sibling.len > stem &&
           memcmp(part.ptr, sibling.ptr, stem) == 0;
}

/* "NODE3:8" and "NODE3" are NODE3. */
static struct str before_colon(struct str part)
{
    int64_t colon = str_find(part, STR_LIT(":"));
    return colon > 0 && part.ptr[0] != '$' ? str_sub(part, 0, (size_t)colon) : part;
}

static void lint_list(const struct lint_command *c, struct str list, char sep)
{
    struct str rest = list;
    struct str part;
    struct str sibling = STR_EMPTY;
    for (int pass = 0; pass < 2; pass++) {
        rest = list;
        while (str_next(&rest, sep, &part)) {
            struct shell_cursor cursor = {0};
            bool has_default;
            struct str name;
            if (pass == 0 && shell_next_use(part, &cursor, &name, &has_default)) {
                sibling = has_default ? sibling : name;
            } else if (pass == 1 && sibling.ptr && lacks_dollar(before_colon(part), sibling)) {
                lint_add(c->lint, "variable-without-dollar", c->at,
                         "%.*s is used as a name in a list next to $%.*s",
                         STR_ARG(before_colon(part)), STR_ARG(sibling));
            }
        }
    }
}

/* The default of a value's last expansion: "$A,$B" for "${5:-$A,$B}". */
static struct str default_of(struct lint *lint, struct str value)
{
    struct str g[2];
    return patterns_find(&lint->patterns, "(?s)^\\$\\{.*?:-(.*?)\\}?\\z", value, g, 2) ? g[1]
                                                                                       : value;
}

static bool is_capital(struct str name)
{
    return name.len >= BARE_BYTES_MIN && str_is_made_of(name, "A-Z0-9_") && !is_digit(name.ptr[0]);
}

static void lint_value(const struct lint_command *c, struct str value, const struct names *set)
{
    struct str fallback = default_of(c->lint, value);
    if (fallback.ptr != value.ptr && is_identifier(fallback) && has_name(set, fallback)) {
        lint_add(c->lint, "variable-without-dollar", c->at,
                 "%.*s falls back to the name %.*s, not to its value", STR_ARG(value),
                 STR_ARG(fallback));
    } else if (is_capital(value) && has_name(set, value)) {
        lint_add(c->lint, "variable-without-dollar", c->at,
                 "%.*s is used literally, but is the name of a variable that is set",
                 STR_ARG(value));
    }
    if (str_find(fallback, STR_LIT(",")) >= 0 && str_find(fallback, STR_LIT("$")) >= 0) {
        lint_list(c, fallback, ',');
    }
}

/* As written, without double quotes; NULL if there are single ones. */
static struct str plain(struct lint *lint, struct str raw)
{
    size_t len = 0;
    if (memchr(raw.ptr, '\'', raw.len)) {
        return STR_EMPTY;
    }
    if (!memchr(raw.ptr, '"', raw.len)) {
        return raw;
    }
    char *out = arena_array(lint->arena, char, raw.len);
    for (size_t idx = 0; idx < raw.len; idx++) {
        if (raw.ptr[idx] != '"') {
            out[len++] = raw.ptr[idx];
        }
    }
    return (struct str){out, len};
}

static void lint_sets(const struct lint_command *c, const struct shell_run *run,
                      const struct names *set)
{
    for (size_t idx = 0; idx < run->n_sets; idx++) {
        struct str name;
        struct str value;
        if (shell_assignment(plain(c->lint, run->sets[idx].raw), &name, &value)) {
            lint_value(c, value, set);
        }
    }
}

/* Checks values of options (--name VALUE or --name=VALUE), and lists anywhere. */
static void lint_arguments(const struct lint_command *c, const struct shell_run *run,
                           const struct names *set)
{
    static const char NAMING[] =
        "export declare typeset readonly local setenv read unset printenv let";
    static const char HANDING[] = "-x -e -v -u --env --export -E --build-arg -genv -envlist";
    for (size_t idx = 1; !shell_is_any(run, NAMING) && idx < run->n; idx++) {
        struct str word = plain(c->lint, run->words[idx].raw);
        struct str before = run->words[idx - 1].text;
        int64_t equals = str_find(word, STR_LIT("="));
        if (word.len > 2 && word.ptr[0] == '-' && equals > 0) {
            lint_value(c, str_sub(word, (size_t)equals + 1, SIZE_MAX), set);
        } else if (!is_word_of(before, HANDING) && before.len > 1 && before.ptr[0] == '-' &&
                   str_find(before, STR_LIT("=")) < 0) {
            lint_value(c, word, set);
        } else if (str_find(word, STR_LIT(",")) >= 0 && str_find(word, STR_LIT("$")) >= 0) {
            lint_list(c, word, ',');
        }
    }
}

void lint_variables(struct lint *lint, const struct stack *s)
{
    struct names set = {.n = 0};
    struct names used = {.n = 0};
    for (struct lint_command c = lint_walk(lint, s); lint_next_command(&c);) {
        if (!is_list_log(c.command)) {
            collect(c.script, &set, &used);
        }
    }
    for (struct lint_command c = lint_walk(lint, s); lint_next_command(&c);) {
        if (is_list_log(c.command)) {
            continue;
        }
        lint_misspelt(&c, &set, &used);
        for (size_t at = 0; at < c.script->n; at++) {
            lint_sets(&c, &c.script->runs[at], &set);
            lint_arguments(&c, &c.script->runs[at], &set);
        }
    }
    VEC_RELEASE(&set);
    VEC_RELEASE(&used);
}
