/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#include "base/log.h"
#include "report/source.h"
#include "run/dry_run.h"

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
                                      .repeats_max = args->within > 0 ? args->repeats_max : 0,
                                      .within = args->within,
                                      .tolerance = args->tolerance,
                                      .is_each_node = args->is_each_node,
                                      .takes_turns = args->takes_turns,
                                      .is_packed = args->is_packed,
                                      .deadline_s = args->deadline_s,
                                      .globs = args->cases.items,
                                      .n_globs = args->cases.n};
    if (args->profile && !profile_of_name(str_of(args->profile), &opts.plan.profile)) {
        return err_set(err, ERR_USAGE, "--profile %.60s: expected full or smoke", args->profile);
    }
    if (args->is_rehearsal && opts.plan.profile != PROFILE_FULL) {
        return err_set(err, ERR_USAGE, "--rehearse: is of the full profile, not of --profile %s",
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
        return err_set(err, ERR_USAGE, "--columns and --no-columns: which of them?");
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

/* Details that need no mention on one machine. */
static void print_place(struct strbuf *buf, const struct plan *plan, const struct plan_step *step)
{
    if (step->n_ranks > 1 || plan_step_nodes(step) > 1) {
        strbuf_printf(buf, "           %lld ranks, %lld a node, started by %s\n",
                      (long long)step->n_ranks, (long long)(step->n_ranks / plan_step_nodes(step)),
                      step->is_per_node                ? "the command, once a node"
                      : plan->launcher == LAUNCHER_SSH ? "us, one job a node"
                                                       : launcher_kind_name(plan->launcher));
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        strbuf_printf(buf, "           %s %.*s at %.*s\n", recipe_mount_kind_name(mount->kind),
                      STR_ARG(mount->name), STR_ARG(mount->inside));
        if (mount->part.tree.ptr) {
            strbuf_printf(buf, "             only %.*s: %lld files, %lld are left out\n",
                          STR_ARG(str_sub(mount->version, SOURCE_COMMIT_HEX + 1, SIZE_MAX)),
                          (long long)mount->part.n_files, (long long)mount->part.n_left_out);
        }
    }
    if (step->image.ptr) {
        strbuf_printf(buf, "           in %s, image %.*s@%.*s\n", runtime_kind_label(plan->runtime),
                      STR_ARG(step->image_name), STR_ARG(step->image_digest));
    }
}

static void print_step_needs(struct strbuf *buf, const struct plan_step *step)
{
    strbuf_printf(buf, "  not run  %.*s\n           %s (exit status %d): %.*s\n",
                  STR_ARG(step->case_id), err_code_name(step->cause), err_exit_status(step->cause),
                  STR_ARG(step->why));
    for (size_t idx = 0; idx < step->n_needs; idx++) {
        const struct step_need *need = &step->needs[idx];
        if (!str_eq(need->what, step->why)) {
            strbuf_printf(buf, "           needs %.*s\n", STR_ARG(need->what));
        }
        if (need->command.ptr) {
            strbuf_printf(buf, "           $ %.*s\n", STR_ARG(need->command));
        }
    }
}

static void print_step(struct strbuf *buf, const struct plan *plan, const struct plan_step *step)
{
    if (step->cause != ERR_NONE) {
        print_step_needs(buf, step);
        return;
    }
    strbuf_printf(buf, "  run x%-3lld %.*s\n", (long long)plan->repeats, STR_ARG(step->case_id));
    if (step->recipe.ptr) {
        strbuf_printf(buf, "           %.*s\n", STR_ARG(step->recipe));
    }
    print_place(buf, plan, step);
    strbuf_printf(buf, "           on %.*s:", STR_ARG(step->node));
    for (size_t idx = 0; idx < step->n_env; idx++) {
        strbuf_printf(buf, " %.*s=", STR_ARG(step->env[idx].name));
        shq_append(buf, step->env[idx].value);
    }
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        strbuf_add_char(buf, ' ');
        shq_append(buf, step->argv[idx]);
    }
    strbuf_add_char(buf, '\n');
    if (step->memory_bytes) {
        strbuf_printf(buf, "           about %.0f MB of memory, %.0f kB of log a repeat\n",
                      (double)step->memory_bytes / 1e6, (double)step->log_bytes / 1e3);
    }
}

static void print_bytes(struct strbuf *buf, int64_t bytes)
{
    if (bytes < 0) {
        strbuf_add_z(buf, "size not stated");
    } else {
        strbuf_printf(buf, "%.1f MB", (double)bytes / 1e6);
    }
}

/* What the published frameworks' rows would need; the bundled workload's own data is a line of its own. */
static void print_needs(struct strbuf *buf, const struct plan *plan)
{
    if (plan->data.folder.ptr) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        strbuf_printf(buf, "data     %s, split %.*s, %lld samples, in %.*s\n",
                      plan_data_name(&arena, &plan->data), STR_ARG(plan->data.split),
                      (long long)plan->data.n_samples, STR_ARG(plan->data.folder));
    }
    if (plan->n_needs == 0) {
        bool is_contained = plan->runtime != RUNTIME_NONE;
        strbuf_printf(buf, "fetch    0 bytes (these cases need no dataset%s code%s)\n",
                      is_contained ? " or" : ", image or",
                      is_contained ? "; the nodes get their images themselves" : "");
    }
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        const struct plan_need *need = &plan->needs[idx];
        strbuf_printf(
            buf, "%s%.*s %.*s: %s in the store; to fetch: ", idx == 0 ? "fetch    " : "         ",
            STR_ARG(need->kind), STR_ARG(need->name), need_state_name(need->state));
        print_bytes(buf, need->download_bytes);
        strbuf_add_z(buf, "; disk, about: ");
        print_bytes(buf, need->disk_bytes);
        if (need->n_unpinned && str_eq_z(need->kind, "image")) {
            strbuf_add_z(buf, "; its tag is not locked");
        } else if (need->n_unpinned) {
            strbuf_printf(buf, "; %lld files without a digest", (long long)need->n_unpinned);
        }
        strbuf_add_z(buf, need->needs_login ? "; for registered users only\n" : "\n");
    }
}

static void print_plan(struct strbuf *buf, const struct plan *plan)
{
    strbuf_printf(buf, "%.*s, profile %s%s: %zu of %zu cases can be run here\n",
                  STR_ARG(plan->report), profile_name(plan->profile),
                  plan->is_rehearsal ? ", a rehearsal" : "", plan_runnable(plan), plan->n_steps);
    for (size_t idx = 0; idx < plan->n_overrides; idx++) {
        const struct json_override *set = &plan->overrides[idx];
        strbuf_printf(buf, "set      %.*s: %.*s, in the report %.*s\n", STR_ARG(set->path),
                      STR_ARG(set->value), STR_ARG(set->was.ptr ? set->was : STR_LIT("absent")));
    }
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        print_step(buf, plan, &plan->steps[idx]);
    }
    strbuf_add_z(buf, "steps    collect and parse each log, judge each case, seal the archive\n");
    print_needs(buf, plan);
    strbuf_printf(buf, "disk     %.1f MB of logs and archive\ndeadline %lld s a repeat\n",
                  (double)plan_disk_bytes(plan) / 1e6, (long long)plan->deadline_s);
    for (size_t idx = 0; idx < plan->n_pins; idx++) {
        strbuf_printf(buf, "not pinned by its authors: %.*s: %.*s\n",
                      STR_ARG(plan->pins[idx].stack), STR_ARG(plan->pins[idx].what));
    }
}

/* Nothing to run is not a success: the status is the first case's cause. */
static int plan_status(const struct plan *plan, struct err *err)
{
    return plan_runnable(plan) ? 0
                               : err_set(err, plan->steps[0].cause,
                                         "no case can run yet; the plan says what each needs");
}

int run_print_plan(const struct plan *plan, bool want_json, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf;
    strbuf_init(&buf, OUTPUT_MAX);
    if (want_json) {
        plan_encode(plan, &buf);
    } else {
        print_plan(&buf, plan);
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
    print_plan(buf, plan);
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
