/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "lint/lint.h"

#include "lint/lint_parts.h"

#define MESSAGE_BYTES 1024

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

bool lint_next_run(struct lint_command *c)
{
    size_t at = c->run ? (size_t)(c->run - c->script->runs) + 1 : 0;
    while (!c->command || is_list_log(c->command) || at >= c->script->n) {
        if (!lint_next_command(c)) {
            return false;
        }
        at = 0;
    }
    c->run = &c->script->runs[at];
    return true;
}

const struct shell_script *working_script(struct lint *lint, const struct stack *stack,
                                          const struct command *command)
{
    return &scripts_of(lint, stack, command)->works;
}

bool stack_condition(const struct stack *stack, const char *name, struct str *ret_value)
{
    for (size_t idx = 0; idx < stack->conditions.n; idx++) {
        if (str_eq_z(stack->conditions.items[idx].name, name)) {
            *ret_value = stack->conditions.items[idx].value;
            return true;
        }
    }
    return false;
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
