/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that a run would start, for scripts that hold them against the report or run them: plan_commands REPORT with the options of
   `reperf plan` prints the plan's document with `commands`: of the first repeat of each case that can be run, for each node, the case, the
   node's name, argv and environment. The nodes are the first that fit; paths on a node are the run's placeholders. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/run_args.h"
#include "run/run_address.h"
#include "run/run_impl.h"

#define OUTPUT_MAX (256u << 20)

struct planned_command {
    struct str case_id, node;
    const char *const *argv, *const *env;
};
struct planned_commands {
    const struct plan *plan;
    struct planned_command *items;
    size_t n;
};

static const struct json_field COMMAND_ROWS[] = {
    ROW("case", struct planned_command, case_id, JSON_REQUIRED),
    ROW("node", struct planned_command, node, JSON_REQUIRED),
    ROW("argv", struct planned_command, argv, JSON_REQUIRED),
    ROW("env", struct planned_command, env, JSON_REQUIRED),
};
static const struct json_field DOCUMENT_ROWS[] = {
    ROW_THERE(struct planned_commands, plan, PLAN_ROWS),
    ROW_LIST("commands", struct planned_commands, items, n, COMMAND_ROWS, 0),
};

static int add_step(struct arena *arena, const struct run_opts *opts,
                    const struct run_prepared *prepared, const struct plan_step *step,
                    struct planned_commands *commands, struct err *err)
{
    const struct inventory *inventory = &prepared->inventory;
    const struct runtime_image image = {
        .name = step->image_name, .digest = step->image_digest, .id = step->image_digest};
    size_t *nodes = arena_array(arena, size_t, inventory->n_nodes);
    size_t n_fitting = 0, n_jobs = 0;
    struct launch_job *jobs;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        if (plan_step_fits(step, &inventory->nodes[idx])) {
            nodes[n_fitting++] = idx;
        }
    }
    ASSERT((int64_t)n_fitting >= plan_step_nodes(step));
    const struct launch launch = {
        .arena = arena,
        .step = step,
        .inventory = inventory,
        .nodes = nodes,
        .run_id = "PLANNED",
        .job_id = arena_printf(arena, "PLANNED/%.*s/repeat-1/attempt-1", STR_ARG(step->case_id)),
        .program = planner_train_path(arena, opts->ctx->self),
        .image = &image};
    if (run_launch(launch, &prepared->plan, &jobs, &n_jobs, err) < 0) {
        return err_wrap(err, "case %.*s", STR_ARG(step->case_id));
    }
    for (size_t idx = 0; idx < n_jobs; idx++) {
        commands->items[commands->n++] = (struct planned_command){
            step->case_id, inventory->nodes[nodes[jobs[idx].place_idx]].name, jobs[idx].job.argv,
            jobs[idx].job.env};
    }
    return 0;
}

static int print(struct arena *arena, const struct run_opts *opts,
                 const struct run_prepared *prepared, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf;
    const struct plan *plan = &prepared->plan;
    struct planned_commands commands = {
        plan,
        arena_array(arena, struct planned_command, plan->n_steps * prepared->inventory.n_nodes), 0};
    strbuf_init(&buf, OUTPUT_MAX);
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        if (plan->steps[idx].cause == ERR_NONE &&
            add_step(arena, opts, prepared, &plan->steps[idx], &commands, err) < 0) {
            return -1;
        }
    }
    json_encode_document(&buf, DOCUMENT_ROWS, ARRAY_LEN(DOCUMENT_ROWS), &commands);
    return cmd_print_document(strbuf_str(&buf), err);
}

static int plan(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    const struct run_args *args = call->args;
    struct run_opts opts;
    struct run_prepared prepared;
    if (run_args_opts(ctx, args, &opts, err) < 0) {
        return -1;
    }
    opts.report = call->operands.items[0];
    return run_read(call->arena, &opts, &prepared, err) < 0 ||
                   run_plan(call->arena, &opts, &prepared, err) < 0
               ? -1
               : print(call->arena, &opts, &prepared, err);
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *root = getenv("REPERF_ROOT");
    struct err err = {0};
    const struct cmd_ctx ctx = {.clock = clock_system(),
                                .root = root ? root : ".",
                                .state = getenv("REPERF_STATE"),
                                .store = getenv("REPERF_STORE"),
                                .self = arena_printf(&arena, "%s/../../reperf", argv[0])};
    ASSERT(ctx.state && ctx.store);
    struct cmd listed = CMD_PLAN;
    listed.run = plan;
    if (cmd_run(&listed, &ctx, argc - 1, argv + 1, &err) < 0) {
        fprintf(stderr, "plan_commands: %s\n", err.msg);
        return 1;
    }
    return 0;
}
