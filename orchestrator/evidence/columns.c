/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/columns.h"

#include <math.h>

#include "judge/stats.h"

/* ---- rows ---- */

static size_t add_framework(struct columns *columns, struct str name)
{
    size_t idx = 0;
    while (idx < columns->n_frameworks && !str_eq(columns->frameworks[idx], name)) {
        idx++;
    }
    if (idx == columns->n_frameworks) {
        columns->frameworks[columns->n_frameworks++] = name;
    }
    return idx;
}

static bool is_same_text(struct str a, struct str b)
{
    return a.ptr && b.ptr ? str_eq(a, b) : !a.ptr && !b.ptr;
}

static bool fits(const struct column_row *row, const struct report_case *c, size_t column)
{
    const struct report_case *first = NULL;
    for (size_t idx = 0; !first; idx++) {
        first = row->cells[idx].cell ? row->cells[idx].cell->of_case : NULL;
    }
    return !row->cells[column].cell && str_eq(row->model, c->model) &&
           str_eq(row->precision, c->precision) && row->nodes == c->nodes && row->gpus == c->gpus &&
           is_same_text(first->variant, c->variant);
}

static void add_cell(struct arena *arena, struct columns *columns, const struct cell_result *cell,
                     size_t n_frameworks_max)
{
    const struct report_case *c = cell->of_case;
    size_t column = add_framework(columns, c->framework);
    size_t idx = 0;
    while (idx < columns->n_rows && !fits(&columns->rows[idx], c, column)) {
        idx++;
    }
    struct column_row *row = &columns->rows[idx];
    if (idx == columns->n_rows) {
        *row =
            (struct column_row){.model = c->model,
                                .precision = c->precision,
                                .nodes = c->nodes,
                                .gpus = c->gpus,
                                .cells = arena_array(arena, struct column_cell, n_frameworks_max)};
        columns->n_rows++;
    }
    row->cells[column].cell = cell;
}

/* A single framework has nothing to be compared with. */
static void drop_single(struct columns *columns)
{
    size_t n_kept = 0;
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        size_t n = 0;
        for (size_t column = 0; column < columns->n_frameworks; column++) {
            n += columns->rows[idx].cells[column].cell != NULL;
        }
        if (n > 1) {
            columns->rows[n_kept++] = columns->rows[idx];
        }
    }
    columns->n_rows = n_kept;
}

/* ---- what differs ---- */

static struct str condition_of(const struct cell_result *cell, const char *name)
{
    const struct plan_step *step = cell->step;
    for (size_t idx = 0; idx < step->n_conditions; idx++) {
        if (str_eq_z(step->conditions[idx].name, name)) {
            return step->conditions[idx].value;
        }
    }
    return STR_EMPTY;
}

static bool is_same_window(const struct rule *a, const struct rule *b)
{
    const struct window *x = &a->window;
    const struct window *y = &b->window;
    bool has_same_steps =
        x->has_steps == y->has_steps &&
        (!x->has_steps || (x->step_from == y->step_from && x->step_to == y->step_to));
    return has_same_steps && x->skips_warmup == y->skips_warmup && x->skip == y->skip &&
           x->drop_last == y->drop_last && x->last == y->last && a->trim_count == b->trim_count &&
           a->trim_share == b->trim_share;
}

static void add_difference(struct column_cell *at, const char *name)
{
    ASSERT(at->n_differs < COLUMN_NAMES_MAX);
    at->differs[at->n_differs++] = name;
}

/* A condition that one of them does not state is not known to differ. */
static void find_differences(const struct cell_result *reference, struct column_cell *at)
{
    static const char *const NAMES[] = {"batch_per_gpu", "image_size", "sequence_length",
                                        "dataset",       "iterations", "precision"};
    const struct rule *ours = at->cell->step->bound.rule;
    const struct rule *theirs = reference->step->bound.rule;
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        struct str a = condition_of(reference, NAMES[idx]);
        struct str b = condition_of(at->cell, NAMES[idx]);
        if (a.ptr && b.ptr && !str_eq(a, b)) {
            add_difference(at, NAMES[idx]);
        }
    }
    if (ours->statistic != theirs->statistic) {
        add_difference(at, "statistic");
    }
    if (!is_same_window(ours, theirs)) {
        add_difference(at, "window");
    }
}

/* ---- ratios ---- */

/* Half the 95 % interval of the mean of its repeats, over the mean. */
static double relative_ci95(struct arena *arena, const struct cell_result *cell)
{
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (cell->repeats[idx].counts) {
            values[n++] = cell->repeats[idx].value;
        }
    }
    return n ? stats_ci95(values, n) / stats_mean(values, n) : (double)NAN;
}

static void set_ratio(struct arena *arena, const struct frozen *frozen,
                      const struct cell_result *reference, struct column_cell *at)
{
    const struct cell_result *cell = at->cell;
    struct str ours = condition_of(cell, "parameters");
    struct str theirs = condition_of(reference, "parameters");
    at->ratio = at->low = at->high = (double)NAN;
    if (frozen->plan.is_rehearsal) {
        at->why = "a rehearsal";
    } else if (!isfinite(cell->value)) {
        at->why = "it has no value";
    } else if (!unit_is(frozen->vocabulary, cell->unit, "rate") ||
               !unit_is(frozen->vocabulary, reference->unit, "rate")) {
        at->why = "not items a second";
    } else if (ours.ptr && theirs.ptr && !str_eq(ours, theirs)) {
        at->why = "another network";
    } else {
        double error = hypot(relative_ci95(arena, cell), relative_ci95(arena, reference));
        at->ratio = cell->value / reference->value;
        at->low = at->ratio * exp(-error);
        at->high = at->ratio * exp(error);
        find_differences(reference, at);
    }
}

static void compare_row(struct arena *arena, const struct frozen *frozen,
                        const struct columns *columns, struct column_row *row)
{
    row->reference = 0;
    while (row->reference < columns->n_frameworks &&
           !(row->cells[row->reference].cell && isfinite(row->cells[row->reference].cell->value))) {
        row->reference++;
    }
    for (size_t idx = 0; idx < columns->n_frameworks; idx++) {
        struct column_cell *at = &row->cells[idx];
        at->ratio = at->low = at->high = (double)NAN;
        if (at->cell && row->reference < columns->n_frameworks && idx != row->reference) {
            set_ratio(arena, frozen, row->cells[row->reference].cell, at);
        }
    }
}

void columns_of(struct arena *arena, const struct frozen *frozen, const struct run_result *result,
                struct columns *ret_columns)
{
    struct columns columns = {.frameworks = arena_array(arena, struct str, result->n_cells + 1),
                              .rows = arena_array(arena, struct column_row, result->n_cells + 1)};
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        add_cell(arena, &columns, &result->cells[idx], result->n_cells);
    }
    drop_single(&columns);
    for (size_t idx = 0; idx < columns.n_rows; idx++) {
        compare_row(arena, frozen, &columns, &columns.rows[idx]);
    }
    *ret_columns = columns;
}

/* ---- as text ---- */

struct str columns_cell_text(struct arena *arena, const struct column_cell *at)
{
    if (!at->cell || !isfinite(at->cell->value)) {
        return STR_LIT("-");
    }
    if (!isfinite(at->ratio)) {
        return str_of(arena_printf(arena, "%.4g", at->cell->value));
    }
    if (!isfinite(at->low)) {
        return str_of(arena_printf(arena, "%.4g (%.2f)", at->cell->value, at->ratio));
    }
    return str_of(arena_printf(arena, "%.4g (%.2f, %.2f to %.2f)", at->cell->value, at->ratio,
                               at->low, at->high));
}

/* The note on one column of a row, "" for most. */
static struct str note_of(struct arena *arena, const struct column_cell *at)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, 1024);
    if (at->why) {
        strbuf_printf(&text, "no ratio: %s", at->why);
    }
    for (size_t idx = 0; idx < at->n_differs; idx++) {
        strbuf_printf(&text, "%s%s", idx ? ", " : "not like for like: ", at->differs[idx]);
    }
    return str_dup(arena, strbuf_str(&text));
}

/* A note shared by all its rows is one line. */
static void add_notes(struct arena *arena, struct strbuf *out, const struct columns *columns,
                      size_t column)
{
    struct str last = STR_LIT("");
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *row = &columns->rows[idx];
        struct str note =
            row->cells[column].cell ? note_of(arena, &row->cells[column]) : STR_LIT("");
        if (note.len && !str_eq(note, last)) {
            strbuf_printf(out, "%.*s, from %.*s %.*s on %lld on: %.*s\n",
                          STR_ARG(columns->frameworks[column]), STR_ARG(row->model),
                          STR_ARG(row->precision), (long long)row->gpus, STR_ARG(note));
            last = note;
        }
    }
}

const char *columns_order(const struct frozen *frozen)
{
    return frozen->plan.takes_turns ? "the frameworks took turns on the same nodes"
                                    : "the frameworks ran whenever nodes were free";
}

void columns_notes(struct strbuf *out, const struct frozen *frozen, const struct columns *columns)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    strbuf_printf(
        out,
        "in brackets: ratio to the row's first that has a value, with the 95 %% interval of "
        "their repeats; %s\n",
        columns_order(frozen));
    for (size_t column = 0; column < columns->n_frameworks; column++) {
        add_notes(&arena, out, columns, column);
    }
}

/* ---- as JSON ---- */

static void encode_cell(struct json_out *out, struct str framework, const struct column_cell *at)
{
    jw_object(out, NULL);
    jw_str(out, "framework", framework);
    jw_str(out, "case", at->cell->of_case->id);
    jw_f64(out, "value", at->cell->value);
    jw_f64(out, "ratio", at->ratio);
    jw_f64(out, "low", at->low);
    jw_f64(out, "high", at->high);
    jw_z(out, "why", at->why);
    jw_array(out, "differs");
    for (size_t idx = 0; idx < at->n_differs; idx++) {
        jw_z(out, NULL, at->differs[idx]);
    }
    jw_end_array(out);
    jw_end_object(out);
}

void columns_encode(struct json_out *out, const struct columns *columns)
{
    jw_array(out, "rows");
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *row = &columns->rows[idx];
        jw_object(out, NULL);
        jw_str(out, "model", row->model);
        jw_str(out, "precision", row->precision);
        jw_i64(out, "nodes", row->nodes);
        jw_i64(out, "gpus", row->gpus);
        jw_str(out, "reference",
               row->reference < columns->n_frameworks ? columns->frameworks[row->reference]
                                                      : STR_EMPTY);
        jw_array(out, "columns");
        for (size_t column = 0; column < columns->n_frameworks; column++) {
            if (row->cells[column].cell) {
                encode_cell(out, columns->frameworks[column], &row->cells[column]);
            }
        }
        jw_end_array(out);
        jw_end_object(out);
    }
    jw_end_array(out);
}
