/* SPDX-License-Identifier: Apache-2.0 */
/* Where the steps of a plan run: ranks, nodes, image. */
#include "base/base.h"

#include "report/hostlist.h"
#include "report/wants.h"
#include "run/planner_impl.h"
#include "store/image_store.h"

/* "local" where that is all, or the nodes that the case is fixed to; else how many of which inventory: the runner chooses those that are
   free. */
static void name_nodes(struct arena *arena, const struct inventory *inventory,
                       struct plan_step *step)
{
    const struct report_case *c = step->bound.of_case;
    if (c->n_on) {
        step->node = hostlist_fold(arena, c->on, c->n_on);
        return;
    }
    const char *text = arena_printf(arena, "%lld of %.*s (%zu nodes)", (long long)step->n_nodes,
                                    STR_ARG(inventory->id), inventory->n_nodes);
    step->node = inventory->is_local ? STR_LIT(INVENTORY_LOCAL) : str_of(text);
}

void plan_place_smoke(struct arena *arena, const struct planner_opts *opts,
                      const struct report_case *c, struct plan_step *step)
{
    int64_t n_there = (int64_t)opts->inventory->n_nodes;
    step->n_ranks = plan_smoke_ranks(c);
    step->n_nodes = c->nodes < SMOKE_RANKS_MAX ? c->nodes : SMOKE_RANKS_MAX;
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
    step->n_ranks = plan_full_ranks(c);
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
                                 opts->inventory->n_nodes),
                    NULL);
    }
    if (n_fit < c->nodes) {
        plan_cannot(step, ERR_NODE,
                    arena_printf(arena, "needs %lld GPUs a node: %s has %lld",
                                 (long long)c->gpus_per_node,
                                 opts->inventory->is_local ? "this machine" : "no other node",
                                 (long long)most),
                    NULL);
    }
}

/* ---- image ---- */

static const struct plan_image *image_given(const struct planner_opts *opts, struct str id)
{
    return STR_NAMED(opts->images, opts->n_images, id, id);
}

bool plan_is_built(const struct planner_opts *opts, struct str id)
{
    const struct plan_image *given = id.ptr ? image_given(opts, id) : NULL;
    return given && given->is_built;
}

static struct str container_line(const struct planner_opts *opts, const struct report_case *c,
                                 const struct recipe *recipe)
{
    const struct stack *stack = c->stack;
    if (opts->address.ptr) {
        return STR_EMPTY;
    }
    if (recipe->container.ptr || opts->profile == PROFILE_SMOKE) {
        return recipe->container;
    }
    for (size_t idx = 0; idx < stack->n_commands; idx++) {
        const struct command *command = &stack->commands[idx];
        if (str_eq_z(command->purpose, "container") &&
            (command->nodes == 0 || command->nodes == c->nodes)) {
            return command->works.ptr ? command->works : command->printed;
        }
    }
    return STR_EMPTY;
}

/* Of images of the same programs one whose CUDA the nodes' driver runs. */
static struct str image_for_driver(struct arena *arena, const struct planner_opts *opts,
                                   struct str id, struct plan_step *step)
{
    struct str driver = inventory_driver(opts->inventory);
    const struct plan_image *image = image_given(opts, id);
    if (!image || step->gpus_per_node == 0 || driver_runs_cuda(driver, image->cuda)) {
        return id;
    }
    for (size_t idx = 0; idx < image->n_instead; idx++) {
        const struct plan_image *other = image_given(opts, image->instead[idx]);
        if (other && driver_runs_cuda(driver, other->cuda)) {
            return other->id;
        }
    }
    plan_cannot(step, ERR_NODE,
                arena_printf(arena, "driver %.*s is too old for image %.*s, which needs %s",
                             STR_ARG(driver), STR_ARG(id), cuda_needs_driver(image->cuda)),
                NULL);
    return id;
}

/* Without a line that starts it, ranks find each other by the nodes' own addresses. */
static void take_flags(struct arena *arena, const struct planner_opts *opts, struct str line,
                       struct plan_step *step)
{
    struct err err = {0};
    if (!line.ptr) {
        step->flags.is_host_net = !opts->address.ptr || step->n_nodes > 1;
        step->flags.wants_gpus = step->gpus_per_node > 0;
    } else if (container_flags_of_command(arena, line, &step->flags, &err) < 0) {
        plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "container line: %s", err.msg), NULL);
    }
    if (err.code == ERR_NONE &&
        inventory_add_flags(arena, opts->inventory, step->n_nodes, &step->flags, &err) < 0) {
        plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "%s", err.msg), NULL);
    }
}

/* given NULL: not even described. */
static void need_pin(struct arena *arena, const struct inventory *inventory, struct str id,
                     const struct plan_image *given, struct plan_step *step)
{
    if (given && given->is_built) {
        /* Without a registry the nodes get it from the store. */
        struct str source = given->source;
        const char *to =
            inventory->registry.ptr
                ? arena_printf(arena, "--push %.*s/%.*s", STR_ARG(inventory->registry), STR_ARG(id))
                : "--store";
        const char *command = arena_printf(arena, "images/build.sh %.*s %s", STR_ARG(source), to);
        const char *then = inventory->registry.ptr
                               ? arena_printf(arena, "prints what --image %.*s= takes", STR_ARG(id))
                               : "makes it";
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena, "image %.*s is built, not pulled: %s %s", STR_ARG(id),
                                 command, then),
                    command);
        return;
    }
    const char *artifact = arena_printf(arena, "image:%.*s", STR_ARG(id));
    struct step_need need = {
        .cause = ERR_CONTAINER,
        .what =
            str_of(arena_printf(arena,
                                "image %.*s is not pinned: reperf data lock image:%.*s, or --image "
                                "%.*s=NAME@sha256:...",
                                STR_ARG(id), STR_ARG(id), STR_ARG(id)))};
    if (given) {
        need.artifact = str_of(artifact);
        need.is_lock = true;
        need.command = str_of(arena_printf(arena, "reperf data lock %s", artifact));
    }
    plan_lacks(step, &need);
}

/* The nodes get it from the inventory's registry, else from the store. */
static void need_stored(struct planner *p, struct str id, const struct plan_image *given,
                        struct plan_step *step)
{
    const struct planner_opts *opts = p->opts;
    const char *whole =
        arena_printf(p->arena, "%.*s@%.*s", STR_ARG(given->name), STR_ARG(given->digest));
    const char *artifact = given->is_given ? whole : id.ptr;
    struct image_info info;
    struct err absent = {0};
    struct err whole_absent = {0};
    if (opts->inventory->registry.ptr ||
        (opts->store && (image_open(p->arena, opts->store, id.ptr, &info, &absent) == 0 ||
                         image_open(p->arena, opts->store, whole, &info, &whole_absent) == 0))) {
        return;
    }
    artifact = arena_printf(p->arena, "image:%s", artifact);
    plan_lacks(
        step,
        &(struct step_need){
            .cause = ERR_FETCH,
            .what = str_of(arena_printf(p->arena,
                                        "image %.*s is neither in the store nor in a registry of "
                                        "the inventory's",
                                        STR_ARG(id))),
            .command = str_of(arena_printf(p->arena, "reperf data fetch %s", artifact)),
            .artifact = str_of(artifact)});
}

/* One that is built and was not given is the one that the store has under its id. */
static void take_built(struct planner *p, struct str id, struct plan_step *step)
{
    struct image_info info;
    struct err absent = {0};
    if (p->opts->store &&
        image_open(p->arena, p->opts->store, str_z(p->arena, id), &info, &absent) == 0) {
        step->image_digest = str_dup(p->arena, str_of(oci_digest_of(info.pins.manifest).text));
        step->image_id = str_dup(p->arena, str_of(oci_digest_of(info.pins.config).text));
    }
}

void plan_choose_image(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                       struct plan_step *step)
{
    struct arena *arena = p->arena;
    const struct planner_opts *opts = p->opts;
    struct str id = recipe->image;
    if (opts->inventory->runtime == RUNTIME_NONE && !id.ptr) {
        plan_set_condition(step, "image", STR_LIT("none"));
        return;
    }
    if (opts->inventory->runtime == RUNTIME_NONE) {
        if (step->n_argv && !str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
            step->image = step->image_name = id; /* to be got all the same */
            plan_cannot(step, ERR_CONTAINER,
                        arena_printf(arena,
                                     "runs in image %.*s: the nodes have runtime none "
                                     "(with docker on this machine: --nodes local-docker)",
                                     STR_ARG(id)),
                        NULL);
        }
        return;
    }
    if (!id.ptr) {
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena,
                                 "names no image (--image gives one), and so needs nodes with "
                                 "runtime none: %.*s has "
                                 "runtime %s",
                                 STR_ARG(opts->inventory->id),
                                 RUNTIME_KIND_NAMES[opts->inventory->runtime]),
                    NULL);
        return;
    }
    id = image_for_driver(arena, opts, id, step);
    const struct plan_image *given = image_given(opts, id);
    step->image = id;
    step->image_name = given ? given->name : id;
    step->image_digest = given ? given->digest : STR_EMPTY;
    step->image_id = given ? given->config : STR_EMPTY;
    step->image_cuda = given ? given->cuda : STR_EMPTY;
    take_flags(arena, opts, container_line(opts, c, recipe), step);
    if (!step->image_digest.ptr && plan_is_built(opts, id) && !opts->inventory->registry.ptr) {
        take_built(p, id, step);
    }
    if (!step->image_digest.ptr) {
        need_pin(arena, opts->inventory, id, given, step);
    } else if (given->digest.ptr) {
        need_stored(p, id, given, step);
    }
    plan_set_condition(step, "image", step->image_digest);
}
