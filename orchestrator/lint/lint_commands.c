/* SPDX-License-Identifier: Apache-2.0 */
/* A stack's printed commands, and helpers that all of these rules use. */
#include "base/base.h"

#include <strings.h>

#include "lint/lint_parts.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool holds(struct str text, const char *part, bool is_bounded)
{
    size_t len = strlen(part);
    for (size_t at = 0; at + len <= text.len; at++) {
        if ((text.ptr[at] | 0x20) == (part[0] | 0x20) &&
            strncasecmp(text.ptr + at, part, len) == 0 &&
            !(is_bounded && ((at && is_letter(text.ptr[at - 1])) ||
                             (at + len < text.len && is_letter(text.ptr[at + len]))))) {
            return true;
        }
    }
    return false;
}

bool holds_text(struct str text, const char *part)
{
    return holds(text, part, false);
}

bool holds_word(struct str text, const char *word)
{
    return holds(text, word, true);
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
        lint_add(lint, "command-changed", s, ".commands",
                 "%zu of %zu commands had to be changed to work", n_changed, s->n_commands);
    }
}

void lint_commands(struct lint *lint)
{
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        const struct stack *s = &lint->report->stacks[idx];
        if (!stack_has_cells(lint->report, s)) {
            continue;
        }
        lint_archives(lint, s);
        lint_git(lint, s);
        lint_packages(lint, s);
        lint_variables(lint, s);
        lint_changed(lint, s);
        lint_launches(lint, s);
        lint_settings(lint, s);
        lint_loops(lint, s);
        lint_containers(lint, s);
        lint_logs(lint, s);
    }
}
