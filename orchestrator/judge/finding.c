/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/finding.h"

#include "base/vec.h"

#define MESSAGE_BYTES 1024

const char *const FINDING_LEVEL_NAMES[3] = {"note", "warning", "error"};

static const struct finding_rule *find_rule(const char *id)
{
    return Z_NAMED(FINDING_RULES, N_FINDING_RULES, id, str_of(id));
}

bool findings_say(const struct findings *list, const char *id, struct str message, bool is_whole)
{
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct finding *f = &list->items[idx];
        if (strcmp(f->id, id) == 0 && str_starts(f->message, message) &&
            (!is_whole || f->message.len == message.len)) {
            return true;
        }
    }
    return false;
}

const char *spot_path(struct arena *arena, const struct spot *at, bool is_lasting)
{
    const struct report_case *c = at->of_case;
    const char *cell = "";
    if (!c && !at->stack) {
        return arena_printf(arena, "$%s", at->below ? at->below : "");
    }
    struct str id = c ? c->id : at->stack->id;
    size_t idx = c ? (size_t)(c - at->report->cases) : (size_t)(at->stack - at->report->stacks);
    if (at->cell && at->below) {
        cell = arena_printf(arena, ".cells[%zu]", (size_t)(at->cell - c->cells));
    }
    const char *below = at->below ? at->below : c ? ".id" : "";
    return is_lasting
               ? arena_printf(arena, "%s %.*s %s%s", c ? "case" : "stack", STR_ARG(id), cell, below)
               : arena_printf(arena, "$.%s[%zu]%s%s", c ? "cases" : "stacks", idx, cell, below);
}

/* Whether only the manifest has it: what its authors add to the published text, in order to run it. */
static bool is_of_manifest(const struct spot *at)
{
    struct str below = str_of(at->below ? at->below : "");
    return !at->report->source.path.ptr || str_starts(below, STR_LIT(".smoke[")) ||
           str_starts(below, STR_LIT(".full[")) || str_ends(below, STR_LIT(".works"));
}

/* The authors' page that shows what was done with the stack. */
static struct str page_of(const struct report *report, const struct stack *stack)
{
    for (size_t idx = 0; stack && idx < report->n_cases; idx++) {
        if (report->cases[idx].stack == stack) {
            return report_row_source(report, &report->cases[idx]).path;
        }
    }
    return report->source.path;
}

static struct str spot_words(struct arena *arena, const struct spot *at)
{
    const char *line = at->line ? arena_printf(arena, ":%" PRId64, at->line) : "";
    if (at->log.ptr) {
        return str_printf(arena, "%.*s%s", STR_ARG(at->log), line);
    }
    if (at->page.ptr || at->of_case) {
        return at->page.ptr ? at->page : at->cell ? at->cell->id : at->of_case->id;
    }
    if (is_of_manifest(at)) {
        return str_printf(arena, "%s: %s", at->report->path.ptr, spot_path(arena, at, true));
    }
    struct str page = page_of(at->report, at->stack);
    return at->stack
               ? str_printf(arena, "%.*s: %.*s", STR_ARG(page),
                            STR_ARG(at->stack->label.len ? at->stack->label : at->stack->framework))
               : page;
}

void finding_add(struct findings *list, const char *id, struct spot at, const char *fmt, ...)
{
    const struct finding_rule *rule = find_rule(id);
    char text[MESSAGE_BYTES];
    va_list args;
    ASSERT(rule);
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    VEC_RESERVE_IN(list->arena, list);
    struct finding *f = &list->items[list->n++];
    f->id = rule->id;
    f->level = rule->level;
    f->message = str_dup(list->arena, str_of(text));
    f->at = at;
    f->where = spot_words(list->arena, &at);
}
