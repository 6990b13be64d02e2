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

/* One table: the frameworks that ran one model, and every condition that any of them names. */
struct conditions_table {
    const struct report *report;
    struct str model;
    const struct stack **stacks;
    size_t n_stacks;
    struct str names[CONDITION_NAMES_MAX];
    size_t n_names;
};

static bool is_of(const struct report_case *c, struct str model)
{
    return str_eq(c->model, model) && !str_eq_z(c->framework, "reperf");
}

/* "24; 32; not stated": the different values over the cases of one stack; no text where none of them names the condition. */
static struct str values_text(struct page *page, const struct conditions_table *t,
                              const struct stack *stack, struct str name)
{
    struct str values[VALUES_MAX];
    struct str text = STR_EMPTY;
    size_t n = 0;
    size_t n_more = 0;
    for (size_t idx = 0; idx < t->report->n_cases; idx++) {
        const struct report_case *c = &t->report->cases[idx];
        struct str value;
        if (c->stack != stack || !is_of(c, t->model) ||
            !case_condition(c, str_z(&page->arena, name), &value)) {
            continue;
        }
        value = value.ptr ? value : STR_LIT("not stated");
        if (str_is_in(value, values, n)) {
            continue;
        }
        if (n == VALUES_MAX) {
            n_more++;
            continue;
        }
        values[n++] = value;
        text = text.ptr ? text_of(page, "%.*s; %.*s", STR_ARG(text), STR_ARG(value)) : value;
    }
    return n_more ? text_of(page, "%.*s; %zu more", STR_ARG(text), n_more) : text;
}

static void find_names(struct conditions_table *t, const struct conditions *conditions)
{
    for (size_t idx = 0; conditions && idx < conditions->n; idx++) {
        if (!str_is_in(conditions->items[idx].name, t->names, t->n_names)) {
            ASSERT(t->n_names < CONDITION_NAMES_MAX);
            t->names[t->n_names++] = conditions->items[idx].name;
        }
    }
}

/* A row of one condition, where its values are the same for all, or differ, as is asked for. */
static bool add_condition(struct page *page, const struct conditions_table *t, struct str name,
                          bool is_same)
{
    struct str *texts = arena_array(&page->arena, struct str, t->n_stacks);
    bool has_one_text = true;
    for (size_t stack = 0; stack < t->n_stacks; stack++) {
        texts[stack] = values_text(page, t, t->stacks[stack], name);
        has_one_text = has_one_text && str_eq(texts[stack], texts[0]);
        texts[stack] = texts[stack].ptr ? texts[stack] : STR_LIT("\xe2\x80\x93");
    }
    if (has_one_text == is_same) {
        page_row(page, is_same ? "wide alike" : "wide unlike", STR_EMPTY);
        page_cell(page, name);
        page_note(page, is_same ? STR_LIT("= same") : STR_LIT("\xe2\x89\xa0 differs"));
        page_cells(page, texts, t->n_stacks);
    }
    return has_one_text == is_same;
}

/* Those that differ, or, folded away, those that are the same. */
static void add_part(struct page *page, const struct conditions_table *t, bool is_same)
{
    CLEANUP(strbuf) struct strbuf table = STRBUF(HTML_BYTES_MAX);
    struct strbuf *out = page->out;
    size_t n = 0;
    page->out = &table;
    page_table(page,
               text_of(page, "%.*s: what %s between frameworks", STR_ARG(t->model),
                       is_same ? "is the same" : "differs"),
               "Condition");
    for (size_t stack = 0; stack < t->n_stacks; stack++) {
        page_column(page, t->stacks[stack]->label, NULL);
    }
    for (size_t idx = 0; idx < t->n_names; idx++) {
        n += add_condition(page, t, t->names[idx], is_same);
    }
    page_table_end(page);
    page->out = out;
    if (n && is_same) {
        HTML(out, "<details><summary>{}: {} condition{} the same for all</summary>\n", t->model,
             count_text(page, n), n == 1 ? STR_LIT(" is") : STR_LIT("s are"));
    }
    if (n) {
        strbuf_add_str(out, strbuf_str(&table));
        strbuf_add_z(out, is_same ? "</details>\n" : "");
    }
}

/* Of the model of that case, unless a case before it is of the same. */
static void add_conditions_of(struct page *page, const struct report *report, size_t first)
{
    struct conditions_table *t = arena_new(&page->arena, struct conditions_table);
    *t = (struct conditions_table){.report = report, .model = report->cases[first].model};
    t->stacks = arena_array(&page->arena, const struct stack *, report->n_stacks);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        size_t at = 0;
        if (!is_of(c, t->model)) {
            continue;
        }
        if (idx < first) {
            return;
        }
        while (at < t->n_stacks && t->stacks[at] != c->stack) {
            at++;
        }
        t->stacks[at] = c->stack;
        t->n_stacks += at == t->n_stacks;
        find_names(t, c->environment ? &c->environment->conditions : NULL);
        find_names(t, &c->stack->conditions);
        find_names(t, &c->conditions);
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
        if (is_of(&report->cases[idx], report->cases[idx].model)) {
            add_conditions_of(page, report, idx);
        }
    }
    page_section_end(page);
}
