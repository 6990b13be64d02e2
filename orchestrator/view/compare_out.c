/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs side by side, for people and programs. */
#include "base/base.h"

#include "view/compare.h"

#include <math.h>

#include "base/table.h"
#include "codec/json_document.h"
#include "codec/json_table.h"
#include "judge/stats.h"
#include "view/page.h"

#define OUTLIERS_MAX 65536
#define WHERE_BYTES  48 /* of a value shown in a table: digests and flag lists are cut */

static const char *const WEIGHT_NAMES[] = {"likely", "possible", "incidental"};

static const struct json_field CHANGE_ROWS[] = {
    ROW("name", struct change, name, 0),
    ROW_WORD("matters", struct change, weight, WEIGHT_NAMES, 0),
    ROW("a", struct change, a, 0),
    ROW("b", struct change, b, 0),
};
static struct str value_of(struct table *table, const struct cell_result *cell)
{
    return !cell                    ? STR_LIT("-")
           : !isfinite(cell->value) ? str_of(RUN_VERDICT_NAMES[cell->verdict])
                                    : table_text(table, "%.6g", cell->value);
}

/* Repeats that count and are outliers: "3 (7.1)"; nothing if there are none. */
static void add_outliers_of(const struct cell_result *cell, struct strbuf *out)
{
    for (size_t idx = 0; cell && idx < cell->n_repeats; idx++) {
        if (compare_is_outlier(cell, idx)) {
            strbuf_printf(out, "%s%" PRId64 " (%.6g)", out->len ? ", " : "",
                          cell->repeats[idx].repeat, cell->repeats[idx].value);
        }
    }
}

static void add_row(struct table *table, const struct compare *c, const struct compare_row *row)
{
    bool is_known = isfinite(row->change);
    TABLE_ADD(table, row->case_id, value_of(table, row->a), value_of(table, row->b),
              table_text_if(table, is_known, "%+.2f %%", 100 * row->change));
    if (row->has_interval || !is_known) {
        TABLE_ADD(
            table,
            table_text_if(table, is_known, "%+.2f to %+.2f %%", 100 * row->low, 100 * row->high),
            !is_known             ? STR_EMPTY
            : row->exceeds_spread ? STR_LIT("more than the spread")
                                  : STR_LIT("within the spread"));
    } else { /* one repeat has no spread */
        TABLE_ADD(table,
                  c->a.log || c->b.log ? STR_LIT("too few steps") : STR_LIT("too few repeats"),
                  table_text(table, "%zu and %zu", row->a->summary.n, row->b->summary.n));
    }
    if (!c->a.log || !c->b.log) { /* else nothing was judged */
        TABLE_ADD(table, row->a ? str_of(RUN_VERDICT_NAMES[row->a->verdict]) : STR_LIT("-"),
                  row->b ? str_of(RUN_VERDICT_NAMES[row->b->verdict]) : STR_LIT("-"));
    }
}

/* ---- claims ---- */

/* The same two frameworks of the same row in another run; NULL: it has not both. */
static const struct column_cell *same_claim(const struct columns *columns,
                                            const struct column_row *row,
                                            const struct column_cell *at)
{
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *other = &columns->rows[idx];
        for (size_t cell = 0; cell < other->n_cells && str_eq(other->reference, row->reference);
             cell++) {
            if (str_eq(other->cells[cell].cell->of_case->id, at->cell->of_case->id)) {
                return &other->cells[cell];
            }
        }
    }
    return NULL;
}

/* Each claim of A, and what B says of it. */
static void fill_claims(struct arena *arena, const struct compare *c, struct table *claims)
{
    for (size_t idx = 0; idx < c->a.columns.n_rows; idx++) {
        const struct column_row *row = &c->a.columns.rows[idx];
        for (size_t at = 0; at < row->n_cells; at++) {
            const struct column_cell *cell = &row->cells[at];
            const struct column_cell *other = same_claim(&c->b.columns, row, cell);
            if (other && (cell->claim.published > 0 || other->claim.published > 0)) {
                TABLE_ADD(claims,
                          table_text(claims, "%.*s against %.*s", STR_ARG(cell->cell->of_case->id),
                                     STR_ARG(row->reference)),
                          columns_claim_text(arena, cell), columns_claim_text(arena, other));
            }
        }
    }
}

static void add_short(struct table *table, struct str value)
{
    if (!value.ptr) {
        table_add(table, STR_LIT("none"));
    } else if (value.len <= WHERE_BYTES) {
        table_add(table, value);
    } else {
        table_addf(table, "%.*s...", WHERE_BYTES - 3, value.ptr);
    }
}

static const char NO_CHANGE_OF_LOGS[] = "the logs state nothing that differs\n";
static const char NO_CHANGE[] = "no difference of machine, software or plan was recorded\n";

/* The last of the changes, which can hardly explain anything. */
static size_t n_hidden(const struct compare *c)
{
    size_t n = 0;
    while (!c->opts.is_verbose && n < c->changes.n &&
           c->changes.items[c->changes.n - 1 - n].weight == WEIGHT_INCIDENTAL) {
        n++;
    }
    return n;
}

/* What stands below the table of changes, or instead of it. */
static void add_rest(const struct compare *c, struct strbuf *out)
{
    size_t n = n_hidden(c);
    if (c->changes.n == 0) {
        strbuf_add_z(out, c->a.log && c->b.log ? NO_CHANGE_OF_LOGS : NO_CHANGE);
    } else if (n) {
        strbuf_printf(out, "%s%zu difference%s that can hardly matter: -v\n",
                      n < c->changes.n ? "and " : "", n, n == 1 ? "" : "s");
    }
    if (c->a.log || c->b.log) {
        strbuf_printf(out,
                      "interval of a log: from %d means of batches of its steps, since steps that "
                      "follow each other are not independent; it takes %d steps\n",
                      STATS_BATCHES, 2 * STATS_BATCHES);
    }
}

static void fill_changes(const struct compare *c, struct table *changes)
{
    for (size_t idx = 0; idx < c->changes.n - n_hidden(c); idx++) {
        const struct change *change = &c->changes.items[idx];
        TABLE_ADD(changes, str_of(WEIGHT_NAMES[change->weight]), change->name);
        add_short(changes, change->a);
        add_short(changes, change->b);
    }
}

/* Lines of what stands out on each side: repeats, then nodes. */
static void add_outliers(const struct compare *c, struct strbuf *out)
{
    const struct compare_side *const sides[] = {&c->a, &c->b};
    for (size_t at = 0; at < ARRAY_LEN(sides); at++) {
        const struct run_result *result = &sides[at]->view.result;
        for (size_t idx = 0; idx < result->n_cells; idx++) {
            CLEANUP(strbuf) struct strbuf text = STRBUF(OUTLIERS_MAX);
            add_outliers_of(&result->cells[idx], &text);
            if (text.len) {
                strbuf_printf(out, "%.*s: of %c these repeats stand out: %s\n",
                              STR_ARG(result->cells[idx].of_case->id), "AB"[at], text.ptr);
            }
        }
    }
    for (size_t at = 0; at < ARRAY_LEN(sides); at++) {
        const struct health *health = sides[at]->view.health;
        for (size_t idx = 0; health && idx < health->n_findings; idx++) {
            strbuf_printf(out, "%c: %.*s\n", "AB"[at], STR_ARG(health->findings[idx].says));
        }
    }
}

void compare_text(const struct compare *c, bool is_markdown, struct strbuf *out)
{
    struct page page = {.form = is_markdown ? PAGE_MARKDOWN : PAGE_TEXT, .out = out};
    CLEANUP(table)
    struct table cells = table_of(
        c->a.log && c->b.log ? "case|>A|>B|>B to A|>95 % interval|repeats"
                             : "case|>A|>B|>B to A|>95 % interval|repeats|verdict A|verdict B");
    CLEANUP(table) struct table claims = table_of("claim of the report|A|B");
    CLEANUP(table) struct table changes = table_of("matters|what differs|A|B");
    CLEANUP(strbuf) struct strbuf lines = STRBUF(out->cap_bytes);
    for (size_t idx = 0; idx < c->n_rows; idx++) {
        add_row(&cells, c, &c->rows[idx]);
    }
    fill_claims(&page.arena, c, &claims);
    fill_changes(c, &changes);
    page_lines(&page, text_of(&page, "A  %.*s\nB  %.*s\n\n", STR_ARG(c->a.view.frozen.run_id),
                              STR_ARG(c->b.view.frozen.run_id)));
    page_table(&page, STR_EMPTY, &cells);
    if (claims.n_cells) {
        page_lines(&page, STR_LIT("\n"));
        page_table(&page, STR_EMPTY, &claims);
    }
    add_outliers(c, &lines);
    strbuf_add_char(&lines, '\n');
    page_lines(&page, strbuf_str(&lines));
    if (changes.n_cells) {
        page_table(&page, STR_EMPTY, &changes);
    }
    strbuf_clear(&lines);
    add_rest(c, &lines);
    page_lines(&page, strbuf_str(&lines));
    page_end(&page);
}

/* Numbers of the repeats that count, NaN where none does. */
static void put_spread(struct json_out *out, const char *key, const void *of)
{
    const struct cell_result *cell = of;
    const double none = (double)NAN;
    jw_f64(out, key, cell->summary.n ? cell->summary.std : none);
    jw_f64(out, "min", cell->summary.n ? cell->summary.min : none);
    jw_f64(out, "max", cell->summary.n ? cell->summary.max : none);
    jw_array(out, "outliers");
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (compare_is_outlier(cell, idx)) {
            jw_i64(out, NULL, cell->repeats[idx].repeat);
        }
    }
    jw_end_array(out);
}

static void put_exceeds(struct json_out *out, const char *key, const void *of)
{
    const struct compare_row *row = of;
    jw_bool_if(out, key, isfinite(row->change), row->exceeds_spread);
}

/* clang-format off */
#define CELL struct cell_result
static const struct json_field SIDE_ROWS[] = {
    ROW("value", CELL, value, 0),
    ROW("unit", CELL, unit, 0),
    ROW_WORD("verdict", CELL, verdict, RUN_VERDICT_NAMES, 0),
    ROW("n", CELL, summary.n, 0),
    ROW_OUT("std", JSON_F64, put_spread, 0),
};
#define CROW struct compare_row
static const struct json_field CELL_ROWS[] = {
    ROW("case", CROW, case_id, 0),
    ROW_BEHIND("a", CROW, a, SIDE_ROWS, 0),
    ROW_BEHIND("b", CROW, b, SIDE_ROWS, 0),
    ROW("rel_diff", CROW, change, 0),
    ROW_OUT("exceeds_spread", JSON_BOOL, put_exceeds, 0),
    ROW("ci95_low", CROW, low, 0),
    ROW("ci95_high", CROW, high, 0),
    ROW_WORD("gate", CROW, gate, GATE_NAMES, JSON_OMIT),
};
static const struct json_field LOG_ROWS[] = {
    ROW("log", struct compare_log, path, 0),
    ROW("sha256", struct compare_log, sha256, 0),
    ROW("format", struct compare_log, format, 0),
    ROW("steps", struct compare_log, n_steps, 0),
};
#define VIEW struct run_view
static const struct json_field RUN_ROWS[] = {
    ROW("run_id", VIEW, frozen.run_id, 0),
    ROW("report", VIEW, frozen.plan.report, 0),
    ROW_WORD("profile", VIEW, frozen.plan.profile, PROFILE_NAMES, 0),
    ROW("rehearsal", VIEW, frozen.plan.is_rehearsal, JSON_OMIT),
};
static const struct json_field GATE_ROWS[] = {
    ROW("tolerance", struct compare, opts.tolerance, 0),
    ROW_WORD("outcome", struct compare, outcome, GATE_NAMES, 0),
};
static const struct json_field ROWS[] = {
    ROW_LIST("cells", struct compare, rows, n_rows, CELL_ROWS, 0),
    ROW_LIST("differences", struct compare, changes.items, changes.n, CHANGE_ROWS, 0),
};
/* clang-format on */

static void put_side(struct json_out *json, const char *key, const struct compare_side *side)
{
    jw_object(json, key);
    if (side->log) {
        json_encode(json, LOG_ROWS, ARRAY_LEN(LOG_ROWS), side->log);
    } else {
        json_encode(json, RUN_ROWS, ARRAY_LEN(RUN_ROWS), &side->view);
        json_encode(json, COLUMNS_ROWS, ARRAY_LEN(COLUMNS_ROWS), &side->columns);
    }
    jw_end_object(json);
}

void compare_json(const struct compare *c, struct strbuf *out)
{
    struct json_out json;
    jw_document(&json, out);
    put_side(&json, "a", &c->a);
    put_side(&json, "b", &c->b);
    if (c->opts.has_gate) {
        json_encode_object(&json, "gate", GATE_ROWS, ARRAY_LEN(GATE_ROWS), c);
    }
    run_health_encode(c->a.view.health, "health_a", &json);
    run_health_encode(c->b.view.health, "health_b", &json);
    json_encode(&json, ROWS, ARRAY_LEN(ROWS), c);
    jw_end_object(&json);
    strbuf_add_char(out, '\n');
}
