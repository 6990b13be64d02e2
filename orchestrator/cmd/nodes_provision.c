/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes provision`: puts what takes long on the nodes in advance: images and packed data. */
#include "base/base.h"

#include "cmd/nodes.h"
#include "codec/json_document.h"
#include "fleet/node_image.h"
#include "run/run_data.h"
#include "store/image_store.h"

struct args {
    const char *data;
    struct opt_list images;
    const char *runtime;
    const char *locks;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, data, "data", "packed data, as run --data takes it", .value = "NAME"),
    OPT(struct args, images, "image",
        "an image by its id or reference; may be given more than once", .value = "IMAGE"),
    OPT(struct args, runtime, "runtime", "docker or podman; default: the inventory's",
        .value = "ENGINE"),
    OPT(struct args, locks, "locks", "pins are taken from the locks there; default manifests/locks",
        .value = "DIR"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

struct provision {
    struct strbuf *text;
    bool *is_said;
    const struct cmd_ctx *ctx;
    const struct args *args;
    struct arena *arena;
    struct nodes_fleet *nodes;
    struct store *store; /* not open: not needed */
    enum runtime_kind runtime;
    struct json_out *out; /* inside the document */
    struct table *table;
    struct err first; /* of the first node that failed */
    /* The image that was brought last. */
    const char *image;
    const struct node_image_node *results;
};

static void note_failure(struct provision *p, const char *what)
{
    if (p->first.code == ERR_NONE && fleet_first_error(&p->nodes->fleet, &p->first) < 0) {
        (void)!err_wrap(&p->first, "%s", what);
    }
}

/* ---- images ---- */

static void tell_node(struct provision *p, const struct fleet_node *node,
                      const struct node_image_node *result)
{
    bool is_bad = node->err.code != ERR_NONE;
    jw_object(p->out, NULL);
    jw_str(p->out, "node", node->spec->name);
    jw_z(p->out, "way", is_bad ? NULL : NODE_IMAGE_WAY_NAMES[result->way]);
    jw_str(p->out, "id", is_bad ? STR_EMPTY : result->id);
    jw_z(p->out, "error", is_bad ? node->err.msg : NULL);
    jw_end_object(p->out);
}

static struct str way_of(const struct provision *p, size_t node_idx)
{
    return p->nodes->fleet.nodes[node_idx].err.code != ERR_NONE
               ? STR_LIT("failed")
               : str_of(NODE_IMAGE_WAY_NAMES[p->results[node_idx].way]);
}

static struct str text_of(const struct provision *p, size_t node_idx)
{
    const struct err *why = &p->nodes->fleet.nodes[node_idx].err;
    return why->code != ERR_NONE ? str_of(why->msg) : p->results[node_idx].id;
}

static struct str result_of(void *ctx, size_t node_idx)
{
    struct provision *p = ctx;
    return str_printf(p->arena, "%.*s\n%.*s", STR_ARG(way_of(p, node_idx)),
                      STR_ARG(text_of(p, node_idx)));
}

/* Nodes with the same result are one row, at the place of the first of them. */
static void add_row(void *ctx, struct str names, size_t node_idx)
{
    struct provision *p = ctx;
    TABLE_ADD(p->table, names, table_text(p->table, "image %s", p->image), way_of(p, node_idx),
              text_of(p, node_idx));
}

static int bring_image(struct provision *p, const char *name, struct err *err)
{
    const char *equals = strchr(name, '='); /* as `run --image` has it: ID=NAME@DIGEST */
    const struct node_image_opts opts = {.store = p->store->folder ? p->store : NULL,
                                         .kind = p->runtime};
    struct node_image_report report;
    struct image_spec spec;
    p->image = equals ? equals + 1 : name;
    if (image_spec_load(p->arena, p->ctx->root, p->args->locks, p->image, &spec, err) < 0 ||
        node_images_provide(p->arena, &p->nodes->fleet, &spec, &opts, &report, err) < 0) {
        return -1;
    }
    p->results = report.nodes;
    jw_object(p->out, NULL);
    jw_z(p->out, "image", p->image);
    jw_str(p->out, "digest", report.image.digest);
    jw_str(p->out, "id", report.image.id);
    jw_i64(p->out, "tar_bytes", (int64_t)report.tar_bytes);
    jw_i64(p->out, "head_bytes", (int64_t)report.head_bytes);
    jw_array(p->out, "nodes");
    for (size_t idx = 0; idx < p->nodes->fleet.n_nodes; idx++) {
        tell_node(p, &p->nodes->fleet.nodes[idx], &report.nodes[idx]);
    }
    jw_end_array(p->out);
    jw_end_object(p->out);
    nodes_each_group(p->nodes, p, result_of, add_row);
    note_failure(p, arena_printf(p->arena, "image %s", p->image));
    return 0;
}

/* ---- data ---- */

static int bring_data(struct provision *p, struct err *err)
{
    struct fleet *fleet = &p->nodes->fleet;
    const char *name = p->args->data;
    struct stage_report report;
    struct stage_item item;
    struct stage_out stage;
    struct plan_data data;
    if (!name) {
        jw_null(p->out, "files");
        return 0;
    }
    stage_out_init(&stage, p->ctx, false);
    if (run_data_find(p->arena, p->ctx->root, p->ctx->store, name, &data, err) < 0 ||
        stage_packed_item(p->arena, data.folder.ptr, &item, err) < 0 ||
        stage_out_run(p->arena, &stage, fleet, (struct stage_list){&item, 1}, &report, err) < 0) {
        return -1;
    }
    jw_object(p->out, "files");
    stage_out_json(p->out, fleet, &item, 1, &report);
    jw_end_object(p->out);
    for (size_t node = 0; node < fleet->n_nodes; node++) {
        TABLE_ADD(p->table, fleet->nodes[node].spec->name, str_of(name));
        stage_out_row(p->table, &fleet->nodes[node], &report.nodes[node], 0);
    }
    note_failure(p, "files");
    return 0;
}

/* ---- the command ---- */

static int choose_runtime(struct provision *p, struct err *err)
{
    const struct inventory *inventory = &p->nodes->inventory;
    const char *option = p->args->runtime;
    p->runtime = inventory->runtime;
    if (option && !runtime_kind_of_name(str_of(option), &p->runtime)) {
        return err_set(err, ERR_USAGE, "--runtime %.60s: expected docker or podman", option);
    }
    if (p->args->images.n && p->runtime == RUNTIME_NONE) {
        return err_set(
            err, ERR_USAGE,
            "inventory %.*s has runtime none: --runtime names the engine that takes the images",
            STR_ARG(inventory->id));
    }
    return 0;
}

static int bring_all(struct provision *p, struct err *err)
{
    jw_array(p->out, "images");
    for (size_t idx = 0; idx < p->args->images.n; idx++) {
        if (bring_image(p, p->args->images.items[idx], err) < 0) {
            return -1;
        }
    }
    jw_end_array(p->out);
    return bring_data(p, err);
}

static int provide(struct provision *p, struct err *err)
{
    CLEANUP(table) struct table table = {0};
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct json_out out;
    p->store = &store;
    p->out = &out;
    p->table = &table;
    if (choose_runtime(p, err) < 0 || (!p->nodes->inventory.registry.ptr &&
                                       store_open(p->arena, p->ctx->store, &store, err) < 0)) {
        return -1;
    }
    table = table_of("nodes|what|result|");
    jw_document(&out, p->text);
    jw_str(&out, "inventory", p->nodes->inventory.id);
    if (bring_all(p, err) < 0) {
        return -1;
    }
    jw_end_object(&out);
    if (!p->args->want_json) {
        strbuf_clear(p->text);
        table_render(&table, p->text);
    }
    *p->is_said = true;
    return p->first.code != ERR_NONE ? err_pass(err, &p->first) : 0;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    CLEANUP(nodes_fleet) struct nodes_fleet nodes = {0};
    struct provision provision = {.ctx = ctx,
                                  .args = args,
                                  .arena = call->arena,
                                  .nodes = &nodes,
                                  .text = call->out,
                                  .is_said = &call->is_said};
    if (args->images.n == 0 && !args->data) {
        return err_set(err, ERR_USAGE,
                       "nodes provision: nothing to bring: expected --image or --data");
    }
    const struct nodes_fleet_opts opts = {.inventory = call->operands.items[0]};
    if (nodes_open(call->arena, ctx, &opts, &nodes, err) < 0) {
        return -1;
    }
    return provide(&provision, err);
}

const struct cmd NODES_PROVISION =
    CMD("provision", "INVENTORY", "put what a run needs on the nodes", OPTS, run,
        CMD_ARGS(struct args), CMD_OPERANDS(1, 1, "nodes provision: expected one inventory"));
