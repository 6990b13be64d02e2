/* SPDX-License-Identifier: Apache-2.0 */
/* Findings and conditions. */
#include "base/base.h"

#include "report/vocabulary.h"
#include "view/page_parts.h"

#define VALUES_MAX 6 /* different values of one condition that are listed; the rest is counted */

/* ---- findings ---- */

static bool is_alike(const struct finding *a, const struct finding *b)
{
    return strcmp(a->id, b->id) == 0 && str_eq(a->message, b->message);
}

/* What says the same in several places stands once, with all of them. */
static void add_alike(struct page *page, const struct findings *findings, size_t first)
{
    const struct finding *head = &findings->items[first];
    for (size_t idx = 0; idx < first; idx++) {
        if (is_alike(&findings->items[idx], head)) {
            return;
        }
    }
    HTML(page->out, "<li>{}<small>", head->message);
    for (size_t idx = first; idx < findings->n; idx++) {
        if (is_alike(head, &findings->items[idx])) {
            struct str url = address_of_spot(&page->arena, &findings->items[idx].at);
            strbuf_add_z(page->out, idx == first ? "" : ", ");
            page_link(page, url, findings->items[idx].where);
        }
    }
    strbuf_add_z(page->out, "</small></li>\n");
}

/* All findings of one rule. */
static void add_rule(struct page *page, const struct findings *findings,
                     const struct finding_rule *rule)
{
    static const char *const ICONS[] = {
        [LEVEL_ERROR] = "\xc3\x97", [LEVEL_WARNING] = "!", [LEVEL_NOTE] = "i"};
    size_t n = 0;
    for (size_t idx = 0; idx < findings->n; idx++) {
        n += strcmp(findings->items[idx].id, rule->id) == 0;
    }
    if (n == 0) {
        return;
    }
    strbuf_printf(page->out, "<details class=\"finding\" data-n=\"%zu\"%s><summary>", n,
                  rule->level == LEVEL_ERROR ? " open" : "");
    page_verdict(page, FINDING_LEVEL_NAMES[rule->level], ICONS[rule->level],
                 FINDING_LEVEL_NAMES[rule->level]);
    HTML(page->out,
         " {} <span class=\"soft\">({}, <code>{}</code>)</span></summary>\n"
         "<p class=\"soft\">{}</p><ul>\n",
         str_of(rule->title), count_text(page, n), str_of(rule->id), finding_help(rule));
    for (size_t idx = 0; idx < findings->n; idx++) {
        if (strcmp(findings->items[idx].id, rule->id) == 0) {
            add_alike(page, findings, idx);
        }
    }
    strbuf_add_z(page->out, "</ul></details>\n");
}

void add_findings(struct page *page, const struct report_audit *audit)
{
    page_section(page, "findings", STR_LIT("Findings"));
    strbuf_add_z(page->out,
                 audit->findings.n
                     ? "<p>What in the manifest and the logs prevents this report from being "
                       "repeated or trusted. Errors are open; warnings and notes can be "
                       "opened.</p>\n"
                     : "<p>None.</p>\n");
    for (int level = LEVEL_ERROR; level >= LEVEL_NOTE; level--) {
        for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
            if (FINDING_RULES[idx].level == (enum finding_level)level) {
                add_rule(page, &audit->findings, &FINDING_RULES[idx]);
            }
        }
    }
    page_section_end(page);
}

/* ---- conditions ---- */

struct condition_row {
    struct str name;
    struct str *texts; /* one a stack */
    bool is_same;
};

/* One table: the frameworks that ran one model, and every condition that any of them names. */
struct conditions_table {
    const struct report *report;
    struct str model;
    const struct stack **stacks;
    size_t n_stacks;
    struct condition_row rows[CONDITION_NAMES_MAX];
    size_t n_rows;
};

static bool is_of(const struct report_case *c, struct str model)
{
    return str_eq(c->model, model) && !str_eq_z(c->framework, "reperf");
}

/* "24; 32; not stated": the different values over the cases of one stack; no text where none of them names the condition. */
static struct str values_text(struct page *page, const struct conditions_table *t,
                              const struct stack *stack, const char *name)
{
    struct str values[VALUES_MAX];
    struct str text = STR_EMPTY;
    size_t n = 0;
    size_t n_more = 0;
    for (size_t idx = 0; idx < t->report->n_cases; idx++) {
        const struct report_case *c = &t->report->cases[idx];
        struct str value;
        size_t at = 0;
        if (c->stack != stack || !is_of(c, t->model) || !case_condition(c, name, &value)) {
            continue;
        }
        value = value.ptr ? value : STR_LIT("not stated");
        while (at < n && !str_eq(values[at], value)) {
            at++;
        }
        if (at == VALUES_MAX) {
            n_more++;
        } else if (at == n) {
            values[n++] = value;
            text = text.ptr ? text_of(page, "%.*s; %.*s", STR_ARG(text), STR_ARG(value)) : value;
        }
    }
    return n_more ? text_of(page, "%.*s; %zu more", STR_ARG(text), n_more) : text;
}

static void find_rows(struct page *page, struct conditions_table *t,
                      const struct conditions *conditions)
{
    for (size_t idx = 0; conditions && idx < conditions->n; idx++) {
        const char *name = str_z(&page->arena, conditions->items[idx].name);
        struct condition_row row = {conditions->items[idx].name,
                                    arena_array(&page->arena, struct str, t->n_stacks), true};
        size_t at = 0;
        while (at < t->n_rows && !str_eq(t->rows[at].name, row.name)) {
            at++;
        }
        if (at < t->n_rows) {
            continue;
        }
        for (size_t stack = 0; stack < t->n_stacks; stack++) {
            row.texts[stack] = values_text(page, t, t->stacks[stack], name);
            row.is_same = row.is_same && str_eq(row.texts[stack], row.texts[0]);
        }
        ASSERT(t->n_rows < CONDITION_NAMES_MAX);
        t->rows[t->n_rows++] = row;
    }
}

/* Those that differ, or, folded away, those that are the same. */
static void add_part(struct page *page, const struct conditions_table *t, bool is_same)
{
    size_t n = 0;
    for (size_t idx = 0; idx < t->n_rows; idx++) {
        n += t->rows[idx].is_same == is_same;
    }
    if (n == 0) {
        return;
    }
    if (is_same) {
        HTML(page->out, "<details><summary>{}: {} condition{} the same for all</summary>\n",
             t->model, count_text(page, n), n == 1 ? STR_LIT(" is") : STR_LIT("s are"));
    }
    page_table(page,
               text_of(page, "%.*s: what %s between frameworks", STR_ARG(t->model),
                       is_same ? "is the same" : "differs"),
               "Condition");
    for (size_t stack = 0; stack < t->n_stacks; stack++) {
        page_column(page, t->stacks[stack]->label, NULL);
    }
    for (size_t idx = 0; idx < t->n_rows; idx++) {
        const struct condition_row *row = &t->rows[idx];
        if (row->is_same != is_same) {
            continue;
        }
        page_row(page, is_same ? "wide alike" : "wide unlike", STR_EMPTY);
        page_cell(page, row->name);
        page_note(page, is_same ? STR_LIT("= same") : STR_LIT("\xe2\x89\xa0 differs"));
        for (size_t stack = 0; stack < t->n_stacks; stack++) {
            page_cell(page, row->texts[stack].ptr ? row->texts[stack] : STR_LIT("\xe2\x80\x93"));
        }
    }
    page_table_end(page);
    strbuf_add_z(page->out, is_same ? "</details>\n" : "");
}

static void add_conditions_of(struct page *page, const struct report *report, struct str model)
{
    struct conditions_table *t = arena_new(&page->arena, struct conditions_table);
    *t = (struct conditions_table){.report = report, .model = model};
    t->stacks = arena_array(&page->arena, const struct stack *, report->n_stacks);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct stack *stack = report->cases[idx].stack;
        size_t at = 0;
        while (at < t->n_stacks && t->stacks[at] != stack) {
            at++;
        }
        if (at == t->n_stacks && is_of(&report->cases[idx], model)) {
            t->stacks[t->n_stacks++] = stack;
        }
    }
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        if (is_of(c, model)) {
            find_rows(page, t, c->environment ? &c->environment->conditions : NULL);
            find_rows(page, t, &c->stack->conditions);
            find_rows(page, t, &c->conditions);
        }
    }
    add_part(page, t, false);
    add_part(page, t, true);
}

void add_conditions(struct page *page, const struct report *report)
{
    page_section(page, "conditions", STR_LIT("Conditions"));
    strbuf_add_z(
        page->out,
        "<p>What the report, its scripts and its manifest state. Several values mean that they "
        "differ between cases of one framework.</p>\n");
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        struct str model = report->cases[idx].model;
        bool is_first = is_of(&report->cases[idx], model);
        for (size_t before = 0; before < idx && is_first; before++) {
            is_first = !is_of(&report->cases[before], model);
        }
        if (is_first) {
            add_conditions_of(page, report, model);
        }
    }
    page_section_end(page);
}
