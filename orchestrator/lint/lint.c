/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "lint/lint.h"

#include "lint/lint_parts.h"

#define MESSAGE_BYTES 1024
#define LINE_BYTES    65536
#define GROUPS        5

const char ARCHIVE_SUFFIXES[] = ".tar.gz .tgz .zip .tar.bz2 .tbz2 .tar.xz .txz .tar.zst .tar";

void lint_add(struct lint *lint, const char *id, struct spot at, const char *fmt, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (size_t idx = 0; idx < lint->findings->n; idx++) {
        const struct finding *f = &lint->findings->items[idx];
        if (f->at.report == lint->report && strcmp(f->id, id) == 0 && str_eq_z(f->message, text) &&
            (!at.stack || at.stack == f->at.stack)) {
            return;
        }
    }
    at.report = lint->report;
    finding_add(lint->findings, id, at, "%s", text);
}

/* The message, with its groups. */
static void add_row(const struct lint_command *c, const struct lint_row *row,
                    const struct str *groups)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(MESSAGE_BYTES);
    for (const char *at = row->message; *at; at++) {
        if (*at == '$') {
            at++;
            strbuf_add_str(&text, groups[*at - '0']);
        } else {
            strbuf_add_char(&text, *at);
        }
    }
    lint_add(c->lint, row->id, c->at, "%.*s", STR_ARG(strbuf_str(&text)));
}

void lint_by_rows(const struct lint_command *c, const struct lint_row *rows, size_t n)
{
    for (const struct lint_row *row = rows; row < rows + n; row++) {
        bool is_not = row->programs && row->programs[0] == '!';
        struct str rest = c->line, g[GROUPS];
        if (row->programs && shell_is(c->run, row->programs + is_not) == is_not) {
            continue;
        }
        while (patterns_find(&c->lint->patterns, row->pattern, rest, g, GROUPS) && g[0].len) {
            add_row(c, row, g);
            rest = str_sub(rest, (size_t)(g[0].ptr - rest.ptr) + g[0].len, SIZE_MAX);
        }
    }
}

const struct report_case *stack_next_case(const struct lint *lint, const struct stack *stack,
                                          const struct report_case *before)
{
    const struct report_case *end = lint->report->cases + lint->report->n_cases;
    const struct report_case *c = before ? before + 1 : lint->report->cases;
    while (c < end && (c->stack != stack || !c->n_cells)) {
        c++;
    }
    return c < end ? c : NULL;
}

const struct report_case *command_next_case(const struct lint_command *c,
                                            const struct report_case *before)
{
    const struct report *report = c->lint->report;
    const struct report_case *of = before ? before + 1 : report->cases;
    while (of < report->cases + report->n_cases &&
           (of->stack != c->stack || !command_is_for(c->command, of))) {
        of++;
    }
    return of < report->cases + report->n_cases ? of : NULL;
}

static struct lint_scripts *scripts_of(struct lint *lint, const struct stack *stack,
                                       const struct command *command)
{
    return &lint->scripts[stack - lint->report->stacks][command - stack->commands];
}

struct lint_command lint_walk(struct lint *lint, const struct stack *stack)
{
    return (struct lint_command){.lint = lint, .stack = stack};
}

bool lint_next_command(struct lint_command *c)
{
    struct lint *lint = c->lint;
    size_t idx = c->command ? (size_t)(c->command - c->stack->commands) + 1 : 0;
    if (idx == c->stack->n_commands) {
        return false;
    }
    c->command = &c->stack->commands[idx];
    c->script = &scripts_of(lint, c->stack, c->command)->printed;
    c->at = in_stack(c->stack, arena_printf(lint->arena, ".commands[%zu].printed", idx));
    c->run = NULL;
    return true;
}

static void add_words(struct strbuf *line, const struct shell_word *words, size_t n)
{
    static const char *const BEFORE[] = {
        [SHELL_ARGUMENT] = "", [SHELL_TO] = "> ", [SHELL_FROM] = "< "};
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_printf(line, "%s%.*s ", BEFORE[words[idx].role], STR_ARG(words[idx].text));
    }
}

void lint_at_run(struct lint_command *c, size_t at)
{
    CLEANUP(strbuf) struct strbuf line = STRBUF(LINE_BYTES);
    const struct shell_run *run = &c->script->runs[at];
    add_words(&line, run->sets, run->n_sets);
    add_words(&line, run->words, run->n_own);
    add_words(&line, run->files, run->n_files);
    c->run = run;
    c->line = str_dup(c->lint->arena, strbuf_str(&line));
}

bool lint_next_run(struct lint_command *c)
{
    size_t at = c->run ? (size_t)(c->run - c->script->runs) + 1 : 0;
    while (!c->command || is_list_log(c->command) || at >= c->script->n) {
        if (!lint_next_command(c)) {
            return false;
        }
        at = 0;
    }
    lint_at_run(c, at);
    return true;
}

const struct shell_script *working_script(struct lint *lint, const struct stack *stack,
                                          const struct command *command)
{
    return &scripts_of(lint, stack, command)->works;
}

void lint_report(struct arena *arena, const struct report *report, struct findings *findings)
{
    struct lint lint = {.arena = arena, .report = report, .findings = findings};
    lint.scripts = arena_array(arena, struct lint_scripts *, report->n_stacks + 1);
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        const struct stack *s = &report->stacks[idx];
        lint.scripts[idx] = arena_array(arena, struct lint_scripts, s->n_commands + 1);
        for (size_t at = 0; at < s->n_commands; at++) {
            shell_script_read(arena, s->commands[at].printed, &lint.scripts[idx][at].printed);
            shell_script_read(arena, s->commands[at].works, &lint.scripts[idx][at].works);
        }
    }
    lint_pins(&lint);
    lint_commands(&lint);
    lint_conditions(&lint);
    lint_rows(&lint);
    patterns_release(&lint.patterns);
}
