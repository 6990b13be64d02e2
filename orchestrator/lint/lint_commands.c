/* SPDX-License-Identifier: Apache-2.0 */
/* A stack's printed commands, and helpers that all of these rules use. */
#include "base/base.h"

#include "lint/lint_parts.h"

#include <ctype.h>

/* Lists of logs as printed by a report: names that nothing writes, links with another case's label. */

static bool printed_mentions(const struct stack *s, struct str text)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct command *command = &s->commands[idx];
        if (command->printed.ptr && !is_list_log(command) &&
            str_find(command->printed, text) >= 0) {
            return true;
        }
    }
    return false;
}

static bool is_case_log(const struct lint *lint, const struct stack *s, struct str name)
{
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        for (size_t log = 0; log < c->n_logs; log++) {
            if (str_eq(path_base(c->logs[log]), name)) {
                return true;
            }
        }
    }
    return false;
}

static bool says_half(struct str text)
{
    return holds_word(text, "fp16 amp float16 half bf16 mixed");
}

static bool says_full(struct str text)
{
    return holds_word(text, "fp32 float32");
}

/* [label](path), `label <path>`_, <a href="path">label</a> and label: path. False: no link. */
static bool read_link(struct lint *lint, struct str line, struct str *ret_label,
                      struct str *ret_path)
{
    static const struct {
        const char *pattern;
        int label, path;
    } FORMS[] = {{"^(.*?)\\]\\((.*?)\\)", 1, 2},
                 {"^(.*?) <(.*?)>", 1, 2},
                 {"href=\"(.*?)\"(.*)", 2, 1},
                 {"^(.+?): (.*)", 1, 2}};
    struct str g[3];
    for (size_t idx = 0; idx < ARRAY_LEN(FORMS); idx++) {
        if (patterns_find(&lint->patterns, FORMS[idx].pattern, line, g, ARRAY_LEN(g))) {
            *ret_label = g[FORMS[idx].label];
            *ret_path = g[FORMS[idx].path];
            return true;
        }
    }
    return false;
}

/* The label says one precision and the path the other. */
static void lint_link(const struct lint_command *c, struct str line)
{
    struct str label;
    struct str path;
    if (read_link(c->lint, line, &label, &path) &&
        ((says_full(label) && !says_half(label) && says_half(path) && !says_full(path)) ||
         (says_half(label) && !says_full(label) && says_full(path) && !says_half(path)))) {
        lint_add(c->lint, "log-links-swapped", c->at, "the link \"%.*s\"", STR_ARG(str_trim(line)));
    }
}

static void lint_name(const struct lint_command *c, struct str word)
{
    struct str name = path_base(word);
    if (ends_with_any(name, ".txt .log") && !printed_mentions(c->stack, name) &&
        !is_case_log(c->lint, c->stack, name)) {
        lint_add(c->lint, "log-name-unknown", c->at,
                 "log %.*s is listed, but no printed command writes it", STR_ARG(name));
    }
}

/* Names end at blanks and at markup. */
static void lint_names(const struct lint_command *c, struct str line)
{
    static const char ENDS[] = " \t\r()[]<>\"'`,;|";
    size_t from = 0;
    for (size_t at = 0; at <= line.len; at++) {
        if (at == line.len || memchr(ENDS, line.ptr[at], sizeof(ENDS) - 1)) {
            lint_name(c, str_sub(line, from, at - from));
            from = at + 1;
        }
    }
}

/* names of and links to logs */
static void lint_logs(struct lint *lint, const struct stack *s)
{
    struct lint_command c = lint_walk(lint, s);
    while (lint_next_command(&c)) {
        struct str rest = c.command->printed;
        struct str line;
        while (is_list_log(c.command) && str_next(&rest, '\n', &line)) {
            lint_link(&c, line);
            lint_names(&c, line);
        }
    }
}

/* Compares loops in printed launches with the stated repeats. */

/* A variable that is something other than the number of the run. */
static bool counts_other_things(struct str name)
{
    return holds_text(name, "bs batch gpu node host rank card size prec amp model");
}

/* {2..6}: how many; 0 for anything else. */
static int64_t count_braces(struct lint *lint, struct str word)
{
    struct str g[3];
    int64_t first = 0;
    int64_t last = 0;
    return patterns_find(&lint->patterns, "^\\{(\\d+)\\.\\.(\\d+)\\}\\z", word, g, ARRAY_LEN(g)) &&
                   to_count(g[1], INT32_MAX, &first) && to_count(g[2], INT32_MAX, &last) &&
                   last >= first
               ? last - first + 1
               : 0;
}

/* for NAME in 1 2 3, for NAME in {2..6} */
static int64_t count_for(struct lint *lint, const struct shell_run *run)
{
    int64_t n = 0;
    if (run->n < 4 || !str_eq_z(run->words[2].text, "in") ||
        counts_other_things(run->words[1].text)) {
        return 0;
    }
    for (size_t idx = 3; idx < run->n; idx++) {
        struct str word = run->words[idx].text;
        int64_t number = 0;
        int64_t here = count_braces(lint, word);
        if (!here && !to_count(word, INT32_MAX, &number)) {
            return 0;
        }
        n += here ? here : 1;
    }
    return n;
}

static bool first_value(const struct shell_script *script, struct str name, int64_t *ret)
{
    for (size_t idx = 0; idx < script->n_sets; idx++) {
        struct str key;
        struct str value;
        if (shell_assignment(script->sets[idx].text, &key, &value) && str_eq(key, name)) {
            return to_count(value, INT32_MAX, ret);
        }
    }
    return false;
}

/* while [ $NAME -le 6 ], until [ $NAME -gt 6 ]: from the first value that the text gives NAME. */
static int64_t count_while(const struct shell_script *script, const struct shell_run *run)
{
    static const char CLOSED[] = "-le -gt";
    struct shell_cursor cursor = {0};
    struct str name;
    bool has_default;
    int64_t first = 0;
    int64_t limit = 0;
    if (run->n < 5 || !shell_next_use(run->words[2].raw, &cursor, &name, &has_default) ||
        counts_other_things(name) || !first_value(script, name, &first) ||
        !to_count(run->words[4].text, INT32_MAX, &limit)) {
        return 0;
    }
    limit += is_word_of(run->words[3].text, CLOSED);
    return (is_word_of(run->words[3].text, CLOSED) || is_word_of(run->words[3].text, "-lt -ge")) &&
                   limit > first
               ? limit - first
               : 0;
}

/* Whether a launch stands between a loop's head and its end. */
static bool launches(const struct shell_script *script, size_t first)
{
    for (size_t idx = first; idx < script->n && !shell_is(&script->runs[idx], "done"); idx++) {
        const struct shell_run *run = &script->runs[idx];
        struct str program = shell_program(run);
        if (run->n && (option_is_launcher(run) || ends_with_any(program, ".py .sh") ||
                       (option_is_training(run) &&
                        (!str_eq(program, run->words[0].text) || program.ptr[0] == '$')))) {
            return true;
        }
    }
    return false;
}

static void lint_count(const struct lint_command *c, int64_t n)
{
    for (const struct report_case *of = NULL; (of = command_next_case(c, of));) {
        struct str stated = STR_EMPTY;
        int64_t repeats = 0;
        if (case_condition(of, "repeats", &stated) && to_count(stated, INT32_MAX, &repeats) &&
            repeats != n) {
            lint_add(c->lint, "repeats-differ", c->at,
                     "the loop runs %" PRId64 " times, and %" PRId64 " repeats are stated", n,
                     repeats);
        }
    }
}

/* repeats */
static void lint_loops(const struct lint_command *c)
{
    const struct shell_run *run = c->run;
    int64_t n = shell_is(run, "for")                               ? count_for(c->lint, run)
                : shell_is(run, "while") || shell_is(run, "until") ? count_while(c->script, run)
                                                                   : 0;
    if (n && launches(c->script, (size_t)(run - c->script->runs) + 1)) {
        lint_count(c, n);
    }
}

static bool holds(struct str text, const char *words, bool is_bounded)
{
    for (struct str rest = str_of(words), word; str_next(&rest, ' ', &word);) {
        for (size_t at = 0; at + word.len <= text.len; at++) {
            size_t end = at + word.len;
            if (strncasecmp(text.ptr + at, word.ptr, word.len) == 0 &&
                !(is_bounded && ((at && isalpha((unsigned char)text.ptr[at - 1])) ||
                                 (end < text.len && isalpha((unsigned char)text.ptr[end]))))) {
                return true;
            }
        }
    }
    return false;
}

bool holds_text(struct str text, const char *parts)
{
    return holds(text, parts, false);
}

bool holds_word(struct str text, const char *words)
{
    return holds(text, words, true);
}

bool to_count(struct str text, int64_t max, int64_t *ret)
{
    return text.ptr && str_to_i64(text, 0, max, ret, ERR_IGNORED) == 0;
}

bool is_unknown(struct str s)
{
    return s.len && (memchr(s.ptr, '$', s.len) || memchr(s.ptr, '`', s.len));
}

bool is_list_log(const struct command *command)
{
    return str_eq_z(command->purpose, "log");
}

static void lint_changed(struct lint *lint, const struct stack *s)
{
    size_t n_changed = 0;
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        n_changed += s->commands[idx].printed.ptr && s->commands[idx].works.ptr;
    }
    if (n_changed) {
        lint_add(lint, "command-changed", in_stack(s, ".commands"),
                 "%zu of %zu commands had to be changed to work", n_changed, s->n_commands);
    }
}

void lint_commands(struct lint *lint)
{
    /* In this order; a rule is of a stack as a whole, or of each run of its printed commands. */
    static const struct {
        void (*of_stack)(struct lint *lint, const struct stack *s);
        void (*of_run)(const struct lint_command *c);
    } RULES[] = {{lint_archives, NULL},    {lint_git, NULL},        {NULL, lint_packages},
                 {lint_variables, NULL},   {lint_changed, NULL},    {NULL, lint_launches},
                 {lint_not_printed, NULL}, {NULL, lint_settings},   {lint_recipes, NULL},
                 {NULL, lint_loops},       {NULL, lint_containers}, {lint_logs, NULL}};
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        const struct stack *s = &lint->report->stacks[idx];
        for (size_t rule = 0; stack_next_case(lint, s, NULL) && rule < ARRAY_LEN(RULES); rule++) {
            struct lint_command c = lint_walk(lint, s);
            if (RULES[rule].of_stack) {
                RULES[rule].of_stack(lint, s);
                continue;
            }
            while (lint_next_run(&c)) {
                RULES[rule].of_run(&c);
            }
        }
    }
}
