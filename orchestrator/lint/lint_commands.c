/* SPDX-License-Identifier: Apache-2.0 */
/* A stack's printed commands, and helpers that all of these rules use. */
#include "base/base.h"

#include "lint/lint_parts.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool holds_one(struct str text, struct str part, bool is_bounded)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        size_t end = at + part.len;
        if ((text.ptr[at] | 0x20) == (part.ptr[0] | 0x20) &&
            strncasecmp(text.ptr + at, part.ptr, part.len) == 0 &&
            !(is_bounded && ((at && is_letter(text.ptr[at - 1])) ||
                             (end < text.len && is_letter(text.ptr[end]))))) {
            return true;
        }
    }
    return false;
}

static bool holds(struct str text, const char *words, bool is_bounded)
{
    for (struct str rest = str_of(words), word; str_next(&rest, ' ', &word);) {
        if (holds_one(text, word, is_bounded)) {
            return true;
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
    struct err err = {0};
    return text.ptr && str_to_i64(text, 0, max, ret, &err) == 0;
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
