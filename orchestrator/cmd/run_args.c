/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#include <math.h>

#include "base/log.h"
#include "base/table.h"
#include "evidence/columns.h"
#include "load/load_health.h"
#include "run/dry_run.h"
#include "view/plan_out.h"
#include "view/run_health.h"

#define OUTPUT_MAX (256u << 20)

int run_args_opts(const struct cmd_ctx *ctx, const struct run_args *args, const char *report,
                  struct run_opts *ret_opts, struct err *err)
{
    struct run_opts opts = {.root = ctx->root,
                            .state = ctx->state,
                            .self = ctx->self,
                            .report = report,
                            .run_id = args->run_id,
                            .key_path = args->key,
                            .store = ctx->store,
                            .data = args->data,
                            .nodes = args->nodes,
                            .limits = args->limits,
                            .images = args->images.items,
                            .n_images = args->images.n,
                            .overrides = args->overrides.items,
                            .n_overrides = args->overrides.n,
                            .is_offline = args->net.is_offline,
                            .clock = ctx->clock};
    opts.plan = (struct planner_opts){.is_rehearsal = args->is_rehearsal,
                                      .repeats = args->repeats,
                                      .is_each_node = args->is_each_node,
                                      .takes_turns = args->takes_turns,
                                      .deadline_s = args->deadline_s,
                                      .globs = args->cases.items,
                                      .n_globs = args->cases.n};
    if (args->profile && !profile_of_name(str_of(args->profile), &opts.plan.profile)) {
        return err_set(err, ERR_USAGE, "--profile %.60s: expected full or smoke", args->profile);
    }
    if (args->steps) {
        const struct report_case logged = {.logged_steps = 1};
        opts.plan.asked_steps = str_of(args->steps);
        if (opts.plan.profile != PROFILE_FULL ||
            plan_asked_steps(opts.plan.asked_steps, &logged) == 0) {
            return err_set(err, ERR_USAGE,
                           "--steps %.60s: expected as-logged or a number, with --profile full",
                           args->steps);
        }
    }
    if (args->is_rehearsal && opts.plan.profile != PROFILE_FULL) {
        return err_set(err, ERR_USAGE, "--rehearse: is of the full profile, not of --profile %s",
                       args->profile);
    }
    if (args->is_each_node && !args->nodes) {
        return err_set(err, ERR_USAGE, "--each-node: of which nodes? give --nodes");
    }
    if (args->cases.n > PLAN_GLOBS_MAX) {
        return err_set(err, ERR_USAGE, "--case: more than %d", PLAN_GLOBS_MAX);
    }
    *ret_opts = opts;
    return 0;
}

/* ---- plan ---- */

/* Nothing to run is not a success: the status is the first case's cause. */
static int plan_status(const struct plan *plan, struct err *err)
{
    return plan_runnable(plan) ? 0
                               : err_set(err, plan->steps[0].cause,
                                         "no case can run yet; the plan says what each needs");
}

int run_print_plan(const struct plan *plan, const struct run_args *args, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf;
    strbuf_init(&buf, OUTPUT_MAX);
    if (args->want_json) {
        plan_encode(plan, &buf);
    } else {
        plan_out_text(plan, args->is_verbose, &buf);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : plan_status(plan, err);
}

/* ---- dry run ---- */

struct dry_document {
    const struct plan *plan;
    const struct dry_command *commands;
    size_t n_commands;
};
static const struct json_field COMMAND_ROWS[] = {
    ROW("case", struct dry_command, case_id, JSON_REQUIRED),
    ROW("node", struct dry_command, node, JSON_REQUIRED),
    ROW("shell", struct dry_command, shell, JSON_REQUIRED),
    ROW("argv", struct dry_command, argv, JSON_REQUIRED, .min = 1),
    ROW("env", struct dry_command, env, JSON_REQUIRED),
    ROW("cleanup", struct dry_command, cleanup, JSON_REQUIRED),
};
static const struct json_field DRY_ROWS[] = {
    ROW_THERE(struct dry_document, plan, PLAN_ROWS),
    ROW_LIST("commands", struct dry_document, commands, n_commands, COMMAND_ROWS, 0,
             .about = "run --dry-run alone: of the first repeat of each case that can be run"),
};
const struct json_document PLAN_DOCUMENT = {
    JSON_DOCUMENT("plan.json", "reperf plan --json, manifest/plan.json of a run", DRY_ROWS)};

static void encode_dry(struct strbuf *buf, const struct plan *plan,
                       const struct dry_commands *commands)
{
    const struct dry_document document = {plan, commands->items, commands->n};
    json_encode_document(buf, DRY_ROWS, ARRAY_LEN(DRY_ROWS), &document);
}

static void print_dry(struct strbuf *buf, const struct plan *plan,
                      const struct dry_commands *commands)
{
    plan_out_text(plan, false, buf);
    strbuf_add_z(buf, commands->n
                          ? "\n# Commands of each case's first repeat, once its image, code "
                            "and data are on the nodes; a run takes nodes that are free,\n"
                            "# and puts its own id for DRY-RUN and another port a repeat.\n"
                          : "");
    for (size_t idx = 0; idx < commands->n; idx++) {
        const struct dry_command *command = &commands->items[idx];
        strbuf_printf(buf, "\n# %.*s on %.*s\n%s\n", STR_ARG(command->case_id),
                      STR_ARG(command->node), command->shell);
    }
}

int run_print_dry(const struct run_opts *opts, const struct run_prepared *prepared, bool want_json,
                  struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf buf;
    struct dry_commands commands;
    strbuf_init(&buf, OUTPUT_MAX);
    if (dry_run(&arena, opts, prepared, &commands, err) < 0) {
        return -1;
    }
    (want_json ? encode_dry : print_dry)(&buf, &prepared->plan, &commands);
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : plan_status(&prepared->plan, err);
}

/* ---- the end of a run ---- */

static void add_number(struct table *table, double value)
{
    if (isfinite(value)) {
        table_addf(table, "%.6g", value);
    } else {
        table_add(table, STR_LIT("-"));
    }
}

static void print_differences(struct strbuf *buf, const struct cell_result *cell)
{
    for (size_t idx = 0; idx < cell->n_differs; idx++) {
        const struct run_difference *d = &cell->differs[idx];
        strbuf_printf(buf, "  differs: %.*s: %.*s here, %.*s published\n", STR_ARG(d->name),
                      STR_ARG(d->run.ptr ? d->run : STR_LIT("none")), STR_ARG(d->published));
    }
}

static void print_taints(struct strbuf *buf, const struct cell_result *cell)
{
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const struct repeat_result *repeat = &cell->repeats[idx];
        for (size_t at = 0; at < repeat->n_taints; at++) {
            strbuf_printf(buf, "%.*s repeat %lld is tainted: %.*s\n", STR_ARG(cell->of_case->id),
                          (long long)repeat->repeat, STR_ARG(repeat->taints[at]));
        }
    }
}

/* One line a row: each framework's value, and its ratio to the first that has one. */
static void print_columns(struct strbuf *buf, const struct frozen *frozen,
                          const struct columns *columns)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(table) struct table table;
    struct table_column *heads =
        arena_array(&arena, struct table_column, columns->n_frameworks + 1);
    heads[0] = (struct table_column){"side by side", false};
    for (size_t idx = 0; idx < columns->n_frameworks; idx++) {
        heads[idx + 1] = (struct table_column){str_z(&arena, columns->frameworks[idx]), true};
    }
    table_init(&table, heads, columns->n_frameworks + 1);
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *row = &columns->rows[idx];
        table_addf(&table, "%.*s %.*s, %lld GPU%s", STR_ARG(row->model), STR_ARG(row->precision),
                   (long long)row->gpus, row->gpus == 1 ? "" : "s");
        for (size_t column = 0; column < columns->n_frameworks; column++) {
            table_add(&table, columns_cell_text(&arena, &row->cells[column]));
        }
    }
    table_render(&table, buf);
    columns_notes(buf, frozen, columns);
}

/* A row for each rule that a recipe names in addition to its case's. */
static void print_also(struct strbuf *buf, const struct frozen *frozen,
                       const struct run_result *result)
{
    static const struct table_column COLUMNS[] = {
        {"read beside it", false}, {"rule", false}, {"value", true}, {"unit", false}};
    size_t n = 0;
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        for (size_t at = 0; cell->also && at < cell->step->beside.n_also; at++, n++) {
            const struct also_result *also = &cell->also[at];
            table_add(&table, cell->of_case->id);
            table_add(&table, cell->step->beside.also[at]);
            add_number(&table, also->value);
            table_add(&table, also->unit.len ? also->unit : STR_LIT("-"));
        }
    }
    if (n) {
        strbuf_add_char(buf, '\n');
        table_render(&table, buf);
        strbuf_printf(buf, "%s\n\n", result_also_means(&frozen->plan));
    }
}

/* Why there is no time to the target, or nothing by a further rule. */
static void print_beside(struct strbuf *buf, const struct cell_result *cell)
{
    const struct beside *beside = &cell->step->beside;
    if (cell->target.why.len && beside->target.series.ptr) {
        strbuf_printf(buf, "%.*s: target: %.*s\n", STR_ARG(cell->of_case->id),
                      STR_ARG(cell->target.why));
    }
    if (cell->n_repeats && !beside->n_also && beside->why_not.ptr) {
        strbuf_printf(buf, "%.*s: no accuracy: %.*s\n", STR_ARG(cell->of_case->id),
                      STR_ARG(beside->why_not));
    }
    for (size_t idx = 0; cell->also && idx < beside->n_also; idx++) {
        if (cell->also[idx].why.len) {
            strbuf_printf(buf, "%.*s: %.*s: %.*s\n", STR_ARG(cell->of_case->id),
                          STR_ARG(beside->also[idx]), STR_ARG(cell->also[idx].why));
        }
    }
}

void run_text_cells(struct strbuf *buf, const struct frozen *frozen,
                    const struct run_result *result)
{
    static const struct table_column COLUMNS[] = {
        {"case", false}, {"n", true},         {"value", true},    {"std", true},
        {"unit", false}, {"published", true}, {"verdict", false}, {"s to target", true},
    };
    bool has_target = false;
    CLEANUP(table) struct table table;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct columns columns;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        has_target = has_target || result->cells[idx].step->beside.target.series.ptr;
    }
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS) - !has_target);
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        table_add(&table, cell->of_case->id);
        table_addf(&table, "%zu", cell->summary.n);
        add_number(&table, cell->value);
        add_number(&table, cell->summary.std);
        table_add(&table, cell->unit.ptr ? cell->unit : STR_LIT("-"));
        table_add(&table, cell->published ? cell->published->printed : STR_LIT("-"));
        table_add(&table, str_of(run_verdict_name(cell->verdict)));
        if (has_target) {
            add_number(&table, cell->target.step ? cell->target.elapsed_s : (double)NAN);
        }
    }
    table_render(&table, buf);
    print_also(buf, frozen, result);
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        if (cell->why.len) {
            strbuf_printf(buf, "%.*s: %s%s%.*s\n", STR_ARG(cell->of_case->id),
                          cell->cause ? err_code_name(cell->cause) : "", cell->cause ? ": " : "",
                          STR_ARG(cell->why));
        }
        print_beside(buf, cell);
        print_taints(buf, cell);
        print_differences(buf, cell);
    }
    columns_of(&arena, frozen, result, &columns);
    if (columns.n_rows) {
        print_columns(buf, frozen, &columns);
    }
}

/* ---- the end of a run ---- */

/* NULL: not of --each-node. */
static int judge_nodes(struct arena *arena, const struct run_opts *opts, const struct rundir *dir,
                       const struct run_end *end, const struct health **ret_health, struct err *err)
{
    struct run_view view = {.frozen = end->frozen, .result = end->result};
    struct health *health = arena_new(arena, struct health);
    struct health_limits limits;
    *ret_health = NULL;
    if (!dir || !end->frozen.plan.is_each_node) {
        return 0;
    }
    view.folder = dir->evidence;
    if (load_health_limits(arena, opts->root, opts->limits, &limits, err) < 0 ||
        run_view_settings(arena, &view, err) < 0) {
        return -1;
    }
    run_health_of(arena, &view, &limits, health);
    *ret_health = health;
    return 0;
}

struct printed {              /* the end of a run */
    const struct rundir *dir; /* NULL: nothing could run */
    const struct run_end *end;
    const struct health *health; /* NULL: not of --each-node */
    int status;
};

static void print_text(struct strbuf *buf, const struct printed *of)
{
    const struct rundir *dir = of->dir;
    const struct run_end *end = of->end;
    run_text_cells(buf, &end->frozen, &end->result);
    if (of->health) {
        strbuf_add_char(buf, '\n');
        run_health_text(of->health, buf);
    }
    if (!dir) {
        strbuf_add_z(buf, "nothing could run: no run was started, nothing is sealed\n");
        return;
    }
    strbuf_printf(buf, "run     %.*s\narchive %s%s\n", STR_ARG(dir->id), dir->archive,
                  end->is_signed ? "" : " (not signed)");
}

static void print_json(struct strbuf *buf, struct arena *arena, const struct printed *of)
{
    const struct rundir *dir = of->dir;
    const struct run_end *end = of->end;
    struct json_out out;
    struct columns columns;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_z(&out, "run", dir ? dir->id.ptr : NULL);
    jw_str(&out, "report", end->frozen.plan.report);
    jw_z(&out, "profile", profile_name(end->frozen.plan.profile));
    if (end->frozen.plan.is_rehearsal) {
        jw_bool(&out, "rehearsal", true);
    }
    jw_z(&out, "folder", dir ? dir->folder : NULL);
    jw_z(&out, "archive", dir ? dir->archive : NULL);
    jw_i64(&out, "exit_status", of->status);
    jw_array(&out, "cells");
    for (size_t idx = 0; idx < end->result.n_cells; idx++) {
        result_encode_cell(&out, arena, &end->result.cells[idx]);
    }
    jw_end_array(&out);
    columns_of(arena, &end->frozen, &end->result, &columns);
    columns_encode(&out, &columns);
    if (of->health) {
        run_health_encode(of->health, "health", &out);
    }
    jw_end_object(&out);
}

static int print_end(struct arena *arena, const struct run_opts *opts, const struct rundir *dir,
                     const struct run_end *end, bool want_json, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf;
    struct printed of = {dir, end, NULL, end->result.exit_status};
    strbuf_init(&buf, OUTPUT_MAX);
    if (judge_nodes(arena, opts, dir, end, &of.health, err) < 0) {
        return -1;
    }
    if (of.health && of.status == 0) {
        of.status = run_health_status(of.health);
    }
    if (want_json) {
        print_json(&buf, arena, &of);
    } else {
        print_text(&buf, &of);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : of.status;
}

int run_nothing_and_print(const struct run_opts *opts, const struct run_prepared *prepared,
                          bool want_json, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct run_end end = {0};
    if (run_nothing(&arena, prepared, &end, err) < 0) {
        return -1;
    }
    return print_end(&arena, opts, NULL, &end, want_json, err);
}

int run_and_print(const struct run_opts *opts, const struct rundir *dir, bool want_json,
                  struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct run_end end;
    int status;
    log_line(LOG_INFO, "run %.*s in %s", STR_ARG(dir->id), dir->folder);
    if (run_execute(&arena, opts, dir, &end, err) < 0) {
        if (err->code == ERR_NODE || err->code == ERR_CONTAINER) {
            log_line(LOG_INFO,
                     "nothing is sealed: reperf resume %.*s runs what is open, reperf cancel gives "
                     "it up",
                     STR_ARG(dir->id));
        }
        return err_wrap(err, "run %.*s", STR_ARG(dir->id));
    }
    if (end.stopped_by) {
        log_line(LOG_ERROR,
                 end.is_cancelled ? "run %.*s was cancelled"
                                  : "run %.*s was interrupted; reperf resume %.*s continues it",
                 STR_ARG(dir->id), STR_ARG(dir->id));
        status = 128 + end.stopped_by;
    } else {
        status = print_end(&arena, opts, dir, &end, want_json, err);
    }
    frozen_release(&end.frozen);
    return status;
}
