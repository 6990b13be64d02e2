/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of logs as printed by a report: names that nothing writes, links with another case's label. */
#include "base/base.h"

#include "lint/lint_parts.h"

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

/* The text before `open`, and the text between `open` and `close`. False if the line lacks either. */
static bool cut(struct str line, const char *open, const char *close, struct str *ret_before,
                struct str *ret_inside, struct str *ret_behind)
{
    int64_t at = str_find(line, str_of(open));
    struct str rest = at >= 0 ? str_sub(line, (size_t)at + strlen(open), SIZE_MAX) : STR_EMPTY;
    int64_t end = at >= 0 ? str_find(rest, str_of(close)) : -1;
    if (end < 0) {
        return false;
    }
    *ret_before = str_sub(line, 0, (size_t)at);
    *ret_inside = str_sub(rest, 0, (size_t)end);
    *ret_behind = str_sub(rest, (size_t)end + strlen(close), SIZE_MAX);
    return true;
}

/* [label](path), <a href="path">label</a>, `label <path>`_ and label: path. False: no link. */
static bool read_link(struct str line, struct str *ret_label, struct str *ret_path)
{
    struct str before;
    struct str behind;
    int64_t colon = str_find(line, STR_LIT(": "));
    if (cut(line, "](", ")", ret_label, ret_path, &behind) ||
        cut(line, " <", ">", ret_label, ret_path, &behind)) {
        return true;
    }
    if (cut(line, "href=\"", "\"", &before, ret_path, ret_label)) {
        return true;
    }
    if (colon <= 0) {
        return false;
    }
    *ret_label = str_sub(line, 0, (size_t)colon);
    *ret_path = str_sub(line, (size_t)colon + 2, SIZE_MAX);
    return true;
}

/* The label says one precision and the path the other. */
static void lint_link(const struct lint_command *c, struct str line)
{
    struct str label;
    struct str path;
    if (read_link(line, &label, &path) &&
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

void lint_logs(struct lint *lint, const struct stack *s)
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
