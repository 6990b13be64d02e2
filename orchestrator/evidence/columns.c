/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/columns.h"

#include <math.h>

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

const struct column_cell *columns_find(const struct column_row *row, size_t framework)
{
    for (size_t idx = 0; idx < row->n_cells; idx++) {
        if (row->cells[idx].framework == framework) {
            return &row->cells[idx];
        }
    }
    return NULL;
}

static bool fits(const struct column_row *row, const struct report_case *c, size_t framework)
{
    return report_same_row(row->cells[0].cell->of_case, c) && !columns_find(row, framework);
}

static void add_cell(struct arena *arena, struct columns *columns, const struct cell_result *cell,
                     size_t n_frameworks_max)
{
    const struct report_case *c = cell->of_case;
    size_t framework = add_framework(columns, c->framework);
    size_t idx = 0;
    while (idx < columns->n_rows && !fits(&columns->rows[idx], c, framework)) {
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
    size_t at = row->n_cells++;
    for (; at > 0 && row->cells[at - 1].framework > framework; at--) {
        row->cells[at] = row->cells[at - 1];
    }
    row->cells[at] =
        (struct column_cell){.framework = framework, .name = c->framework, .cell = cell};
}

/* A single framework has nothing to be compared with. */
static void drop_single(struct columns *columns)
{
    size_t n_kept = 0;
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        if (columns->rows[idx].n_cells > 1) {
            columns->rows[n_kept++] = columns->rows[idx];
        }
    }
    columns->n_rows = n_kept;
}

/* ---- what differs ---- */

/* What the first log that counts says of it; of a condition that the plan cannot know. */
static struct str said_by_log(const struct cell_result *cell, const char *name)
{
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const struct repeat_result *repeat = &cell->repeats[idx];
        const struct fact *fact =
            repeat->counts ? STR_NAMED(repeat->facts, repeat->n_facts, name, str_of(name)) : NULL;
        if (fact) {
            return fact->value;
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
    static const char *const NAMES[] = {"batch_per_gpu", "image_size", "sequence_length", "dataset",
                                        "iterations",    "precision",  "nccl_transport"};
    const struct rule *ours = at->cell->step->bound.rule;
    const struct rule *theirs = reference->step->bound.rule;
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        bool is_transport = idx + 1 == ARRAY_LEN(NAMES);
        struct str a = is_transport ? said_by_log(reference, NAMES[idx])
                                    : result_planned(reference->step, NAMES[idx], STR_EMPTY);
        struct str b = is_transport ? said_by_log(at->cell, NAMES[idx])
                                    : result_planned(at->cell->step, NAMES[idx], STR_EMPTY);
        if (a.ptr && b.ptr && !str_eq(a, b)) {
            add_difference(at, NAMES[idx]);
        }
    }
    if (!ours || !theirs) { /* the engine made the number */
        return;
    }
    if (ours->statistic != theirs->statistic) {
        add_difference(at, "statistic");
    }
    if (!is_same_window(ours, theirs)) {
        add_difference(at, "window");
    }
}

/* ---- ratios ---- */

/* Each repeat is compared with the other's of the same turn, where both count. */
static struct ratio ratio_of(const struct cell_result *cell, const struct cell_result *reference)
{
    size_t n_max = cell->n_repeats < reference->n_repeats ? cell->n_repeats : reference->n_repeats;
    CLEANUP(free) double *values = xcalloc(2 * n_max + 1, sizeof(*values));
    double *others = values + n_max;
    size_t n = 0;
    for (size_t idx = 0; idx < n_max; idx++) {
        const struct repeat_result *ours = &cell->repeats[idx];
        const struct repeat_result *theirs = &reference->repeats[idx];
        if (ours->counts && theirs->counts && ours->value > 0 && theirs->value > 0) {
            values[n] = ours->value;
            others[n++] = theirs->value;
        }
    }
    return ratio_of_turns(values, others, n);
}

static const char *no_ratio(const struct frozen *frozen, const struct cell_result *reference,
                            const struct cell_result *cell)
{
    double times = claim_network_times(result_planned(reference->step, "parameters", STR_EMPTY),
                                       result_planned(cell->step, "parameters", STR_EMPTY));
    return frozen->plan.is_rehearsal ? "a rehearsal"
           : !isfinite(cell->value)  ? "it has no value"
           : !unit_is(frozen->vocabulary, cell->unit, "rate") ||
                   !unit_is(frozen->vocabulary, reference->unit, "rate")
               ? "not items a second"
           : times < 1 || times > 1    ? "another network"
           : !frozen->plan.takes_turns ? "they did not take turns on the same nodes"
                                       : NULL;
}

/* ---- claims ---- */

const struct cell_audit *columns_audited(const struct report_audit *audit, const struct cell *cell)
{
    for (size_t idx = 0; cell && audit && idx < audit->n_cells; idx++) {
        const struct cell_audit *audited = &audit->cells[idx];
        if (str_eq(audited->cell->id, cell->id) && str_eq(audited->cell->printed, cell->printed)) {
            return isfinite(audited->recomputed) ? audited : NULL;
        }
    }
    return NULL;
}

/* A column of our own has no number of its own in the report: it is held against another's. */
static const struct cell *own_number(const struct cell_result *cell)
{
    return cell->baseline == cell->of_case ? cell->published : NULL;
}

static void list_hardware(struct arena *arena, const struct cell_result *cell, struct claim *claim)
{
    static const char *const NAMES[] = {"gpu",          "gpu_memory_gb", "gpu_clock",
                                        "cpu",          "memory_gb",     "driver",
                                        "interconnect", "nic",           "device"};
    claim->hardware = arena_array(arena, struct str, cell->n_differs + 1);
    for (size_t idx = 0; idx < cell->n_differs; idx++) {
        const struct run_difference *d = &cell->differs[idx];
        for (size_t at = 0; at < ARRAY_LEN(NAMES); at++) {
            if (str_eq_z(d->name, NAMES[at])) {
                claim->hardware[claim->n_hardware++] = str_printf(
                    arena, "%.*s %.*s there, %.*s here", STR_ARG(d->name), STR_ARG(d->published),
                    STR_ARG(d->run.ptr ? d->run : STR_LIT("none")));
            }
        }
    }
}

static void judge_claim(struct arena *arena, const struct frozen *frozen,
                        const struct report_audit *audit, const struct cell_result *reference,
                        struct column_cell *at)
{
    struct claim *claim = &at->claim;
    const struct cell *ours = own_number(at->cell);
    const struct cell *theirs = own_number(reference);
    if (!ours || !theirs) {
        claim->why = "the report prints no number for both";
        return;
    }
    claim->published = ours->published / theirs->published;
    claim->why =
        frozen->plan.profile == PROFILE_SMOKE
            ? "a smoke run judges no claim"
            : claim_objection(arena, at->cell->of_case, reference->of_case,
                              columns_audited(audit, ours), columns_audited(audit, theirs));
    if (claim->why || (at->ratio.why && !isfinite(at->ratio.low) && at->ratio.n_pairs == 0)) {
        claim->why = claim->why ? claim->why : at->ratio.why;
        return;
    }
    claim->verdict = claim_judge(claim->published, &at->ratio, frozen_tolerance(frozen));
    if (claim->verdict == CLAIM_NONE) {
        claim->why =
            arena_printf(arena, "published as equal within %g %%", 100 * frozen_tolerance(frozen));
        return;
    }
    list_hardware(arena, at->cell, claim);
}

static void compare_row(struct arena *arena, const struct frozen *frozen,
                        const struct report_audit *audit, struct column_row *row)
{
    const struct cell_result *reference = NULL;
    for (size_t idx = 0; idx < row->n_cells; idx++) {
        struct column_cell *at = &row->cells[idx];
        at->ratio = (struct ratio){(double)NAN, (double)NAN, (double)NAN, 0, NULL};
        at->claim.published = (double)NAN;
        if (!reference && isfinite(at->cell->value)) {
            reference = at->cell;
            row->reference = at->name;
        }
    }
    for (size_t idx = 0; idx < row->n_cells; idx++) {
        struct column_cell *at = &row->cells[idx];
        if (reference && at->cell != reference) {
            at->ratio.why = no_ratio(frozen, reference, at->cell);
            if (!at->ratio.why) {
                at->ratio = ratio_of(at->cell, reference);
                find_differences(reference, at);
            }
            judge_claim(arena, frozen, audit, reference, at);
        }
    }
}

void columns_of(struct arena *arena, const struct frozen *frozen, const struct run_result *result,
                const struct report_audit *audit, struct columns *ret_columns)
{
    struct columns columns = {.frameworks = arena_array(arena, struct str, result->n_cells + 1),
                              .rows = arena_array(arena, struct column_row, result->n_cells + 1)};
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        add_cell(arena, &columns, &result->cells[idx], result->n_cells);
    }
    drop_single(&columns);
    for (size_t idx = 0; idx < columns.n_rows; idx++) {
        compare_row(arena, frozen, audit, &columns.rows[idx]);
    }
    *ret_columns = columns;
}

/* ---- as text ---- */

struct str columns_cell_text(struct arena *arena, const struct column_cell *at)
{
    if (!at || !isfinite(at->cell->value)) {
        return STR_LIT("-");
    }
    return isfinite(at->ratio.value)
               ? str_printf(arena, "%.4g (%.2f, %.2f to %.2f)", at->cell->value, at->ratio.value,
                            at->ratio.low, at->ratio.high)
               : str_printf(arena, "%.4g", at->cell->value);
}

struct str columns_claim_text(struct arena *arena, const struct column_cell *at)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4096);
    const struct claim *claim = &at->claim;
    if (claim->why) {
        return str_printf(arena, "no claim: %s", claim->why);
    }
    if (claim->verdict == CLAIM_NONE) {
        return STR_EMPTY;
    }
    strbuf_printf(&text, "%s: published %.2f, here ", CLAIM_VERDICT_NAMES[claim->verdict],
                  claim->published);
    if (isfinite(at->ratio.low)) {
        strbuf_printf(&text, "%.2f to %.2f", at->ratio.low, at->ratio.high);
    } else {
        strbuf_add_z(&text, at->ratio.why);
    }
    for (size_t idx = 0; idx < claim->n_hardware; idx++) {
        strbuf_printf(&text, "; %.*s", STR_ARG(claim->hardware[idx]));
    }
    return str_dup(arena, strbuf_str(&text));
}

/* The note on one column of a row, "" for most. */
static struct str note_of(struct arena *arena, const struct column_cell *at)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(8192);
    struct str claim = columns_claim_text(arena, at);
    if (at->ratio.why) {
        strbuf_printf(&text, "no ratio: %s", at->ratio.why);
    }
    for (size_t idx = 0; idx < at->n_differs; idx++) {
        strbuf_printf(&text, "%s%s",
                      idx        ? ", "
                      : text.len ? "; not like for like: "
                                 : "not like for like: ",
                      at->differs[idx]);
    }
    if (at->claim.verdict != CLAIM_NONE || at->claim.published > 0) {
        strbuf_printf(&text, "%s%s%.*s", text.len ? "; " : "",
                      at->claim.verdict != CLAIM_NONE ? "claim " : "", STR_ARG(claim));
    }
    return str_dup(arena, strbuf_str(&text));
}

/* A note shared by all its rows is one line. */
static void add_notes(struct arena *arena, struct strbuf *out, const struct columns *columns,
                      size_t framework)
{
    struct str last = STR_LIT("");
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *row = &columns->rows[idx];
        const struct column_cell *at = columns_find(row, framework);
        struct str note = at ? note_of(arena, at) : STR_LIT("");
        if (note.len && !str_eq(note, last)) {
            strbuf_printf(out, "%.*s, from %.*s %.*s on %lld on: %.*s\n", STR_ARG(at->name),
                          STR_ARG(row->model), STR_ARG(row->precision), (long long)row->gpus,
                          STR_ARG(note));
            last = note;
        }
    }
}

void columns_notes(struct strbuf *out, const struct frozen *frozen, const struct columns *columns)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    bool has_ratio = false;
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        for (size_t at = 0; at < columns->rows[idx].n_cells; at++) {
            has_ratio = has_ratio || isfinite(columns->rows[idx].cells[at].ratio.value);
        }
    }
    strbuf_printf(out, "%s%s\n",
                  has_ratio ? "in brackets: ratio to the row's first that has a value, with the "
                              "95 % interval of their repeats; "
                            : "",
                  frozen->plan.takes_turns ? "the frameworks took turns on the same nodes"
                                           : "the frameworks ran whenever nodes were free");
    for (size_t idx = 0; idx < columns->n_frameworks; idx++) {
        add_notes(&arena, out, columns, idx);
    }
}

/* ---- as JSON ---- */

#define REQUIRED_OR_NULL (JSON_REQUIRED | JSON_NULLABLE)

static void put_differs(struct json_out *out, const char *key, const void *of)
{
    const struct column_cell *at = of;
    jw_words(out, key, at->differs, at->n_differs);
}

static const struct json_field CLAIM_ROWS[] = {
    ROW_WORD("verdict", struct claim, verdict, CLAIM_VERDICT_NAMES, REQUIRED_OR_NULL),
    ROW("published", struct claim, published, REQUIRED_OR_NULL,
        .about = "ratio of the two printed numbers"),
    ROW("why", struct claim, why, REQUIRED_OR_NULL, .about = "where nothing is judged"),
    ROW_STRS("hardware", struct claim, hardware, n_hardware, JSON_REQUIRED),
};

static void put_claim(struct json_out *out, const char *key, const void *of)
{
    const struct column_cell *at = of;
    if (at->claim.verdict == CLAIM_NONE && !at->claim.why) { /* the reference itself */
        jw_null(out, key);
        return;
    }
    json_encode_object(out, key, CLAIM_ROWS, ARRAY_LEN(CLAIM_ROWS), &at->claim);
}

static const struct json_field CELL_ROWS[] = {
    ROW("framework", struct column_cell, name, JSON_REQUIRED),
    {ROW_AT("case", JSON_STR, struct report_case, id), .flags = JSON_REQUIRED,
     .via = {1 + offsetof(struct column_cell, cell), 1 + offsetof(struct cell_result, of_case)}},
    ROW_VIA("value", struct column_cell, cell, value, REQUIRED_OR_NULL),
    ROW("ratio", struct column_cell, ratio.value, REQUIRED_OR_NULL),
    ROW("low", struct column_cell, ratio.low, REQUIRED_OR_NULL),
    ROW("high", struct column_cell, ratio.high, REQUIRED_OR_NULL),
    ROW("why", struct column_cell, ratio.why, REQUIRED_OR_NULL),
    ROW_OUT("differs", JSON_ANY, put_differs, JSON_REQUIRED),
    ROW_OUT("claim", JSON_ANY, put_claim, JSON_REQUIRED),
};
static const struct json_field ROW_ROWS_OF[] = {
    ROW("model", struct column_row, model, JSON_REQUIRED),
    ROW("precision", struct column_row, precision, JSON_REQUIRED),
    ROW("nodes", struct column_row, nodes, JSON_REQUIRED, .min = 1),
    ROW("gpus", struct column_row, gpus, JSON_REQUIRED),
    ROW("reference", struct column_row, reference, REQUIRED_OR_NULL),
    ROW_LIST("columns", struct column_row, cells, n_cells, CELL_ROWS, JSON_REQUIRED, .min = 2),
};
const struct json_field COLUMNS_ROWS[1] = {
    ROW_LIST("rows", struct columns, rows, n_rows, ROW_ROWS_OF, JSON_REQUIRED),
};
