/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/history.h"

#include <math.h>

#include "base/table.h"
#include "judge/verdict.h"
#include "view/chart.h"
#include "view/page.h"
#include "view/run_text.h"

/* ---- the document ---- */

static const struct json_form RUN_ID = {.pattern = "^[0-9]{8}T[0-9]{6}\\.[0-9]{3}Z-[0-9a-f]{8}$"};
static const struct json_form TIME = {
    .pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{3})?Z$"};
static const struct json_form CASE_ID = {
    .pattern = "^[^/]+/[^/]+/[^/]+/n[0-9]+g[0-9]+/bs[0-9]+(/[^/]+)*$"};

#define CELL struct history_cell
static const struct json_field CELL_ROWS[] = {
    ROW_VIA("run", CELL, run, dir.id, JSON_REQUIRED, .form = &RUN_ID),
    ROW_VIA("time", CELL, run, time, JSON_REQUIRED, .form = &TIME),
    ROW_VIA("report", CELL, run, report, JSON_REQUIRED),
    {ROW_AT("profile", JSON_WORD, struct run_info, profile), .via = {1 + offsetof(CELL, run)},
     .item_size = sizeof(enum profile), .names = PROFILE_NAMES, .n_names = ARRAY_LEN(PROFILE_NAMES),
     .flags = JSON_REQUIRED},
    ROW_VIA("rehearsal", CELL, run, is_rehearsal, JSON_OMIT, .schema = "\"const\": true"),
    ROW_VIA("case", CELL, cell, case_id, JSON_REQUIRED, .form = &CASE_ID),
    ROW_VIA("value", CELL, cell, value, JSON_REQUIRED | JSON_NULLABLE),
    ROW_VIA("unit", CELL, cell, unit, JSON_REQUIRED | JSON_NULLABLE),
    ROW_VIA("verdict", CELL, cell, verdict, JSON_REQUIRED, .names = RUN_VERDICT_NAMES,
            .n_names = ARRAY_LEN(RUN_VERDICT_NAMES)),
};
static const struct json_field DAMAGED_ROWS[] = {
    ROW("run", struct run_info, dir.id, JSON_REQUIRED),
    ROW("time", struct run_info, time, JSON_REQUIRED),
    ROW("why", struct run_info, why, JSON_REQUIRED),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_LIST("cells", struct history, cells, n_cells, CELL_ROWS, JSON_REQUIRED),
    ROW_LIST("damaged", struct history, damaged, n_damaged, DAMAGED_ROWS, 0),
};
const struct json_document HISTORY_DOCUMENT = {
    JSON_DOCUMENT("history.json", "what `reperf history --json` prints", ROWS)};

/* ---- text ---- */

static void write_history(struct page *page, const struct history *history,
                          const struct history_text_opts *opts)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4096);
    CLEANUP(table)
    struct table table =
        table_of(opts->wants_folder ? "time|run|report|profile|case|>value|unit|verdict|lies in"
                                    : "time|run|report|profile|case|>value|unit|verdict");
    size_t n_of[ARRAY_LEN(RUN_VERDICT_NAMES)] = {0};
    for (size_t idx = 0; idx < history->n_cells; idx++) {
        const struct history_cell *cell = &history->cells[idx];
        size_t verdict = 0;
        while (!str_eq_z(cell->cell->verdict, RUN_VERDICT_NAMES[verdict])) {
            verdict++;
        }
        n_of[verdict]++;
        if (opts->is_quiet && verdict != RUN_FAILED && verdict != RUN_NOT_RUN) {
            continue;
        }
        TABLE_ADD(&table, str_of(cell->run->time), cell->run->dir.id, cell->run->report,
                  str_of(plan_kind_name(cell->run->profile, cell->run->is_rehearsal)),
                  cell->cell->case_id,
                  table_text_if(&table, isfinite(cell->cell->value), "%.6g", cell->cell->value),
                  table_or_dash(cell->cell->unit), cell->cell->verdict);
        if (opts->wants_folder) {
            table_add(&table, str_of(cell->run->dir.folder));
        }
    }
    for (size_t idx = 0; idx < history->n_damaged; idx++) {
        const struct str none = STR_LIT("-");
        TABLE_ADD(&table, str_of(history->damaged[idx].time), history->damaged[idx].dir.id, none,
                  none, none, none, none, STR_LIT("damaged"));
        if (opts->wants_folder) {
            table_add(&table, str_of(history->damaged[idx].dir.folder));
        }
    }
    if (!opts->is_quiet || table.n_cells) {
        page_table(page, STR_LIT("Finished runs"), &table);
        page_lines(page, STR_LIT("\n"));
    }
    strbuf_printf(&text, "%zu run%s, %zu cell%s", history->n_runs, plural_s(history->n_runs),
                  history->n_cells, plural_s(history->n_cells));
    run_out_counts(n_of, &text);
    if (history->n_damaged) {
        strbuf_printf(&text, "; %zu damaged run%s", history->n_damaged,
                      plural_s(history->n_damaged));
    }
    page_line(page, 0, strbuf_str(&text), STR_EMPTY);
}

void history_text(const struct history *history, const struct history_text_opts *opts,
                  struct strbuf *out)
{
    struct page page = {.out = out};
    write_history(&page, history, opts);
    page_end(&page);
}

/* ---- the page ---- */

/* Runs of one case that may stand in one curve. */
static bool is_alike(const struct history_cell *a, const struct history_cell *b)
{
    return str_eq(a->cell->case_id, b->cell->case_id) && str_eq(a->run->report, b->run->report) &&
           str_eq(a->cell->unit, b->cell->unit) && a->run->profile == b->run->profile &&
           a->run->is_rehearsal == b->run->is_rehearsal;
}

static bool is_first(const struct history_cell *points, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (is_alike(&points[before], &points[idx])) {
            return false;
        }
    }
    return true;
}

static void add_chart(struct page *page, const struct history_cell *points, size_t n, size_t first)
{
    double *values = arena_array(&page->arena, double, n);
    double ends[2]; /* of what is drawn, which is a little more than what was measured */
    double low = INFINITY;
    double high = -INFINITY;
    struct spark spark = {.values = values, .level = (double)NAN};
    spark.title = text_of(page, "%.*s over time", STR_ARG(points[first].cell->case_id));
    for (size_t idx = first; idx < n; idx++) {
        if (is_alike(&points[first], &points[idx]) && isfinite(points[idx].cell->value)) {
            values[spark.n++] = points[idx].cell->value;
            low = fmin(low, points[idx].cell->value);
            high = fmax(high, points[idx].cell->value);
        }
    }
    if (spark.n < 2) {
        return; /* one number is no curve: the table has it */
    }
    HTML(page->out,
         "<figure class=\"history\"><figcaption><b>{}</b> <span class=\"soft\">{}, "
         "{}</span></figcaption>",
         points[first].cell->case_id, points[first].run->report,
         str_of(plan_kind_name(points[first].run->profile, points[first].run->is_rehearsal)));
    chart_spark(page->out, &spark, &ends[0], &ends[1]);
    HTML(page->out, "<figcaption>{} runs in order, between {} and {} {}</figcaption></figure>\n",
         text_of(page, "%zu", spark.n), text_of(page, "%.4g", low), text_of(page, "%.4g", high),
         points[first].cell->unit);
}

void history_page(const struct history *history, struct strbuf *out)
{
    struct page page = {.form = PAGE_HTML, .out = out};
    page_begin(&page, STR_LIT("Runs over time"),
               STR_LIT("Numbers of finished runs on this machine, oldest first."));
    for (size_t idx = 0; idx < history->n_cells; idx++) {
        if (is_first(history->cells, idx)) {
            add_chart(&page, history->cells, history->n_cells, idx);
        }
    }
    write_history(&page, history, &(const struct history_text_opts){0});
    page_end(&page);
}
