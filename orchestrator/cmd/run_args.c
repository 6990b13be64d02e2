/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#include "view/plan_out.h"

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
                            .retries = args->retries,
                            .store = ctx->store,
                            .data = args->data,
                            .nodes = args->nodes,
                            .limits = args->limits,
                            .images = args->images.items,
                            .n_images = args->images.n,
                            .overrides = args->overrides.items,
                            .n_overrides = args->overrides.n,
                            .is_offline = args->net.opts.is_offline,
                            .clock = ctx->clock};
    opts.plan = (struct planner_opts){.is_rehearsal = args->is_rehearsal,
                                      .repeats = args->repeats,
                                      .repeats_max = args->within > 0 ? args->repeats_max : 0,
                                      .within = args->within,
                                      .tolerance = args->tolerance,
                                      .is_each_node = args->is_each_node,
                                      .takes_turns = args->takes_turns,
                                      .is_packed = args->is_packed,
                                      .deadline_s = args->deadline_s,
                                      .globs = args->cases.items,
                                      .n_globs = args->cases.n};
    if (profile_of_option(args->profile, &opts.plan.profile, err) < 0) {
        return -1;
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
        return err_set(err, ERR_USAGE,
                       "--rehearse goes with the full profile, not with --profile %s",
                       args->profile);
    }
    if (args->within > 0 && args->repeats < 2) {
        return err_set(err, ERR_USAGE, "--within: one repeat has no interval; --repeats 2 or more");
    }
    if (args->within > 0 && args->repeats_max < args->repeats) {
        return err_set(err, ERR_USAGE, "--repeats-max %lld: expected at least --repeats, %lld",
                       (long long)args->repeats_max, (long long)args->repeats);
    }
    if (args->takes_turns && args->is_packed) {
        return err_set(err, ERR_USAGE, "--columns and --no-columns exclude each other");
    }
    if (args->is_each_node && !args->nodes) {
        return err_set(err, ERR_USAGE, "--each-node needs --nodes INVENTORY");
    }
    if (args->cases.n > PLAN_GLOBS_MAX) {
        return err_set(err, ERR_USAGE, "--case: more than %d", PLAN_GLOBS_MAX);
    }
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

int run_print_plan(const struct run_prepared *prepared, const struct run_args *args,
                   struct err *err)
{
    const struct plan *plan = &prepared->plan;
    CLEANUP(strbuf) struct strbuf buf = STRBUF(OUTPUT_MAX);
    if (args->want_json) {
        plan_encode(plan, &buf);
    } else if (args->is_checklist) {
        plan_out_checklist(plan, &prepared->inventory, &buf);
        return cmd_print(strbuf_str(&buf), err); /* what is missing is what it is for */
    } else {
        plan_out_text(plan, args->is_verbose, &buf);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : plan_status(plan, err);
}
