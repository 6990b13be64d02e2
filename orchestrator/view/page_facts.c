/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, conditions and provenance. */
#include "base/base.h"

#include "view/page_parts.h"

#define VALUES_MAX 6 /* different values of one condition that are listed; the rest is counted */

static void add_level(struct page *page, enum finding_level level)
{
    static const char *const ICONS[] = {
        [LEVEL_ERROR] = "\xc3\x97", [LEVEL_WARNING] = "!", [LEVEL_NOTE] = "i"};
    strbuf_printf(page->out, "<span class=\"v %s\"><i aria-hidden=\"true\">%s</i> %s</span>",
                  finding_level_name(level), ICONS[level], finding_level_name(level));
}

static bool is_alike(const struct finding *a, const struct finding *b)
{
    return strcmp(a->id, b->id) == 0 && str_eq(a->message, b->message);
}

static bool is_first_alike(const struct findings *findings, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (is_alike(&findings->items[before], &findings->items[idx])) {
            return false;
        }
    }
    return true;
}

/* One that says the same in several places stands once, with all of them. */
static void add_alike(struct page *page, const struct findings *findings, size_t first)
{
    size_t n = 0;
    HTML(page->out, "<li>{}<small>", findings->items[first].message);
    for (size_t idx = first; idx < findings->n; idx++) {
        if (is_alike(&findings->items[first], &findings->items[idx])) {
            HTML(page->out, "{}<code>{}</code>", n ? STR_LIT(", ") : STR_EMPTY,
                 findings->items[idx].where);
            n++;
        }
    }
    strbuf_add_z(page->out, "</small></li>\n");
}

/* All findings of one rule. */
static void add_finding_group(struct page *page, const struct findings *findings,
                              const struct finding_rule *rule)
{
    size_t n = 0;
    for (size_t idx = 0; idx < findings->n; idx++) {
        n += strcmp(findings->items[idx].id, rule->id) == 0;
    }
    if (n == 0) {
        return;
    }
    strbuf_printf(page->out, "<details class=\"finding\" data-n=\"%zu\"%s><summary>", n,
                  rule->level == LEVEL_ERROR ? " open" : "");
    add_level(page, rule->level);
    HTML(page->out, " {} <span class=\"soft\">({}, <code>{}</code>)</span></summary>\n",
         str_of(rule->title), textf(&page->arena, "%zu", n), str_of(rule->id));
    HTML(page->out, "<p class=\"soft\">{}</p><ul>\n", str_of(rule->help));
    for (size_t idx = 0; idx < findings->n; idx++) {
        if (strcmp(findings->items[idx].id, rule->id) == 0 && is_first_alike(findings, idx)) {
            add_alike(page, findings, idx);
        }
    }
    strbuf_add_z(page->out, "</ul></details>\n");
}

void add_findings(struct page *page, const struct report_audit *audit)
{
    static const enum finding_level ORDER[] = {LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTE};
    HTML(page->out,
         "<section class=\"card\" id=\"{}-findings\"><h3>Findings</h3>\n<p>What in the manifest "
         "and the logs prevents this report from being repeated or trusted. Errors are open; "
         "warnings and notes can be opened.</p>\n",
         audit->report->id);
    if (audit->findings.n == 0) {
        strbuf_add_z(page->out, "<p>None.</p>\n");
    }
    for (size_t level = 0; level < ARRAY_LEN(ORDER); level++) {
        for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
            if (FINDING_RULES[idx].level == ORDER[level]) {
                add_finding_group(page, &audit->findings, &FINDING_RULES[idx]);
            }
        }
    }
    strbuf_add_z(page->out, "</section>\n");
}

/* The different values of one condition over the cases of one stack and model, "not stated" among them. */
struct values {
    struct str items[VALUES_MAX];
    size_t n;
    size_t n_more;
    bool is_named;
};

/* One table: the frameworks that ran one model, and every condition that any of them names. */
struct conditions_table {
    const struct report *report;
    struct str model;
    const struct stack **stacks; /* room for all of the report */
    size_t n_stacks;
    const char *names[CONDITION_NAMES_MAX];
    size_t n_names;
};

static bool is_shown(const struct report_case *c)
{
    return !str_eq_z(c->framework, "reperf");
}

static struct values find_values(const struct conditions_table *t, size_t stack, const char *name)
{
    struct values values = {0};
    for (size_t idx = 0; idx < t->report->n_cases; idx++) {
        const struct report_case *c = &t->report->cases[idx];
        struct str value;
        size_t at = 0;
        if (c->stack != t->stacks[stack] || !str_eq(c->model, t->model) ||
            !case_condition(c, name, &value)) {
            continue;
        }
        values.is_named = true;
        value = value.ptr ? value : STR_LIT("not stated");
        while (at < values.n && !str_eq(values.items[at], value)) {
            at++;
        }
        if (at == values.n && values.n < VALUES_MAX) {
            values.items[values.n++] = value;
        } else if (at == values.n) {
            values.n_more++;
        }
    }
    return values;
}

static bool same_values(const struct values *a, const struct values *b)
{
    bool is_same = a->n == b->n && a->n_more == b->n_more;
    for (size_t idx = 0; is_same && idx < a->n; idx++) {
        is_same = str_eq(a->items[idx], b->items[idx]);
    }
    return is_same;
}

static bool is_same_everywhere(const struct conditions_table *t, const char *name)
{
    struct values first = find_values(t, 0, name);
    bool is_same = true;
    for (size_t idx = 1; is_same && idx < t->n_stacks; idx++) {
        struct values values = find_values(t, idx, name);
        is_same = same_values(&first, &values);
    }
    return is_same;
}

static void add_condition(struct page *page, const struct conditions_table *t, const char *name,
                          bool is_same)
{
    HTML(page->out, "<tr class=\"wide {}\"><th scope=\"row\">{}<small>{}</small></th>",
         is_same ? STR_LIT("alike") : STR_LIT("unlike"), str_of(name),
         is_same ? STR_LIT("= same") : STR_LIT("\xe2\x89\xa0 differs"));
    for (size_t idx = 0; idx < t->n_stacks; idx++) {
        struct values values = find_values(t, idx, name);
        strbuf_add_z(page->out, "<td>");
        for (size_t at = 0; at < values.n; at++) {
            strbuf_add_z(page->out, at ? "; " : "");
            add_condition_value(page, values.items[at]);
        }
        if (values.n_more) {
            HTML(page->out, "; {} more", textf(&page->arena, "%zu", values.n_more));
        }
        strbuf_add_z(page->out, values.is_named ? "</td>" : "\xe2\x80\x93</td>");
    }
    strbuf_add_z(page->out, "</tr>\n");
}

static void add_names(struct page *page, struct conditions_table *t,
                      const struct conditions *conditions)
{
    for (size_t idx = 0; idx < conditions->n; idx++) {
        size_t at = 0;
        while (at < t->n_names && !str_eq_z(conditions->items[idx].name, t->names[at])) {
            at++;
        }
        if (at == t->n_names) {
            ASSERT(t->n_names < CONDITION_NAMES_MAX);
            t->names[t->n_names++] = str_z(&page->arena, conditions->items[idx].name);
        }
    }
}

static void add_stack(struct conditions_table *t, const struct stack *stack)
{
    size_t at = 0;
    while (at < t->n_stacks && t->stacks[at] != stack) {
        at++;
    }
    if (at == t->n_stacks) {
        t->stacks[t->n_stacks++] = stack;
    }
}

static void find_table(struct page *page, struct conditions_table *t)
{
    for (size_t idx = 0; idx < t->report->n_cases; idx++) {
        const struct report_case *c = &t->report->cases[idx];
        if (!is_shown(c) || !str_eq(c->model, t->model)) {
            continue;
        }
        add_stack(t, c->stack);
        if (c->environment) {
            add_names(page, t, &c->environment->conditions);
        }
        add_names(page, t, &c->stack->conditions);
        add_names(page, t, &c->conditions);
    }
}

/* Those that differ, or, folded away, those that are the same. */
static void add_conditions_part(struct page *page, const struct conditions_table *t, bool is_same)
{
    size_t n = 0;
    for (size_t idx = 0; idx < t->n_names; idx++) {
        n += is_same_everywhere(t, t->names[idx]) == is_same;
    }
    if (n == 0) {
        return;
    }
    if (is_same) {
        HTML(page->out, "<details><summary>{}: {} condition{} the same for all</summary>\n",
             t->model, textf(&page->arena, "%zu", n), n == 1 ? STR_LIT(" is") : STR_LIT("s are"));
    }
    add_scroll_begin(page, textf(&page->arena, "Conditions of %.*s that %s", STR_ARG(t->model),
                                 is_same ? "are the same" : "differ"));
    HTML(page->out,
         "<caption>{}: what {} between frameworks</caption><thead><tr>"
         "<th scope=\"col\">Condition</th>",
         t->model, is_same ? STR_LIT("is the same") : STR_LIT("differs"));
    for (size_t idx = 0; idx < t->n_stacks; idx++) {
        HTML(page->out, "<th scope=\"col\">{}</th>", t->stacks[idx]->label);
    }
    strbuf_add_z(page->out, "</tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < t->n_names; idx++) {
        if (is_same_everywhere(t, t->names[idx]) == is_same) {
            add_condition(page, t, t->names[idx], is_same);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, is_same ? "</details>\n" : "");
}

static void add_conditions_table(struct page *page, const struct report *report, struct str model)
{
    struct conditions_table *t = arena_new(&page->arena, struct conditions_table);
    *t = (struct conditions_table){.report = report, .model = model};
    t->stacks = arena_array(&page->arena, const struct stack *, report->n_stacks + 1);
    find_table(page, t);
    add_conditions_part(page, t, false);
    add_conditions_part(page, t, true);
}

static bool is_first_of_model(const struct report *report, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (is_shown(&report->cases[before]) &&
            str_eq(report->cases[before].model, report->cases[idx].model)) {
            return false;
        }
    }
    return is_shown(&report->cases[idx]);
}

void add_conditions(struct page *page, const struct report_audit *audit)
{
    const struct report *report = audit->report;
    HTML(
        page->out,
        "<section class=\"card\" id=\"{}-conditions\"><h3>Conditions</h3>\n<p>What the report, its "
        "scripts and its manifest state. Several values mean that they differ between cases of one "
        "framework.</p>\n",
        report->id);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (is_first_of_model(report, idx)) {
            add_conditions_table(page, report, report->cases[idx].model);
        }
    }
    strbuf_add_z(page->out, "</section>\n");
}

void add_provenance(struct page *page, const struct report_audit *audit)
{
    HTML(page->out,
         "<section class=\"card\" id=\"{}-provenance\"><h3>Provenance</h3>\n<p>The manifest is "
         "<code>{}</code>.</p>\n<details><summary>Logs and their SHA-256</summary>\n",
         audit->report->id, audit->report->path);
    add_scroll_begin(page, STR_LIT("Logs"));
    strbuf_add_z(page->out, "<caption>Each log a cell was computed from</caption><thead><tr>"
                            "<th scope=\"col\">Cell</th><th scope=\"col\">Log</th>"
                            "<th scope=\"col\">SHA-256</th></tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *ca = &audit->cells[idx];
        for (size_t log = 0; log < ca->n_logs; log++) {
            HTML(page->out, "<tr><th scope=\"row\" class=\"mono\">{}</th><td class=\"where mono\">",
                 ca->cell->id);
            add_log_link(page, audit->report, ca->logs[log].path);
            HTML(page->out, "</td><td class=\"where mono\">{}</td></tr>\n", ca->logs[log].sha256);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</details></section>\n");
}
