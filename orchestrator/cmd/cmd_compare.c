/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf compare`: two runs side by side: values, verdicts, and differences of machines and conditions, the likeliest to
   matter first. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/compare_parts.h"
#include "cmd/outputs.h"
#include "cmd/run_args.h"
#include "codec/json_document.h"
#include "load/load.h"
#include "report/hostlist.h"

#define TEXT_BYTES_MAX (64u << 20)

/* Names by their beginnings, first match. */
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
    return STR_NAMED(view->settings, view->n_settings, node, node) != NULL;
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
        c->changes.items[n].weight =
            str_eq_z(any->node, "log") ? WEIGHT_LIKELY : weight_of(any->name);
    }
}

static struct str fold_nodes(struct arena *arena, const struct run_view *view)
{
    struct str *names = arena_array(arena, struct str, view->n_settings + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < view->n_settings; idx++) {
        struct str node = view->settings[idx].node;
        bool is_node = !str_eq_z(node, "local") && !str_eq_z(node, "log");
        if (is_node && (n == 0 || !str_eq(names[n - 1], node))) {
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
    const typeof(items[0]) *found = STR_NAMED(items, n, name, name);
    return found ? found->value : STR_EMPTY;
}

/* Conditions that the two plans set for one case; the machine's own are among the settings. */
static void compare_steps(struct arena *arena, struct compare *c, const struct plan_step *a,
                          const struct plan_step *b)
{
    for (size_t idx = 0; idx < a->n_conditions + a->n_env; idx++) {
        bool is_env = idx >= a->n_conditions;
        const typeof(a->env[0]) *of = is_env ? &a->env[idx - a->n_conditions] : &a->conditions[idx];
        add_change(&c->changes,
                   str_of(arena_printf(arena, "plan.%.*s.%s%.*s", STR_ARG(a->case_id),
                                       is_env ? "env." : "", STR_ARG(of->name))),
                   of->value,
                   is_env ? condition_value(b->env, b->n_env, of->name)
                          : condition_value(b->conditions, b->n_conditions, of->name));
    }
}

const struct cell_result *compare_find(const struct run_view *view, struct str case_id)
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

static void find_plan_changes(struct arena *arena, struct compare *c)
{
    add_change(&c->changes, STR_LIT("plan.report"), c->a.frozen.plan.report,
               c->b.frozen.plan.report);
    add_change(&c->changes, STR_LIT("plan.report_sha256"), c->a.frozen.report_sha256,
               c->b.frozen.report_sha256);
    add_change(&c->changes, STR_LIT("plan.profile"),
               str_of(PROFILE_NAMES[c->a.frozen.plan.profile]),
               str_of(PROFILE_NAMES[c->b.frozen.plan.profile]));
    add_change(&c->changes, STR_LIT("plan.rehearsal"),
               c->a.frozen.plan.is_rehearsal ? STR_LIT("yes") : STR_EMPTY,
               c->b.frozen.plan.is_rehearsal ? STR_LIT("yes") : STR_EMPTY);
    for (size_t idx = 0; idx < c->a.result.n_cells; idx++) {
        const struct cell_result *a = &c->a.result.cells[idx];
        const struct cell_result *b = compare_find(&c->b, a->of_case->id);
        if (b) {
            compare_steps(arena, c, a->step, b->step);
        }
    }
}

static void find_changes(struct arena *arena, struct compare *c)
{
    if (!c->log_a && !c->log_b) {
        find_plan_changes(arena, c);
    }
    compare_settings(arena, c);
    if (c->changes.n) {
        qsort(c->changes.items, c->changes.n, sizeof(c->changes.items[0]), by_weight);
    }
}

static void find_claims(struct arena *arena, struct compare *c)
{
    if (!c->log_a) {
        columns_of(arena, &c->a.frozen, &c->a.result, c->a.audit, &c->columns_a);
    }
    if (!c->log_b) {
        columns_of(arena, &c->b.frozen, &c->b.result, c->b.audit, &c->columns_b);
    }
}

struct args {
    struct outputs outputs;
    const char *limits, *format;
    double fail_slower; /* negative: not asked */
    bool allows_undecided, is_verbose;
};

static const struct opt OPTS[] = {
    OUTPUTS_OPT_CSV(struct args, outputs),
    OPT(struct args, fail_slower, "fail-slower",
        "status 1 unless no cell of the second run is slower by more than this (\"5%\")",
        .value = "SHARE"),
    OPT(struct args, allows_undecided, "allow-undecided",
        "with --fail-slower: where the repeats are too few to tell, the means decide"),
    OPT(struct args, limits, "limits",
        "when a node is an outlier, instead of manifests/node-health.json", .value = "FILE"),
    OPT(struct args, format, "format", "of logs, by name or file (default: whichever reads them)",
        .letter = 'f', .value = "FORMAT"),
    OPT(struct args, is_verbose, "verbose", "in text also the differences that can hardly matter",
        .letter = 'v'),
    OUTPUTS_OPT_JSON(struct args, outputs),
    OUTPUTS_OPT_MARKDOWN(struct args, outputs),
    OPT_END,
};

static int write_form(const void *of, enum output_form form, struct strbuf *out,
                      struct err *err UNUSED)
{
    switch (form) {
    case OUTPUT_CSV:
        compare_csv(of, out);
        return 0;
    case OUTPUT_MARKDOWN:
        compare_markdown(of, out);
        return 0;
    case OUTPUT_JSON:
        compare_json(of, out);
        return 0;
    case OUTPUT_TEXT:
        compare_text(of, out);
        return 0;
    case OUTPUT_HTML:
    case OUTPUT_SVG:
        break;
    }
    ASSERT(!"form");
    return -1;
}

/* ---- nodes ---- */

/* One run alone: its nodes beside each other. The status is 1 with an outlier. */
static int compare_nodes(const struct compare *c, const struct args *args, struct err *err)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(TEXT_BYTES_MAX);
    struct json_out json;
    if (!c->health_a || args->fail_slower >= 0 || args->outputs.csv || args->outputs.markdown) {
        return err_set(err, ERR_USAGE,
                       "compare: expected two runs, or one with --each-node for text or --json");
    }
    if (args->outputs.want_json) {
        jw_document(&json, &out);
        jw_str(&json, "run_id", c->a.frozen.run_id);
        run_health_encode(c->health_a, "health", &json);
        jw_end_object(&json);
        strbuf_add_char(&out, '\n');
    } else {
        run_health_text(c->health_a, &out);
    }
    return cmd_print(strbuf_str(&out), err) < 0 ? -1 : run_health_status(c->health_a);
}

static int open_side(const struct cmd_ctx *ctx, const struct compare_logs *logs, const char *name,
                     struct compare_side *ret, struct err *err)
{
    return compare_is_log(name)
               ? compare_open_log(logs, name, ret, err)
               : run_view_open(logs->arena, ctx->clock, ctx->state, name, &ret->view, err);
}

static int open_both(const struct cmd_ctx *ctx, const struct compare_logs *logs,
                     const struct opt_list *names, struct compare *c, struct err *err)
{
    struct compare_side a = {0};
    struct compare_side b = {0};
    int rc = open_side(ctx, logs, names->items[0], &a, err);
    if (rc == 0 && names->n == 2) {
        rc = open_side(ctx, logs, names->items[1], &b, err);
    }
    if (rc == 0 && names->n == 2 && (a.log || b.log)) {
        rc = compare_match_log(logs->arena, a.log ? &a : &b, a.log ? &b : &a, err);
    }
    c->a = a.view;
    c->b = b.view;
    c->log_a = a.log;
    c->log_b = b.log;
    return rc;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(compare) struct compare compare = {0};
    struct args *args = call->args;
    if (outputs_check(&args->outputs, "compare", err) < 0) {
        return -1;
    }
    if (call->operands.n != 1 && call->operands.n != 2) {
        return err_set(err, ERR_USAGE, "compare: expected two runs, archives or logs, found %zu",
                       call->operands.n);
    }
    if (args->allows_undecided && args->fail_slower < 0) {
        return err_set(err, ERR_USAGE, "--allow-undecided needs --fail-slower");
    }
    compare.gate =
        (struct compare_gate){args->fail_slower >= 0, args->allows_undecided, args->fail_slower};
    compare.is_verbose = args->is_verbose;
    const struct compare_logs logs = {call->arena, ctx->root, args->format, &formats};
    if (open_both(ctx, &logs, &call->operands, &compare, err) < 0 ||
        run_compare_nodes(call->arena, ctx->root, args->limits, &compare.a, &compare.health_a,
                          err) < 0) {
        return -1;
    }
    if (call->operands.n == 1) {
        return compare_nodes(&compare, args, err);
    }
    if (run_compare_nodes(call->arena, ctx->root, args->limits, &compare.b, &compare.health_b,
                          err) < 0) {
        return -1;
    }
    find_changes(call->arena, &compare);
    find_claims(call->arena, &compare);
    compare_rows(call->arena, &compare);
    if (outputs_put(&args->outputs, write_form, &compare, false, err) < 0) {
        return -1;
    }
    return args->fail_slower >= 0 ? gate_run(&compare) : 0;
}

const struct cmd CMD_COMPARE =
    CMD("compare", "RUN|LOG [RUN|LOG]",
        "two runs or logs side by side: values, what differs; or the nodes of one run", OPTS, run,
        CMD_ARGS(struct args), .defaults = &(const struct args){.fail_slower = -1});
