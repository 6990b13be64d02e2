/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#include "view/plan_out.h"

#define OUTPUT_MAX (256u << 20)

int run_args_opts(const struct cmd_ctx *ctx, const struct run_args *args, struct run_opts *ret_opts,
                  struct err *err)
{
    const struct report_case logged = {.logged_steps = 1};
    struct run_opts opts = args->opts;
    struct plan *asked = &opts.plan.asked;
    opts.ctx = ctx;
    opts.plan.is_offline = args->net.opts.is_offline;
    asked->asked_steps = args->steps ? str_of(args->steps) : STR_EMPTY;
    if (profile_of_option(args->profile, &asked->profile, err) < 0) {
        return -1;
    }
    const bool is_full = asked->profile == PROFILE_FULL;
    const struct {
        bool is_wrong;
        const char *what;
    } rows[] = {
        {args->steps && (!is_full || plan_asked_steps(asked->asked_steps, &logged) == 0),
         "--steps: expected as-logged or a number, with --profile full"},
        {asked->is_rehearsal && !is_full, "--rehearse goes with the full profile"},
        {asked->within > 0 && asked->repeats < 2,
         "--within: one repeat has no interval; --repeats 2 or more"},
        {asked->within > 0 && asked->repeats_max < asked->repeats,
         "--repeats-max: expected at least as many as --repeats"},
        {asked->takes_turns && opts.plan.is_packed,
         "--columns and --no-columns exclude each other"},
        {asked->is_each_node && !opts.nodes, "--each-node needs --nodes INVENTORY"},
        {opts.plan.globs.n > PLAN_GLOBS_MAX, "--case: more than are taken"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(rows); idx++) {
        if (rows[idx].is_wrong) {
            return err_set(err, ERR_USAGE, "%s", rows[idx].what);
        }
    }
    asked->repeats_max = asked->within > 0 ? asked->repeats_max : 0;
    *ret_opts = opts;
    return 0;
}

/* Nothing to run is not a success: the status is the first case's cause. */
static int plan_status(const struct plan *plan, struct err *err)
{
    return plan_runnable(plan) ? 0
                               : err_set(err, plan->steps[0].cause,
                                         "no case can run yet; the plan says what each needs");
}

static void add_option(struct strbuf *out, const char *name, const char *value)
{
    if (value) {
        strbuf_printf(out, " %s ", name);
        shq_append(out, str_of(value));
    }
}

/* `nodes doctor` knows the cases as the report has them, without the node that --each-node adds. */
static void add_cases(struct strbuf *out, const struct plan *plan, const struct opt_list *globs)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str *seen = arena_array(&arena, struct str, plan->n_steps + 1);
    size_t n = 0;
    if (!plan->is_each_node) {
        for (size_t idx = 0; idx < globs->n; idx++) {
            add_option(out, "--case", globs->items[idx]);
        }
        return;
    }
    for (size_t idx = 0; idx < plan->n_steps && globs->n; idx++) {
        struct str id = plan->steps[idx].case_id;
        const char *slash = memrchr(id.ptr, '/', id.len);
        id.len = slash ? (size_t)(slash - id.ptr) : id.len;
        if (!str_is_in(id, seen, n)) {
            seen[n++] = id;
            add_option(out, "--case", str_z(&arena, id));
        }
    }
}

/* What `nodes doctor` and `run` are asked with so that they do what was planned. */
static void add_orders(const struct run_args *args, const struct plan *plan,
                       const struct cmd_call *call, struct strbuf *doctor, struct strbuf *run)
{
    static const char *const OF_PLAN[] = {"--checklist", "--verbose", "-v", NULL};
    strbuf_add_z(run, "reperf run");
    for (int idx = 0; idx < call->n_words; idx++) {
        struct str word = str_of(call->words[idx]);
        if (!str_eq_any(word, OF_PLAN)) {
            strbuf_add_char(run, ' ');
            shq_append(run, word);
        }
    }
    add_option(run, "--trust", plan->address.ptr);
    add_option(doctor, "reperf nodes doctor",
               args->opts.nodes ? args->opts.nodes : INVENTORY_LOCAL);
    add_option(doctor, "--report", call->operands.items[0]);
    add_option(doctor, "--profile", args->profile);
    add_cases(doctor, plan, &args->opts.plan.globs);
}

static int print_checklist(const struct run_prepared *prepared, const struct run_args *args,
                           const struct cmd_call *call, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(OUTPUT_MAX);
    CLEANUP(strbuf) struct strbuf doctor = STRBUF(OUTPUT_MAX);
    CLEANUP(strbuf) struct strbuf run = STRBUF(OUTPUT_MAX);
    add_orders(args, &prepared->plan, call, &doctor, &run);
    const struct plan_orders orders = {str_trim(strbuf_str(&doctor)), str_trim(strbuf_str(&run))};
    plan_out_checklist(&prepared->plan, &prepared->inventory, &orders, &buf);
    return cmd_print(strbuf_str(&buf), err); /* what is missing is what it is for */
}

int run_print_plan(const struct run_prepared *prepared, const struct run_args *args,
                   const struct cmd_call *call, struct err *err)
{
    const struct plan *plan = &prepared->plan;
    CLEANUP(strbuf) struct strbuf buf = STRBUF(OUTPUT_MAX);
    if (args->want_json) {
        plan_encode(plan, &buf);
    } else if (args->is_checklist) {
        return print_checklist(prepared, args, call, err);
    } else {
        plan_out_text(plan, args->is_verbose, &buf);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : plan_status(plan, err);
}
