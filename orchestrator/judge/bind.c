/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/bind.h"

#include "base/map.h"
#include "judge/rule.h"

/* The name of the format that a cell's logs are read by; empty: none. */
static struct str cell_format(const struct report_case *c, const struct cell *cell)
{
    return cell->derive != DERIVE_NONE ? STR_EMPTY : cell->format.ptr ? cell->format : c->format;
}

/* The case's rule is for its throughput; other metrics have their own rule or none. */
struct str cell_rule(const struct report_case *c, const struct cell *cell)
{
    bool is_rate = cell->metric == METRIC_THROUGHPUT || cell->metric == METRIC_RUN_THROUGHPUT;
    if (cell->rule.ptr) {
        return cell->rule;
    }
    return is_rate && cell->derive == DERIVE_NONE ? c->rule : STR_EMPTY;
}

/* ---- cells and their logs ---- */

struct binder {
    struct arena *arena;
    const struct format_set *formats;
    struct binding *out;
    struct map logs; /* "FORMAT\nPATH" to struct audit_log */
};

static struct audit_log *bind_log(struct binder *b, struct str format, struct str path,
                                  bool is_format)
{
    struct str key = str_printf(b->arena, "%.*s\n%.*s", STR_ARG(format), STR_ARG(path));
    struct audit_log *log = map_get(&b->logs, key);
    if (!log) {
        log = arena_new(b->arena, struct audit_log);
        log->path = path;
        log->format = format;
        (void)map_add(&b->logs, key, log);
        b->out->logs[b->out->n_logs] = log;
        b->out->n_logs += is_format;
    }
    return log;
}

static void bind_cell(struct binder *b, struct bound_cell *bound)
{
    const struct report_case *c = bound->of_case;
    struct str format = cell_format(c, bound->cell);
    struct str rule = cell_rule(c, bound->cell);
    if (format.ptr) {
        bound->format = format_find(b->formats, format);
        bound->logs = arena_array(b->arena, struct audit_log *, c->n_logs + 1);
    }
    for (size_t idx = 0; format.ptr && idx < c->n_logs; idx++) {
        bound->logs[idx] = bind_log(b, format, c->logs[idx], bound->format != NULL);
    }
    if (bound->format && rule.ptr) {
        bound->rule = format_rule(bound->format, rule);
    }
    bound->is_missing = format.ptr && (!bound->format || (rule.ptr && !bound->rule));
    bound->why_no_rule = bound->rule          ? NULL
                         : !bound->is_missing ? "no rule says how its log gives this number"
                         : bound->format
                             ? arena_printf(b->arena, "there is no rule %.*s", STR_ARG(rule))
                             : arena_printf(b->arena, "there is no format %.*s", STR_ARG(format));
}

/* References were checked when the report was read. */
static const struct bound_cell *bound_of(const struct binding *binding, struct str id)
{
    size_t idx = 0;
    while (idx < binding->n_cells && !str_eq(binding->cells[idx].cell->id, id)) {
        idx++;
    }
    ASSERT(idx < binding->n_cells);
    return &binding->cells[idx];
}

static void bind_derived(struct binder *b, struct bound_cell *bound)
{
    const struct cell *cell = bound->cell;
    bound->of = arena_array(b->arena, const struct bound_cell *, cell->n_of + 1);
    for (size_t idx = 0; idx < cell->n_of; idx++) {
        bound->of[idx] = bound_of(b->out, cell->of[idx]);
    }
}

void bind_report(struct arena *arena, const struct report *report, const struct format_set *formats,
                 struct binding *ret_binding)
{
    struct binder b = {.arena = arena, .formats = formats, .out = ret_binding};
    size_t n_cells = 0;
    size_t n_logs = 0;
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        n_cells += report->cases[idx].n_cells;
        n_logs += report->cases[idx].n_cells * report->cases[idx].n_logs;
    }
    *ret_binding = (struct binding){.report = report};
    ret_binding->cells = arena_array(arena, struct bound_cell, n_cells + 1);
    ret_binding->logs = arena_array(arena, struct audit_log *, n_logs + 1);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        for (size_t at = 0; at < c->n_cells; at++) {
            struct bound_cell *bound = &ret_binding->cells[ret_binding->n_cells++];
            *bound = (struct bound_cell){
                .of_case = c, .cell = &c->cells[at], .takes_mean = report->own_logs.ptr != NULL};
            bind_cell(&b, bound);
        }
    }
    for (size_t idx = 0; idx < ret_binding->n_cells; idx++) {
        bind_derived(&b, &ret_binding->cells[idx]);
    }
    map_release(&b.logs);
}

/* ---- what a log is asked for beside ---- */

struct asked_of_log {
    struct str rule; /* id, of the case's number; NULL: none */
    const struct extras *beside;
};

static bool is_missing_also(struct arena *arena, const struct extras *beside,
                            const struct format *format, struct step_bound *ret)
{
    for (size_t idx = 0; idx < beside->n_also; idx++) {
        struct str id = beside->also[idx];
        if (!format || !str_eq(rule_id_format(id), format->id)) {
            ret->why = arena_printf(arena, "%.*s is no rule of %s%.*s, which reads the log",
                                    STR_ARG(id), format ? "format " : "the format",
                                    STR_ARG(format ? format->id : STR_EMPTY));
        } else if (!format_rule(format, id)) {
            ret->why = arena_printf(arena, "there is no rule %.*s", STR_ARG(id));
        } else {
            continue;
        }
        ret->key = arena_printf(arena, "also[%zu]", idx);
        return true;
    }
    return false;
}

/* The first thing that the format (NULL: it does not exist) lacks: its key ("rule", "target.series", "also[1]") and what is
   wrong. */
static bool is_missing(struct arena *arena, const struct asked_of_log *asked,
                       const struct format *format, struct step_bound *ret)
{
    struct str series = asked->beside->target.series;
    if (asked->rule.ptr && (!format || !format_rule(format, asked->rule))) {
        ret->key = "rule";
        ret->why = arena_printf(arena, "there is no rule %.*s", STR_ARG(asked->rule));
        return true;
    }
    if (series.ptr && format && !format_has_series(format, series)) {
        ret->key = "target.series";
        ret->why =
            arena_printf(arena, "its target is of series \"%.*s\", which format %.*s does not have",
                         STR_ARG(series), STR_ARG(format->id));
        return true;
    }
    return is_missing_also(arena, asked->beside, format, ret);
}

void bind_step(struct arena *arena, const struct format_set *formats, struct plan_step *step)
{
    const struct asked_of_log asked = {step->rule, &step->beside};
    struct step_bound *bound = &step->bound;
    const struct format *format = step->format.ptr ? format_find(formats, step->format) : NULL;
    bound->format = format;
    bound->rule = format && step->rule.ptr ? format_rule(format, step->rule) : NULL;
    if (step->format.ptr && !format && !step->rule.ptr) {
        bound->key = "format";
        bound->why = arena_printf(arena, "there is no format %.*s", STR_ARG(step->format));
        return;
    }
    if (is_missing(arena, &asked, format, bound)) {
        return;
    }
    bound->also = arena_array(arena, const struct rule *, step->beside.n_also + 1);
    for (size_t idx = 0; idx < step->beside.n_also; idx++) {
        bound->also[idx] = format_rule(format, step->beside.also[idx]);
    }
}

void bind_plan(struct arena *arena, const struct report *report, const struct format_set *formats,
               struct plan *plan)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        struct plan_step *step = &plan->steps[idx];
        step->bound.of_case = report_case_find(report, step->case_id);
        step->bound.baseline = step->baseline.ptr ? report_case_find(report, step->baseline) : NULL;
        bind_step(arena, formats, step);
    }
}

/* ---- findings ---- */

struct rules_of { /* the report whose rules are looked for */
    const struct report *report;
    const struct format_set *formats;
    struct findings *findings;
};

/* Of a stack's recipe at `place`, by the first case that it is for and that shows one. A case's own rule is its cells' affair. */
static void find_in_recipe(struct arena *arena, const struct rules_of *of,
                           const struct stack *stack, const struct recipe *recipe,
                           const char *place)
{
    const struct asked_of_log asked = {recipe->rule, &recipe->beside};
    struct step_bound bound = {0};
    for (size_t idx = 0; idx < of->report->n_cases; idx++) {
        const struct report_case *c = &of->report->cases[idx];
        struct str id = recipe->rule.ptr ? rule_id_format(recipe->rule) : c->format;
        if (c->stack == stack &&
            is_missing(arena, &asked, id.ptr ? format_find(of->formats, id) : NULL, &bound)) {
            finding_add(of->findings, "recipe-rule-missing",
                        (struct spot){.report = of->report,
                                      .stack = stack,
                                      .below = arena_printf(arena, ".%s.%s", place, bound.key)},
                        "%.*s: %s", STR_ARG(recipe->title), bound.why);
            return;
        }
    }
}

static void find_in_recipes(struct arena *arena, const struct rules_of *of,
                            const struct stack *stack, const struct recipes *recipes,
                            const char *profile)
{
    for (size_t idx = 0; idx < recipes->n; idx++) {
        if (!recipes->items[idx].why_not.ptr) {
            find_in_recipe(arena, of, stack, &recipes->items[idx],
                           arena_printf(arena, "%s[%zu]", profile, idx));
        }
    }
}

void bind_findings(struct arena *arena, const struct report *report,
                   const struct format_set *formats, struct findings *findings)
{
    const struct rules_of of = {report, formats, findings};
    struct binding binding;
    bind_report(arena, report, formats, &binding);
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        const struct stack *stack = &report->stacks[idx];
        find_in_recipes(arena, &of, stack, &stack->smoke, "smoke");
        find_in_recipes(arena, &of, stack, &stack->full, "full");
    }
    for (size_t idx = 0; idx < binding.n_cells; idx++) {
        const struct bound_cell *b = &binding.cells[idx];
        if (b->is_missing) {
            finding_add(findings, "rule-missing",
                        (struct spot){
                            .report = report, .of_case = b->of_case, .cell = b->cell, .below = ""},
                        "%s: %s", b->cell->id.ptr, b->why_no_rule);
        }
    }
}
