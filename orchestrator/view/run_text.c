/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/run_text.h"

#include <math.h>

#include "base/table.h"
#include "base/vec.h"
#include "judge/stats.h"

#define NAMED_MAX 3 /* cases that a remark names, of more than these the number */

static bool is_bad(const struct cell_result *cell)
{
    return cell->verdict == RUN_FAILED || cell->verdict == RUN_NOT_RUN;
}

/* ---- remarks: a text, and the cases of which it is said ---- */

struct remark {
    struct str text;
    bool *is_of; /* one a cell */
};

struct remarks {
    struct arena arena;
    const struct run_result *result;
    struct remark *items;
    size_t n, n_max;
};

static void remarks_cleanup(struct remarks *r)
{
    arena_release(&r->arena);
    VEC_RELEASE(r);
}

static void add_remark(struct remarks *r, size_t cell, const char *text)
{
    size_t idx = 0;
    while (idx < r->n && !str_eq_z(r->items[idx].text, text)) {
        idx++;
    }
    if (idx == r->n) {
        bool *is_of = arena_array(&r->arena, bool, r->result->n_cells + 1);
        VEC_PUSH(r, (struct remark){str_of(text), is_of});
    }
    r->items[idx].is_of[cell] = true;
}

static bool is_of_same(const struct remarks *r, const struct remark *a, const struct remark *b)
{
    return memcmp(a->is_of, b->is_of, r->result->n_cells * sizeof(*a->is_of)) == 0;
}

/* Said of every case that it can be said of: of all, or of those that ran. */
static bool is_of_all(const struct remarks *r, const struct remark *of, size_t *ret_n)
{
    bool is_all = true;
    *ret_n = 0;
    for (size_t idx = 0; idx < r->result->n_cells; idx++) {
        *ret_n += of->is_of[idx];
        is_all = is_all && (of->is_of[idx] || is_bad(&r->result->cells[idx]));
    }
    return is_all;
}

/* "all 18 cases", "a and b", "a, b, c and 3 more". */
static void print_cases(struct strbuf *buf, const struct remarks *r, const struct remark *of,
                        bool wants_all)
{
    size_t n = 0;
    size_t n_named = 0;
    if (is_of_all(r, of, &n) && n > 1) {
        strbuf_printf(buf, "all %zu cases%s", n, n < r->result->n_cells ? " that ran" : "");
        return;
    }
    size_t n_shown = wants_all || n <= NAMED_MAX + 1 ? n : NAMED_MAX;
    for (size_t idx = 0; idx < r->result->n_cells && n_named < n_shown; idx++) {
        if (of->is_of[idx]) {
            strbuf_printf(buf, "%s%.*s", n_named ? ", " : "",
                          STR_ARG(r->result->cells[idx].of_case->id));
            n_named++;
        }
    }
    if (n_shown < n) {
        strbuf_printf(buf, " and %zu more", n - n_shown);
    }
}

/* A line each. */
static void print_remarks(struct strbuf *buf, const struct remarks *r, bool wants_all)
{
    for (size_t idx = 0; idx < r->n; idx++) {
        strbuf_add_z(buf, idx ? "" : "\n");
        print_cases(buf, r, &r->items[idx], wants_all);
        strbuf_printf(buf, ": %.*s\n", STR_ARG(r->items[idx].text));
    }
}

/* Those of the same cases together, below them. Returns how many were left out: without wants_all, those that are not of all
   cases. */
static size_t print_differences(struct strbuf *buf, const struct remarks *r, bool wants_all)
{
    size_t n_left_out = 0;
    size_t n_cases = 0;
    for (size_t idx = 0; idx < r->n; idx++) {
        bool is_new = true;
        for (size_t before = 0; before < idx; before++) {
            is_new = is_new && !is_of_same(r, &r->items[before], &r->items[idx]);
        }
        if (!wants_all && !is_of_all(r, &r->items[idx], &n_cases)) {
            n_left_out++;
            continue;
        }
        if (!is_new) {
            continue;
        }
        strbuf_add_z(buf, "\ndiffers in ");
        print_cases(buf, r, &r->items[idx], wants_all);
        strbuf_add_z(buf, ":\n");
        for (size_t at = idx; at < r->n; at++) {
            if (is_of_same(r, &r->items[idx], &r->items[at])) {
                strbuf_printf(buf, "  %.*s\n", STR_ARG(r->items[at].text));
            }
        }
    }
    return n_left_out;
}

/* Why there is no time to the target, or nothing by a further rule. */
static void remark_beside(struct remarks *r, size_t idx)
{
    const struct cell_result *cell = &r->result->cells[idx];
    const struct extras *beside = &cell->step->beside;
    if (cell->target.why.len && beside->target.series.ptr) {
        add_remark(r, idx, arena_printf(&r->arena, "target: %.*s", STR_ARG(cell->target.why)));
    }
    if (cell->n_repeats && !beside->n_also && beside->why_not.ptr) {
        add_remark(r, idx, arena_printf(&r->arena, "no accuracy: %.*s", STR_ARG(beside->why_not)));
    }
    for (size_t at = 0; cell->also && at < beside->n_also; at++) {
        if (cell->also[at].why.len) {
            add_remark(r, idx,
                       arena_printf(&r->arena, "%.*s: %.*s", STR_ARG(beside->also[at]),
                                    STR_ARG(cell->also[at].why)));
        }
    }
}

/* What the run does not show of its conditions, for who keeps it. */
static void remark_names(struct remarks *said, size_t idx, const char *what,
                         const struct str *names, size_t n)
{
    const char *text = what;
    for (size_t at = 0; at < n; at++) {
        text = arena_printf(&said->arena, "%s%s%.*s", text, at ? ", " : ": ", STR_ARG(names[at]));
    }
    if (n) {
        add_remark(said, idx, text);
    }
}

static void print_notes(struct page *page, const struct frozen *frozen,
                        const struct run_result *result, bool wants_all)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(page->out->cap_bytes);
    CLEANUP(remarks) struct remarks said = {.result = result};
    CLEANUP(remarks) struct remarks differs = {.result = result};
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        if (cell->why.len && !is_bad(cell)) {
            add_remark(&said, idx, arena_printf(&said.arena, "%.*s", STR_ARG(cell->why)));
        }
        remark_beside(&said, idx);
        for (size_t at = 0; at < cell->n_repeats; at++) {
            const struct repeat_result *repeat = &cell->repeats[at];
            for (size_t taint = 0; taint < repeat->n_taints; taint++) {
                add_remark(&said, idx,
                           arena_printf(&said.arena, "repeat %lld is tainted: %.*s",
                                        (long long)repeat->repeat, STR_ARG(repeat->taints[taint])));
            }
        }
        if (page->form == PAGE_HTML && cell->n_differs) {
            remark_names(&said, idx, "not stated by the report", cell->not_stated,
                         cell->n_not_stated);
            remark_names(&said, idx, "by the nodes' own word alone", cell->by_node,
                         cell->n_by_node);
        }
        for (size_t at = 0; at < cell->n_differs; at++) {
            const struct run_difference *d = &cell->differs[at];
            add_remark(&differs, idx,
                       arena_printf(
                           &differs.arena, "%.*s: %.*s here, %.*s published", STR_ARG(d->name),
                           STR_ARG(d->run.ptr ? d->run : STR_LIT("none")), STR_ARG(d->published)));
        }
    }
    print_remarks(&text, &said, wants_all);
    size_t n_left_out = print_differences(&text, &differs, wants_all);
    if (n_left_out) {
        strbuf_printf(&text, "%zu more difference%s of some of the cases%s%.*s%s\n", n_left_out,
                      n_left_out == 1 ? "" : "s", frozen->run_id.ptr ? ": reperf report " : "",
                      STR_ARG(frozen->run_id.ptr ? frozen->run_id : STR_LIT("")),
                      frozen->run_id.ptr ? " -v" : "");
    }
    page_lines(page, strbuf_str(&text));
}

/* ---- the cases ---- */

/* "17 of 18 ran; 1 failed: ID"; then why, once for each reason. */
static void print_conclusion(struct page *page, const struct run_result *result, bool wants_all)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(page->out->cap_bytes);
    CLEANUP(remarks) struct remarks failures = {.result = result};
    size_t n_of[RUN_NOT_RUN + 1] = {0};
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        n_of[cell->verdict]++;
        if (is_bad(cell)) {
            add_remark(&failures, idx,
                       arena_printf(&failures.arena, "%s%s%.*s",
                                    cell->cause ? err_code_name(cell->cause) : "",
                                    cell->cause ? ": " : "", STR_ARG(cell->why)));
        }
    }
    strbuf_printf(&text, "%zu of %zu ran", result->n_cells - n_of[RUN_FAILED] - n_of[RUN_NOT_RUN],
                  result->n_cells);
    for (int verdict = RUN_FAILED; verdict <= RUN_NOT_RUN; verdict++) {
        struct remark of = {.is_of = arena_array(&failures.arena, bool, result->n_cells + 1)};
        for (size_t idx = 0; idx < result->n_cells; idx++) {
            of.is_of[idx] = (int)result->cells[idx].verdict == verdict;
        }
        if (n_of[verdict]) {
            strbuf_printf(&text, "; %zu %s: ", n_of[verdict],
                          verdict == RUN_FAILED ? "failed" : "could not run");
            print_cases(&text, &failures, &of, wants_all);
        }
    }
    strbuf_add_char(&text, '\n');
    print_remarks(&text, &failures, wants_all);
    strbuf_add_char(&text, '\n');
    page_lines(page, strbuf_str(&text));
}

static struct str number(struct table *table, double value)
{
    return table_text_if(table, isfinite(value), "%.6g", value);
}

/* A line a case; those without a number first. On a page of what was
   published also what its log gives, and the rule. */
static void print_cells(struct page *page, const struct run_result *result,
                        const struct report_audit *audit)
{
    CLEANUP(table) struct table table = table_of("case|>n|>value|>95 %|unit|>published|verdict");
    bool is_page = audit && page->form == PAGE_HTML;
    bool has_target = false;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        has_target = has_target || result->cells[idx].step->beside.target.series.ptr;
    }
    if (has_target) {
        table_add_column(&table, STR_LIT("s to target"), true);
    }
    if (is_page) {
        table_add_column(&table, STR_LIT("difference"), true);
        table_add_column(&table, STR_LIT("audited"), true);
        table_add_column(&table, STR_LIT("rule"), false);
    }
    for (size_t at = 0; at < 2 * result->n_cells; at++) {
        const struct cell_result *cell = &result->cells[at % result->n_cells];
        const struct cell_audit *audited = columns_audited(audit, cell->published);
        if (is_bad(cell) != (at < result->n_cells)) {
            continue;
        }
        double half = stats_half95(cell->summary.std, cell->summary.n) / cell->summary.mean;
        TABLE_ADD(&table, cell->of_case->id, table_text(&table, "%zu", cell->summary.n),
                  number(&table, cell->value),
                  table_text_if(&table, isfinite(half), "+- %.3g %%", 100 * half),
                  table_or_dash(cell->unit),
                  cell->published ? cell->published->printed : STR_LIT("-"),
                  str_of(RUN_VERDICT_NAMES[cell->verdict]));
        if (has_target) {
            table_add(&table,
                      number(&table, cell->target.step ? cell->target.elapsed_s : (double)NAN));
        }
        if (is_page) {
            TABLE_ADD(
                &table,
                table_text_if(&table, isfinite(cell->rel_diff), "%+.2f %%", 100 * cell->rel_diff),
                audited ? table_text(&table, "%.*s, %s",
                                     STR_ARG(cell_number_words(&table.arena, audited)),
                                     cell_verdict_words(audited))
                        : STR_LIT("-"),
                cell->step->rule);
        }
    }
    page_table(page, STR_LIT("Cases, their numbers and verdicts"), &table);
}

/* A row for each rule that a recipe names in addition to its case's. */
static void print_also(struct page *page, const struct frozen *frozen,
                       const struct run_result *result)
{
    CLEANUP(table) struct table table = table_of("read beside it|rule|>value|unit");
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        for (size_t at = 0; cell->also && at < cell->step->beside.n_also; at++) {
            const struct also_result *also = &cell->also[at];
            TABLE_ADD(&table, cell->of_case->id, cell->step->beside.also[at],
                      number(&table, also->value), table_or_dash(also->unit));
        }
    }
    if (table.n_cells) {
        page_lines(page, STR_LIT("\n"));
        page_table(page, STR_LIT("Read beside them"), &table);
        page_line(page, 0, str_of(result_also_means(&frozen->plan)), STR_EMPTY);
    }
}

/* One line a row: each framework's value, and its ratio to the first that has one. Nothing where no value is. */
static void print_columns(struct page *page, const struct frozen *frozen,
                          const struct run_result *result, const struct report_audit *audit)
{
    CLEANUP(table) struct table table = table_of("side by side");
    CLEANUP(strbuf) struct strbuf notes = STRBUF(page->out->cap_bytes);
    struct columns columns;
    columns_of(&page->arena, frozen, result, audit, &columns);
    for (size_t idx = 0; idx < columns.n_frameworks; idx++) {
        table_add_column(&table, columns.frameworks[idx], true);
    }
    for (size_t idx = 0; idx < columns.n_rows; idx++) {
        const struct column_row *row = &columns.rows[idx];
        if (!row->reference.ptr) {
            continue;
        }
        table_addf(&table, "%.*s %.*s, %lld GPU%s", STR_ARG(row->model), STR_ARG(row->precision),
                   (long long)row->gpus, row->gpus == 1 ? "" : "s");
        for (size_t at = 0; at < columns.n_frameworks; at++) {
            table_add(&table, columns_cell_text(&page->arena, columns_find(row, at)));
        }
    }
    if (table.n_cells) {
        page_lines(page, STR_LIT("\n"));
        page_table(page, STR_LIT("Side by side"), &table);
        columns_notes(&notes, frozen, &columns);
        page_lines(page, strbuf_str(&notes));
    }
}

void run_out(struct page *page, const struct frozen *frozen, const struct run_result *result,
             const struct report_audit *audit, bool wants_all)
{
    print_conclusion(page, result, wants_all);
    print_cells(page, result, audit);
    print_also(page, frozen, result);
    print_columns(page, frozen, result, audit);
    print_notes(page, frozen, result, wants_all);
}

void run_out_text(const struct frozen *frozen, const struct run_result *result,
                  const struct report_audit *audit, bool wants_all, struct strbuf *out)
{
    struct page page = {.out = out};
    run_out(&page, frozen, result, audit, wants_all);
    page_end(&page);
}

void run_out_counts(const size_t n_of[], struct strbuf *out)
{
    const char *before = ": ";
    for (size_t idx = 0; idx < ARRAY_LEN(RUN_VERDICT_NAMES); idx++) {
        if (n_of[idx]) {
            strbuf_printf(out, "%s%zu %s", before, n_of[idx], RUN_VERDICT_NAMES[idx]);
            before = ", ";
        }
    }
}
