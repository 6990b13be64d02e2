/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "lint/lint.h"

#include "judge/asked.h"
#include "judge/audit.h"
#include "lint/lint_parts.h"

#define MESSAGE_BYTES 1024

struct rules_of { /* the report whose rules are looked for */
    const struct report *report;
    const struct format_set *formats;
    struct findings *findings;
};

const char *const ARCHIVE_SUFFIXES[] = {".tar",  ".tar.gz", ".tgz", ".zip",     ".tar.bz2",
                                        ".tbz2", ".tar.xz", ".txz", ".tar.zst", NULL};

size_t stack_index(const struct report *report, const struct stack *stack)
{
    return (size_t)(stack - report->stacks);
}

void lint_add(struct lint *lint, const char *id, const struct stack *stack, const char *place,
              const char *fmt, ...)
{
    char text[MESSAGE_BYTES];
    char *where;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (stack) {
        where = arena_printf(lint->arena, "%s:$.stacks[%zu]%s", lint->report->path.ptr,
                             stack_index(lint->report, stack), place);
    } else {
        where = arena_printf(lint->arena, "%s:$%s", lint->report->path.ptr, place);
    }
    for (size_t idx = lint->first; idx < lint->findings->n; idx++) {
        const struct finding *f = &lint->findings->items[idx];
        const char *head = strchr(where, ']');
        size_t len = stack && head ? (size_t)(head - where) + 1 : 0;
        if (strcmp(f->id, id) == 0 && str_eq_z(f->message, text) &&
            (f->where.len >= len && memcmp(f->where.ptr, where, len) == 0)) {
            return;
        }
    }
    finding_add(lint->findings, lint->arena, id, str_of(where), "%s", text);
}

bool stack_has_cells(const struct report *report, const struct stack *stack)
{
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (report->cases[idx].stack == stack && report->cases[idx].n_cells) {
            return true;
        }
    }
    return false;
}

static const struct shell_script *script_of(struct lint *lint, const struct stack *stack,
                                            const struct command *command, bool is_printed)
{
    static const struct shell_script NONE = {.n = 0};
    size_t at = 2 * (lint->first_command[stack_index(lint->report, stack)] +
                     (size_t)(command - stack->commands)) +
                is_printed;
    struct str text = is_printed ? command->printed : command->works;
    if (!text.ptr) {
        return &NONE;
    }
    if (!lint->scripts[at]) {
        lint->scripts[at] = arena_new(lint->arena, struct shell_script);
        shell_script_read(lint->arena, text, lint->scripts[at]);
    }
    return lint->scripts[at];
}

struct lint_command lint_command_at(struct lint *lint, const struct stack *stack, size_t idx)
{
    static const size_t PLACE_BYTES = 48;
    const struct command *command = &stack->commands[idx];
    char **place = &lint->places[lint->first_command[stack_index(lint->report, stack)] + idx];
    if (!*place) {
        *place = arena_array(lint->arena, char, PLACE_BYTES);
        snprintf(*place, PLACE_BYTES, ".commands[%zu].printed", idx);
    }
    return (struct lint_command){stack, command, script_of(lint, stack, command, true), *place};
}

const struct shell_script *working_script(struct lint *lint, const struct stack *stack,
                                          const struct command *command)
{
    return script_of(lint, stack, command, false);
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

bool ends_in_any(struct str s, const char *const *suffixes)
{
    for (; *suffixes; suffixes++) {
        if (str_ends(s, str_of(*suffixes))) {
            return true;
        }
    }
    return false;
}

void lint_report(struct arena *arena, const struct report *report, struct findings *findings)
{
    struct lint lint = {
        .arena = arena, .report = report, .findings = findings, .first = findings->n};
    size_t n = 0;
    lint.first_command = arena_array(arena, size_t, report->n_stacks + 1);
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        lint.first_command[idx] = n;
        n += report->stacks[idx].n_commands;
    }
    lint.scripts = arena_array(arena, struct shell_script *, 2 * n + 1);
    lint.places = arena_array(arena, char *, n + 1);
    lint_pins(&lint);
    lint_commands(&lint);
    lint_conditions(&lint);
    lint_rows(&lint);
}

/* Of a stack's recipe at `place`, by the first case that it is for and that shows one. A case's own rule is its cells' affair. */
static void lint_recipe(struct arena *arena, const struct rules_of *of, const struct stack *stack,
                        const struct recipe *recipe, const char *place)
{
    const struct asked_of_log asked = {recipe->rule, &recipe->beside};
    const char *key;
    const char *why;
    for (size_t idx = 0; idx < of->report->n_cases; idx++) {
        const struct report_case *c = &of->report->cases[idx];
        struct str id = recipe->rule.ptr ? rule_id_format(recipe->rule) : c->format;
        if (c->stack == stack &&
            asked_is_missing(arena, &asked, id.ptr ? format_find(of->formats, id) : NULL, &key,
                             &why)) {
            finding_add(of->findings, arena, "recipe-rule-missing",
                        str_of(arena_printf(arena, "%s:$.stacks[%zu].%s.%s", of->report->path.ptr,
                                            stack_index(of->report, stack), place, key)),
                        "%.*s: %s", STR_ARG(recipe->title), why);
            return;
        }
    }
}

static void lint_recipes(struct arena *arena, const struct rules_of *of, const struct stack *stack,
                         const struct recipes *recipes, const char *profile)
{
    for (size_t idx = 0; idx < recipes->n; idx++) {
        if (recipes->items[idx].image.ptr) { /* else it says why nothing can run */
            lint_recipe(arena, of, stack, &recipes->items[idx],
                        arena_printf(arena, "%s[%zu]", profile, idx));
        }
    }
}

void lint_rules(struct arena *arena, const struct report *report, const struct format_set *formats,
                struct findings *findings)
{
    const struct rules_of of = {report, formats, findings};
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        const struct stack *stack = &report->stacks[idx];
        lint_recipes(arena, &of, stack, &stack->smoke, "smoke");
        lint_recipes(arena, &of, stack, &stack->full, "full");
    }
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        for (size_t at = 0; at < c->n_cells; at++) {
            const char *missing = audit_missing_rule(arena, formats, c, &c->cells[at]);
            if (missing) {
                finding_add(findings, arena, "rule-missing",
                            str_of(arena_printf(arena, "%s:$.cases[%zu].cells[%zu]",
                                                report->path.ptr, idx, at)),
                            "%s: %s", c->cells[at].id.ptr, missing);
            }
        }
    }
}
