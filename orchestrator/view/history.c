/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/history.h"

#include <math.h>

#include "base/table.h"
#include "judge/verdict.h"
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

void history_text(const struct history *history, const struct history_text_opts *opts,
                  struct strbuf *out)
{
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
        struct str id = cell->run->dir.id;
        TABLE_ADD(
            &table, str_of(cell->run->time),
            cell->run->name ? table_text(&table, "%.*s (%s)", STR_ARG(id), cell->run->name) : id,
            cell->run->report, str_of(plan_kind_name(cell->run->profile, cell->run->is_rehearsal)),
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
        table_render(&table, out);
        strbuf_add_char(out, '\n');
    }
    strbuf_printf(out, "%zu run%s, %zu cell%s", history->n_runs, plural_s(history->n_runs),
                  history->n_cells, plural_s(history->n_cells));
    run_out_counts(n_of, out);
    if (history->n_damaged) {
        strbuf_printf(out, "; %zu damaged run%s", history->n_damaged, plural_s(history->n_damaged));
    }
    strbuf_add_char(out, '\n');
}
