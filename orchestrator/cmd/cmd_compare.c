/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf compare`: two runs side by side: values, verdicts, and what differs between their machines and conditions, what is
   likeliest to matter first. */
#include "base/base.h"

#include <math.h>

#include "base/log.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "report/hostlist.h"
#include "view/run_view.h"

#define TEXT_BYTES_MAX (64u << 20)
#define WHERE_BYTES    48 /* of a value shown in a table: digests and flag lists are cut */

/* How likely a difference is to change a throughput; names by their beginnings, first match. */
enum weight { WEIGHT_LIKELY, WEIGHT_POSSIBLE, WEIGHT_INCIDENTAL };
static const char *const WEIGHT_NAMES[] = {"likely", "possible", "incidental"};

static const struct {
    const char *prefix;
    enum weight weight;
} WEIGHTS[] = {
    {"conditions.driver", WEIGHT_LIKELY},
    {"conditions.gpu", WEIGHT_LIKELY},
    {"machine.gpus", WEIGHT_LIKELY},
    {"conditions.cpu", WEIGHT_LIKELY},
    {"machine.cpus_online", WEIGHT_LIKELY},
    {"machine.cpu_governor", WEIGHT_LIKELY},
    {"machine.cpu_max_khz", WEIGHT_LIKELY},
    {"machine.cpu_flags", WEIGHT_LIKELY},
    {"software.programs.reperf-train", WEIGHT_LIKELY},
    {"image", WEIGHT_LIKELY},
    {"nodes", WEIGHT_LIKELY},
    {"runtime", WEIGHT_LIKELY},
    {"variables.", WEIGHT_LIKELY},
    {"plan.", WEIGHT_LIKELY},
    {"software.commit", WEIGHT_POSSIBLE},
    {"software.is_changed", WEIGHT_POSSIBLE},
    {"software.compiler", WEIGHT_POSSIBLE},
    {"software.libc", WEIGHT_POSSIBLE},
    {"machine.kernel", WEIGHT_POSSIBLE},
    {"machine.architecture", WEIGHT_LIKELY},
    {"machine.load_before", WEIGHT_POSSIBLE},
    {"machine.memory", WEIGHT_POSSIBLE},
    {"conditions.", WEIGHT_POSSIBLE},
};

struct change {
    struct str name;
    struct str a, b; /* ptr NULL: none */
    enum weight weight;
};

struct changes {
    struct change *items;
    size_t n, n_max;
};

struct compare {
    struct run_view a, b;
    struct changes changes;
};

static void compare_cleanup(struct compare *compare)
{
    run_view_close(&compare->a);
    run_view_close(&compare->b);
    VEC_RELEASE(&compare->changes);
}

static enum weight weight_of(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(WEIGHTS); idx++) {
        if (str_starts(name, str_of(WEIGHTS[idx].prefix))) {
            return WEIGHTS[idx].weight;
        }
    }
    return WEIGHT_INCIDENTAL;
}

static void add_change(struct changes *changes, struct str name, struct str a, struct str b)
{
    bool is_same = (!a.ptr && !b.ptr) || (a.ptr && b.ptr && str_eq(a, b));
    if (!is_same) {
        VEC_PUSH(changes, (struct change){name, a, b, weight_of(name)});
    }
}

static bool has_node(const struct run_view *view, struct str node)
{
    for (size_t idx = 0; idx < view->n_settings; idx++) {
        if (str_eq(view->settings[idx].node, node)) {
            return true;
        }
    }
    return false;
}

/* A node that only one of the runs had is not compared value by value. */
static void compare_setting(struct arena *arena, struct compare *c, const struct setting *left,
                            const struct setting *right)
{
    const struct setting *any = left ? left : right;
    ASSERT(any);
    bool is_local = str_eq_z(any->node, "local");
    struct str name =
        is_local
            ? any->name
            : str_of(arena_printf(arena, "%.*s: %.*s", STR_ARG(any->node), STR_ARG(any->name)));
    size_t n = c->changes.n;
    if (!(left && right) && !(has_node(&c->a, any->node) && has_node(&c->b, any->node))) {
        return;
    }
    add_change(&c->changes, name, left ? left->value : STR_EMPTY, right ? right->value : STR_EMPTY);
    if (c->changes.n > n) {
        c->changes.items[n].weight = weight_of(any->name);
    }
}

static struct str fold_nodes(struct arena *arena, const struct run_view *view)
{
    struct str *names = arena_array(arena, struct str, view->n_settings + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < view->n_settings; idx++) {
        struct str node = view->settings[idx].node;
        if (!str_eq_z(node, "local") && (n == 0 || !str_eq(names[n - 1], node))) {
            names[n++] = node;
        }
    }
    return n ? hostlist_fold(arena, names, n) : STR_LIT("local");
}

/* Both lists are sorted by setting_cmp. */
static void compare_settings(struct arena *arena, struct compare *c)
{
    size_t a = 0;
    size_t b = 0;
    while (a < c->a.n_settings || b < c->b.n_settings) {
        int order = a == c->a.n_settings   ? 1
                    : b == c->b.n_settings ? -1
                                           : setting_cmp(&c->a.settings[a], &c->b.settings[b]);
        const struct setting *left = order <= 0 ? &c->a.settings[a++] : NULL;
        const struct setting *right = order >= 0 ? &c->b.settings[b++] : NULL;
        compare_setting(arena, c, left, right);
    }
    add_change(&c->changes, STR_LIT("nodes"), fold_nodes(arena, &c->a), fold_nodes(arena, &c->b));
}

static struct str condition_value(const struct condition *items, size_t n, struct str name)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq(items[idx].name, name)) {
            return items[idx].value;
        }
    }
    return STR_EMPTY;
}

/* Conditions that the two plans set for one case; the machine's own are among the settings. */
static void compare_steps(struct arena *arena, struct compare *c, const struct plan_step *a,
                          const struct plan_step *b)
{
    for (size_t idx = 0; idx < a->n_conditions; idx++) {
        struct str name = a->conditions[idx].name;
        add_change(
            &c->changes,
            str_of(arena_printf(arena, "plan.%.*s.%.*s", STR_ARG(a->case_id), STR_ARG(name))),
            a->conditions[idx].value, condition_value(b->conditions, b->n_conditions, name));
    }
    for (size_t idx = 0; idx < a->n_env; idx++) {
        struct str name = a->env[idx].name;
        add_change(
            &c->changes,
            str_of(arena_printf(arena, "plan.%.*s.env.%.*s", STR_ARG(a->case_id), STR_ARG(name))),
            a->env[idx].value, condition_value(b->env, b->n_env, name));
    }
}

static const struct cell_result *find_cell(const struct run_view *view, struct str case_id)
{
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        if (str_eq(view->result.cells[idx].of_case->id, case_id)) {
            return &view->result.cells[idx];
        }
    }
    return NULL;
}

static int by_weight(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;
    return x->weight != y->weight ? (x->weight < y->weight ? -1 : 1) : str_cmp(x->name, y->name);
}

static void find_changes(struct arena *arena, struct compare *c)
{
    add_change(&c->changes, STR_LIT("plan.report"), c->a.frozen.plan.report,
               c->b.frozen.plan.report);
    add_change(&c->changes, STR_LIT("plan.report_sha256"), c->a.frozen.report_sha256,
               c->b.frozen.report_sha256);
    add_change(&c->changes, STR_LIT("plan.profile"), str_of(profile_name(c->a.frozen.plan.profile)),
               str_of(profile_name(c->b.frozen.plan.profile)));
    for (size_t idx = 0; idx < c->a.result.n_cells; idx++) {
        const struct cell_result *a = &c->a.result.cells[idx];
        const struct cell_result *b = find_cell(&c->b, a->of_case->id);
        if (b) {
            compare_steps(arena, c, a->step, b->step);
        }
    }
    compare_settings(arena, c);
    if (c->changes.n) {
        qsort(c->changes.items, c->changes.n, sizeof(c->changes.items[0]), by_weight);
    }
}

/* The repeats' ranges do not touch: the difference is more than the spread seen. */
static bool is_apart(const struct cell_result *a, const struct cell_result *b)
{
    return a->summary.n > 0 && b->summary.n > 0 &&
           (a->summary.max < b->summary.min || b->summary.max < a->summary.min);
}

static double change_of(const struct cell_result *a, const struct cell_result *b)
{
    return a && b && isfinite(a->value) && isfinite(b->value) ? rel_diff(b->value, a->value)
                                                              : (double)NAN;
}

static void add_value(struct table *table, const struct cell_result *cell)
{
    if (!cell) {
        table_add(table, STR_LIT("-"));
    } else if (!isfinite(cell->value)) {
        table_add(table, str_of(run_verdict_name(cell->verdict)));
    } else {
        table_addf(table, "%.6g", cell->value);
    }
}

static void add_row(struct table *table, struct str id, const struct cell_result *a,
                    const struct cell_result *b)
{
    double change = change_of(a, b);
    table_add(table, id);
    add_value(table, a);
    add_value(table, b);
    if (isfinite(change)) {
        table_addf(table, "%+.2f %%", 100 * change);
        table_add(table,
                  is_apart(a, b) ? STR_LIT("more than the spread") : STR_LIT("within the spread"));
    } else {
        table_add(table, STR_LIT("-"));
        table_add(table, STR_LIT(""));
    }
    table_add(table, a ? str_of(run_verdict_name(a->verdict)) : STR_LIT("-"));
    table_add(table, b ? str_of(run_verdict_name(b->verdict)) : STR_LIT("-"));
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

static void write_text(const struct compare *c, struct strbuf *out)
{
    static const struct table_column CELLS[] = {
        {"case", false},    {"A", true},          {"B", true},         {"B to A", true},
        {"repeats", false}, {"verdict A", false}, {"verdict B", false}};
    static const struct table_column CHANGES[] = {
        {"matters", false}, {"what differs", false}, {"A", false}, {"B", false}};
    CLEANUP(table) struct table cells;
    CLEANUP(table) struct table changes;
    table_init(&cells, CELLS, ARRAY_LEN(CELLS));
    table_init(&changes, CHANGES, ARRAY_LEN(CHANGES));
    for (size_t idx = 0; idx < c->a.result.n_cells; idx++) {
        const struct cell_result *a = &c->a.result.cells[idx];
        add_row(&cells, a->of_case->id, a, find_cell(&c->b, a->of_case->id));
    }
    for (size_t idx = 0; idx < c->b.result.n_cells; idx++) {
        const struct cell_result *b = &c->b.result.cells[idx];
        if (!find_cell(&c->a, b->of_case->id)) {
            add_row(&cells, b->of_case->id, NULL, b);
        }
    }
    for (size_t idx = 0; idx < c->changes.n; idx++) {
        const struct change *change = &c->changes.items[idx];
        table_add(&changes, str_of(WEIGHT_NAMES[change->weight]));
        table_add(&changes, change->name);
        add_short(&changes, change->a);
        add_short(&changes, change->b);
    }
    strbuf_printf(out, "A  %.*s\nB  %.*s\n\n", STR_ARG(c->a.frozen.run_id),
                  STR_ARG(c->b.frozen.run_id));
    table_render(&cells, out);
    strbuf_add_char(out, '\n');
    if (c->changes.n) {
        table_render(&changes, out);
    } else {
        strbuf_add_z(out, "no difference of machine, software or plan was recorded\n");
    }
}

static void write_json_side(struct json_out *json, const char *key, const struct cell_result *cell)
{
    if (!cell) {
        jw_null(json, key);
        return;
    }
    jw_object(json, key);
    jw_f64(json, "value", cell->value);
    jw_str(json, "unit", cell->unit);
    jw_z(json, "verdict", run_verdict_name(cell->verdict));
    jw_i64(json, "n", (int64_t)cell->summary.n);
    jw_f64(json, "std", cell->summary.n ? cell->summary.std : (double)NAN);
    jw_f64(json, "min", cell->summary.n ? cell->summary.min : (double)NAN);
    jw_f64(json, "max", cell->summary.n ? cell->summary.max : (double)NAN);
    jw_end_object(json);
}

static void write_json_cell(struct json_out *json, struct str id, const struct cell_result *a,
                            const struct cell_result *b)
{
    double change = change_of(a, b);
    jw_object(json, NULL);
    jw_str(json, "case", id);
    write_json_side(json, "a", a);
    write_json_side(json, "b", b);
    jw_f64(json, "rel_diff", change);
    if (isfinite(change)) {
        jw_bool(json, "exceeds_spread", is_apart(a, b));
    } else {
        jw_null(json, "exceeds_spread");
    }
    jw_end_object(json);
}

static void write_json_run(struct json_out *json, const char *key, const struct run_view *view)
{
    jw_object(json, key);
    jw_str(json, "run_id", view->frozen.run_id);
    jw_str(json, "report", view->frozen.plan.report);
    jw_z(json, "profile", profile_name(view->frozen.plan.profile));
    jw_end_object(json);
}

static void write_json(const struct compare *c, struct strbuf *out)
{
    struct json_out json;
    jw_begin(&json, out, false);
    jw_object(&json, NULL);
    jw_i64(&json, "schema_version", 1);
    write_json_run(&json, "a", &c->a);
    write_json_run(&json, "b", &c->b);
    jw_array(&json, "cells");
    for (size_t idx = 0; idx < c->a.result.n_cells; idx++) {
        const struct cell_result *a = &c->a.result.cells[idx];
        write_json_cell(&json, a->of_case->id, a, find_cell(&c->b, a->of_case->id));
    }
    for (size_t idx = 0; idx < c->b.result.n_cells; idx++) {
        const struct cell_result *b = &c->b.result.cells[idx];
        if (!find_cell(&c->a, b->of_case->id)) {
            write_json_cell(&json, b->of_case->id, NULL, b);
        }
    }
    jw_end_array(&json);
    jw_array(&json, "differences");
    for (size_t idx = 0; idx < c->changes.n; idx++) {
        jw_object(&json, NULL);
        jw_str(&json, "name", c->changes.items[idx].name);
        jw_z(&json, "matters", WEIGHT_NAMES[c->changes.items[idx].weight]);
        jw_str(&json, "a", c->changes.items[idx].a);
        jw_str(&json, "b", c->changes.items[idx].b);
        jw_end_object(&json);
    }
    jw_end_array(&json);
    jw_end_object(&json);
    strbuf_add_char(out, '\n');
}

struct compare_args {
    bool want_json;
    const char *fail_slower;
};

/* "5%" or "5": a share of 0.05. */
static int read_share(const char *text, double *ret, struct err *err)
{
    struct str number = str_of(text);
    struct err reason = {0};
    if (str_ends(number, STR_LIT("%"))) {
        number.len--;
    }
    if (str_to_f64(number, ret, &reason) < 0 || !(*ret >= 0 && *ret < 100)) {
        return err_set(err, ERR_USAGE,
                       "--fail-slower %.40s: expected a share from 0%% to under 100%%", text);
    }
    *ret /= 100;
    return 0;
}

/* Whether a cell of A passes: B has it, and is not slower by more than the share, or no more than its repeats are apart. */
static bool passes(const struct cell_result *a, const struct cell_result *b, double share)
{
    double change = change_of(a, b);
    const char *id = a->of_case->id.ptr;
    if (!b || !isfinite(change)) {
        log_line(LOG_ERROR, "%s: a value in A and none in B", id);
        return false;
    }
    if (change >= -share) {
        return true;
    }
    if (a->summary.n > 1 && b->summary.n > 1 && !is_apart(a, b)) {
        log_line(LOG_WARN,
                 "%s: slower by %.2f %%, but its repeats in A (%.6g to %.6g) and B (%.6g to "
                 "%.6g) overlap",
                 id, -100 * change, a->summary.min, a->summary.max, b->summary.min, b->summary.max);
        return true;
    }
    log_line(LOG_ERROR, "%s: slower by %.2f %%, more than %.4g %%", id, -100 * change, 100 * share);
    return false;
}

/* 0 or 1. Nothing that could be compared is no success. */
static int gate(const struct compare *c, double share)
{
    size_t n = 0;
    size_t n_bad = 0;
    for (size_t idx = 0; idx < c->a.result.n_cells; idx++) {
        const struct cell_result *a = &c->a.result.cells[idx];
        if (isfinite(a->value)) {
            n++;
            n_bad += !passes(a, find_cell(&c->b, a->of_case->id), share);
        }
    }
    if (n == 0) {
        log_line(LOG_ERROR, "no cell of A has a value: nothing was compared");
    } else {
        log_line(n_bad ? LOG_ERROR : LOG_INFO,
                 "%zu cells compared, %zu slower by more than %.4g %%", n, n_bad, 100 * share);
    }
    return n == 0 || n_bad > 0;
}

static const struct opt OPTS[] = {
    {.name = "json",
     .kind = OPT_FLAG,
     .help = "print one JSON document",
     .offset = offsetof(struct compare_args, want_json)},
    {.name = "fail-slower",
     .kind = OPT_TEXT,
     .value = "SHARE",
     .help = "status 1 where a cell of the second run is slower by more than this (\"5%\")",
     .offset = offsetof(struct compare_args, fail_slower)},
    OPT_END,
};

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list names = {0};
    CLEANUP(strbuf) struct strbuf out = {0};
    CLEANUP(compare) struct compare compare = {0};
    struct compare_args args = {0};
    double share = 0;
    if (opt_parse(OPTS, argc, argv, &args, &names, err) < 0) {
        return -1;
    }
    if (names.n != 2) {
        return err_set(err, ERR_USAGE, "compare: expected two runs, found %zu", names.n);
    }
    if (args.fail_slower && read_share(args.fail_slower, &share, err) < 0) {
        return -1;
    }
    if (run_view_open(&arena, ctx->clock, ctx->state, names.items[0], &compare.a, err) < 0 ||
        run_view_open(&arena, ctx->clock, ctx->state, names.items[1], &compare.b, err) < 0) {
        return -1;
    }
    find_changes(&arena, &compare);
    strbuf_init(&out, TEXT_BYTES_MAX);
    if (args.want_json) {
        write_json(&compare, &out);
    } else {
        write_text(&compare, &out);
    }
    if (cmd_print(strbuf_str(&out), err) < 0) {
        return -1;
    }
    return args.fail_slower ? gate(&compare, share) : 0;
}

const struct cmd CMD_COMPARE = {"compare", "RUN RUN",
                                "two runs side by side: values, verdicts, what differs", OPTS, run};
