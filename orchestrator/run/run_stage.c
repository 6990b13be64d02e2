/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps need on the nodes: images, the bundled workload's program, packed data. What is there already stays. */
#include "base/base.h"

#include "run/run_impl.h"

#include "fleet/node_image.h"
#include "fleet/stage.h"

static bool is_to_run(const struct runner *r, const struct plan_step *step)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].step == step && r->units[idx].state < UNIT_FINISHED) {
            return true;
        }
    }
    return false;
}

/* ---- images ---- */

const struct runtime_image *run_image_of(const struct runner *r, const struct plan_step *step)
{
    for (size_t idx = 0; idx < r->images.n; idx++) {
        if (str_eq(r->images.items[idx].digest, step->image_digest)) {
            return &r->images.items[idx];
        }
    }
    return NULL;
}

/* In the store an image is kept under its id, or under the reference that it was fetched by. */
static const char *name_in_store(struct runner *r, const struct store *store,
                                 const struct plan_step *step)
{
    struct image_info info;
    struct err ignored = {0};
    const char *id = str_z(r->arena, step->image);
    return !store || image_open(r->arena, store, id, &info, &ignored) == 0
               ? id
               : arena_printf(r->arena, "%.*s@%.*s", STR_ARG(step->image_name),
                              STR_ARG(step->image_digest));
}

static int spec_of(struct runner *r, const struct plan_step *step, struct image_spec *ret_spec,
                   struct err *err)
{
    struct image_spec spec = {.platform = oci_platform_default(), .bytes = -1};
    if (oci_ref_parse(r->arena, step->image_name, &spec.ref, err) < 0 ||
        oci_digest_parse(step->image_digest, spec.pins.digest, err) < 0) {
        return -1;
    }
    spec.pins.has_digest = true;
    if (step->image_id.ptr) { /* of a lock: then the digest is the manifest's own */
        spec.pins.has_manifest = spec.pins.has_config = true;
        memcpy(spec.pins.manifest, spec.pins.digest, SHA256_BYTES);
        if (oci_digest_parse(step->image_id, spec.pins.config, err) < 0) {
            return -1;
        }
    }
    *ret_spec = spec;
    return 0;
}

/* A node that answers and gets no image is not a node that is lost. */
static void blame_registry(struct runner *r, int n_failed)
{
    for (size_t idx = 0; n_failed > 0 && idx < r->fleet.n_nodes; idx++) {
        struct err *why = &r->fleet.nodes[idx].err;
        if (!r->fleet.nodes[idx].is_left_out &&
            (why->code == ERR_NET || why->code == ERR_TIMEOUT)) {
            why->code = ERR_CONTAINER;
        }
    }
}

static int provide_image(struct runner *r, struct store *store, const struct plan_step *step,
                         struct err *err)
{
    const struct node_image_opts opts = {.self = r->opts->self,
                                         .deadline_ns = r->frozen.plan.deadline_s * NS_PER_S};
    struct node_image_report report = {0};
    struct event_fields fields = {.case_id = step->case_id, .text = step->image_digest};
    struct image_spec spec;
    int n_failed;
    if (spec_of(r, step, &spec, err) < 0) {
        return err_wrap(err, "image %.*s", STR_ARG(step->image));
    }
    spec.name = name_in_store(r, store, step);
    n_failed = node_images_provide(r->arena, &r->fleet, store, r->frozen.plan.runtime, &spec, &opts,
                                   &report, err);
    if (n_failed < 0 && err->code == ERR_NOT_FOUND) {
        err->code = ERR_FETCH;
        return err_wrap(err, "image %.*s: reperf fetch %s brings it", STR_ARG(step->image),
                        spec.name);
    }
    blame_registry(r, n_failed);
    if (n_failed < 0 || run_judge_nodes(r, n_failed, err) < 0) {
        return err_wrap(err, "image %.*s", STR_ARG(step->image));
    }
    VEC_PUSH(&r->images, report.image);
    struct runtime_image *image = &r->images.items[r->images.n - 1];
    image->digest = step->image_digest;
    if (!image->id
             .ptr) { /* no node is left that has it: what is taken up again is given a name, and never started */
        image->id = image->file = image->digest;
    }
    events_write(&r->events, EV_IMAGE_PROVIDED, &fields);
    return 0;
}

static int provide_images(struct runner *r, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    bool has_registry = r->fleet.inventory->registry.ptr != NULL;
    const struct plan *plan = &r->frozen.plan;
    if (plan->runtime == RUNTIME_NONE) {
        return 0;
    }
    if (!has_registry && store_open(r->arena, r->opts->store, &store, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < plan->n_steps && !r->stop_signal; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        if (is_to_run(r, step) && step->image_digest.ptr && !run_image_of(r, step) &&
            provide_image(r, has_registry ? NULL : &store, step, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- program and data ---- */

static bool needs_program(const struct runner *r)
{
    const struct plan *plan = &r->frozen.plan;
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        if (plan->runtime == RUNTIME_NONE && is_to_run(r, &plan->steps[idx]) &&
            str_eq_z(plan->steps[idx].argv[0], TRAIN_PROGRAM)) {
            return true;
        }
    }
    return false;
}

static int stage_files(struct runner *r, struct err *err)
{
    struct stage_item items[2];
    struct stage_report report = {0};
    const struct plan_data *data = &r->frozen.plan.data;
    /* Packed data are large, and read for their digests once. */
    const struct stage_opts opts = {.self = r->opts->self,
                                    .cache_path =
                                        fs_join(r->arena, r->opts->state, "cache/digests"),
                                    .clock = r->opts->clock};
    const char *train = planner_train_path(r->arena, r->opts->self);
    bool has_program = needs_program(r);
    size_t n = 0;
    int n_failed;
    if (has_program && stage_program_item(r->arena, train, &items[n++], err) < 0) {
        return -1;
    }
    if (data->folder.ptr && stage_packed_item(r->arena, data->folder.ptr, &items[n++], err) < 0) {
        return -1;
    }
    if (n == 0) {
        return 0;
    }
    n_failed = stage_items(r->arena, &r->fleet, &opts, items, n, &report, err);
    if (run_judge_nodes(r, n_failed, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        if (!r->nodes[idx].is_bad) {
            r->nodes[idx].program = has_program ? report.nodes[idx].paths[0] : NULL;
            r->nodes[idx].data = data->folder.ptr ? report.nodes[idx].paths[n - 1] : NULL;
        }
    }
    return 0;
}

int run_stage(struct runner *r, struct err *err)
{
    if (provide_images(r, err) < 0) {
        return -1;
    }
    return r->stop_signal ? 0 : stage_files(r, err);
}
