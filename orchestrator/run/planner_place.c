/* SPDX-License-Identifier: Apache-2.0 */
/* Where the steps of a plan run: ranks, nodes, image. */
#include "base/base.h"

#include "run/planner_impl.h"

#define SMOKE_RANKS_MAX      4 /* Source: DESIGN section 5 */
#define SMOKE_NODE_RANKS_MAX 2 /* so that a report's 1, 8 and 32 GPUs become 1, 2 and 4 ranks */

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* "local" where that is all; else how many of which inventory: the runner chooses those that are free. */
static void name_nodes(struct arena *arena, const struct inventory *inventory,
                       struct plan_step *step)
{
    const char *text = arena_printf(arena, "%lld of %.*s (%zu nodes)", (long long)step->n_nodes,
                                    STR_ARG(inventory->id), inventory->n_nodes);
    step->node = inventory->is_local ? STR_LIT(INVENTORY_LOCAL) : str_of(text);
}

void plan_place_smoke(struct arena *arena, const struct planner_opts *opts,
                      const struct report_case *c, struct plan_step *step)
{
    int64_t n_there = (int64_t)opts->inventory->n_nodes;
    int64_t n_nodes = min_of(c->nodes, SMOKE_RANKS_MAX);
    int64_t per_node =
        min_of(c->gpus_per_node, min_of(SMOKE_NODE_RANKS_MAX, SMOKE_RANKS_MAX / n_nodes));
    step->n_ranks = n_nodes * (per_node > 0 ? per_node : 1);
    step->n_nodes = n_nodes;
    /* Fewer nodes: as many ranks on those that there are, and the condition says so. */
    while (step->n_nodes > n_there || step->n_ranks % step->n_nodes != 0) {
        step->n_nodes--;
    }
    plan_set_condition(step, "nodes", plan_number(arena, step->n_nodes));
    name_nodes(arena, opts->inventory, step);
}

void plan_place_full(struct arena *arena, const struct planner_opts *opts,
                     const struct report_case *c, struct plan_step *step)
{
    int64_t n_fit = 0;
    int64_t most = 0;
    step->n_ranks = c->gpus;
    step->n_nodes = c->nodes;
    step->gpus_per_node = c->gpus_per_node;
    for (size_t idx = 0; idx < opts->inventory->n_nodes; idx++) {
        const struct inventory_node *node = &opts->inventory->nodes[idx];
        n_fit += plan_step_fits(step, node);
        most = node->gpus > most ? node->gpus : most;
    }
    name_nodes(arena, opts->inventory, step);
    if ((int64_t)opts->inventory->n_nodes < c->nodes) {
        plan_cannot(step, ERR_NODE,
                    arena_printf(arena, "needs %lld nodes: the inventory \"%.*s\" has %zu",
                                 (long long)c->nodes, STR_ARG(opts->inventory->id),
                                 opts->inventory->n_nodes));
    }
    if (n_fit < c->nodes) {
        plan_cannot(step, ERR_NODE,
                    arena_printf(arena, "needs %lld GPUs a node: %s has %lld",
                                 (long long)c->gpus_per_node,
                                 opts->inventory->is_local ? "this machine" : "no other node",
                                 (long long)most));
    }
}

/* ---- image ---- */

static const struct plan_image *image_given(const struct planner_opts *opts, struct str id)
{
    for (size_t idx = 0; idx < opts->n_images; idx++) {
        if (str_eq(opts->images[idx].id, id)) {
            return &opts->images[idx];
        }
    }
    return NULL;
}

/* The report's own flags where its data has a line that starts the container. */
static void take_flags(struct arena *arena, const struct report_case *c, struct plan_step *step)
{
    for (size_t idx = 0; idx < c->stack->n_commands; idx++) {
        const struct command *command = &c->stack->commands[idx];
        struct str line = command->works.ptr ? command->works : command->printed;
        struct err err = {0};
        if (!str_eq_z(command->purpose, "container") ||
            (command->nodes != 0 && command->nodes != c->nodes)) {
            continue;
        }
        if (container_flags_of_command(arena, line, &step->flags, &err) < 0) {
            plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "container line: %s", err.msg));
        }
        return;
    }
    /* The bundled workload's ranks find each other by the nodes' own addresses. */
    step->flags.is_host_net = true;
    step->flags.wants_gpus = step->gpus_per_node > 0;
}

void plan_choose_image(struct arena *arena, const struct planner_opts *opts,
                       const struct report_case *c, struct plan_step *step)
{
    struct str id = opts->profile == PROFILE_SMOKE && str_eq_z(c->framework, "reperf")
                        ? STR_LIT(RUN_IMAGE_SMOKE)
                        : c->stack->image;
    const struct plan_image *given;
    if (opts->inventory->runtime == RUNTIME_NONE) {
        return;
    }
    if (!id.ptr) {
        plan_cannot(step, ERR_CONTAINER, "the report's data names no image for this case");
        return;
    }
    given = image_given(opts, id);
    step->image = id;
    step->image_name = given ? given->name : id;
    step->image_digest = given ? given->digest : STR_EMPTY;
    step->image_id = given ? given->config : STR_EMPTY;
    take_flags(arena, c, step);
    if (!step->image_digest.ptr) {
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena,
                                 "image %.*s is not pinned: reperf lock image:%.*s, or --image "
                                 "%.*s=NAME@sha256:...",
                                 STR_ARG(id), STR_ARG(id), STR_ARG(id)));
    }
    plan_set_condition(step, "image", step->image_digest);
}
