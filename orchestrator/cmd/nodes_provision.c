/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes provision`: puts what a run needs on the nodes in advance. Images here. */
#include "base/base.h"

#include "base/table.h"
#include "cmd/nodes.h"
#include "cmd/nodes_fleet.h"
#include "cmd/provision_files.h"
#include "fleet/node_image.h"
#include "load/load_inventory.h"
#include "report/hostlist.h"
#include "store/image_spec.h"
#include "sys/stop.h"

#define OUTPUT_MAX (16u << 20)

struct provision_args {
    struct opt_list sources;
    const char *data;
    bool wants_program;
    struct opt_list images;
    const char *runtime;
    const char *locks;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct provision_args, data, "data", "packed data, as run --data takes it",
        .value = "NAME"),
    OPT(struct provision_args, wants_program, "program",
        "the bundled workload's program, which runtime none runs"),
    OPT(struct provision_args, sources, "source",
        "files of source:URL@COMMIT from the store; may be given more than once",
        .value = "SOURCE"),
    OPT(struct provision_args, images, "image",
        "an image by its id or reference; may be given more than once", .value = "IMAGE"),
    OPT(struct provision_args, runtime, "runtime",
        "docker, podman, or, experimental, apptainer or enroot; default: the inventory's",
        .value = "ENGINE"),
    OPT(struct provision_args, locks, "locks",
        "pins are taken from the locks there; default manifests/locks", .value = "DIR"),
    OPT(struct provision_args, want_json, "json", "print one JSON document"),
    OPT_END,
};

struct provision {
    const struct cmd_ctx *ctx;
    const struct provision_args *args;
    struct arena *arena;
    struct fleet *fleet;
    struct store *store; /* NULL: not needed */
    enum runtime_kind runtime;
    struct json_out *out; /* inside the document */
    struct table *table;
    struct err first; /* of the first node that failed */
};

/* ---- images ---- */

static void tell_node(struct provision *provision, const struct fleet_node *node,
                      const struct node_image_node *result)
{
    bool is_bad = node->err.code != ERR_NONE;
    jw_object(provision->out, NULL);
    jw_str(provision->out, "node", node->spec->name);
    jw_z(provision->out, "way", is_bad ? NULL : node_image_way_name(result->way));
    jw_str(provision->out, "id", is_bad ? STR_EMPTY : result->id);
    jw_z(provision->out, "error", is_bad ? node->err.msg : NULL);
    jw_end_object(provision->out);
}

static struct str row_way(const struct fleet_node *node, const struct node_image_node *result)
{
    return node->err.code != ERR_NONE ? STR_LIT("failed")
                                      : str_of(node_image_way_name(result->way));
}

static struct str row_text(const struct fleet_node *node, const struct node_image_node *result)
{
    return node->err.code != ERR_NONE ? str_of(node->err.msg) : result->id;
}

/* Nodes with the same result are one row, at the place of the first of them. */
static void add_rows(struct provision *provision, const char *name,
                     const struct node_image_node *results)
{
    const struct fleet *fleet = provision->fleet;
    struct str *names = arena_array(provision->arena, struct str, fleet->n_nodes);
    bool *is_told = arena_array(provision->arena, bool, fleet->n_nodes);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        struct str way = row_way(&fleet->nodes[idx], &results[idx]);
        struct str text = row_text(&fleet->nodes[idx], &results[idx]);
        size_t n = 0;
        if (is_told[idx]) {
            continue;
        }
        for (size_t at = idx; at < fleet->n_nodes; at++) {
            if (str_eq(row_way(&fleet->nodes[at], &results[at]), way) &&
                str_eq(row_text(&fleet->nodes[at], &results[at]), text)) {
                names[n++] = fleet->nodes[at].spec->name;
                is_told[at] = true;
            }
        }
        table_add(provision->table, hostlist_fold(provision->arena, names, n));
        table_addf(provision->table, "image %s", name);
        table_add(provision->table, way);
        table_add(provision->table, text);
    }
}

static void tell_image(struct provision *provision, const char *name,
                       const struct node_image_report *report)
{
    jw_object(provision->out, NULL);
    jw_z(provision->out, "image", name);
    jw_str(provision->out, "digest", report->image.digest);
    jw_str(provision->out, "id", report->image.id);
    jw_i64(provision->out, "tar_bytes", (int64_t)report->tar_bytes);
    jw_i64(provision->out, "head_bytes", (int64_t)report->head_bytes);
    jw_array(provision->out, "nodes");
    for (size_t idx = 0; idx < provision->fleet->n_nodes; idx++) {
        tell_node(provision, &provision->fleet->nodes[idx], &report->nodes[idx]);
    }
    jw_end_array(provision->out);
    jw_end_object(provision->out);
    add_rows(provision, name, report->nodes);
}

static int bring_image(struct provision *provision, const char *name, struct err *err)
{
    const char *equals = strchr(name, '='); /* as `run --image` has it: ID=NAME@DIGEST */
    const struct node_image_opts opts = {.store = provision->store, .kind = provision->runtime};
    struct node_image_report report;
    struct image_spec spec;
    name = equals ? equals + 1 : name;
    if (image_spec_load(provision->arena, provision->ctx->root, provision->args->locks, name, &spec,
                        err) < 0 ||
        node_images_provide(provision->arena, provision->fleet, &spec, &opts, &report, err) < 0) {
        return -1;
    }
    tell_image(provision, name, &report);
    if (provision->first.code == ERR_NONE &&
        fleet_first_error(provision->fleet, &provision->first) < 0) {
        (void)!err_wrap(&provision->first, "image %s", name);
    }
    return 0;
}

/* ---- the command ---- */

static int choose_runtime(const struct provision_args *args, const struct inventory *inventory,
                          enum runtime_kind *ret_runtime, struct err *err)
{
    if (nodes_runtime(args->runtime, inventory, ret_runtime, err) < 0) {
        return -1;
    }
    if (args->images.n && *ret_runtime == RUNTIME_NONE) {
        return err_set(err, ERR_USAGE,
                       "inventory %.*s has runtime none: --runtime says what takes the images",
                       STR_ARG(inventory->id));
    }
    return 0;
}

static int bring_all(struct provision *provision, struct err *err)
{
    jw_array(provision->out, "images");
    for (size_t idx = 0; idx < provision->args->images.n; idx++) {
        if (bring_image(provision, provision->args->images.items[idx], err) < 0) {
            return -1;
        }
    }
    jw_end_array(provision->out);
    const struct provision_files files = {.ctx = provision->ctx,
                                          .store = provision->store,
                                          .locks = provision->args->locks,
                                          .wants_program = provision->args->wants_program,
                                          .data = provision->args->data,
                                          .sources = provision->args->sources};
    if (provision_files_bring(provision->arena, &files, provision->fleet, provision->out,
                              provision->table, err) < 0) {
        return -1;
    }
    if (provision_files_any(&files) && provision->first.code == ERR_NONE &&
        fleet_first_error(provision->fleet, &provision->first) < 0) {
        (void)!err_wrap(&provision->first, "files");
    }
    return 0;
}

static int provide(struct provision *provision, struct err *err)
{
    static const struct table_column COLUMNS[] = {
        {"nodes", false}, {"what", false}, {"result", false}, {"", false}};
    CLEANUP(table) struct table table;
    CLEANUP(strbuf) struct strbuf text;
    struct json_out out;
    strbuf_init(&text, OUTPUT_MAX);
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    provision->out = &out;
    provision->table = &table;
    jw_document(&out, &text);
    jw_str(&out, "inventory", provision->fleet->inventory->id);
    if (bring_all(provision, err) < 0) {
        return -1;
    }
    jw_end_object(&out);
    if (!provision->args->want_json) {
        strbuf_clear(&text);
        table_render(&table, &text);
    }
    if (cmd_print(strbuf_str(&text), err) < 0) {
        return -1;
    }
    if (provision->first.code != ERR_NONE) {
        *err = provision->first;
        return -1;
    }
    return 0;
}

static int open_all(struct provision *provision, const struct inventory *inventory, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    CLEANUP(store) struct store store = STORE_EMPTY;
    CLEANUP(fleet) struct fleet fleet = {0};
    const struct fleet_opts opts = {.work_folder = provision->ctx->state,
                                    .clock = provision->ctx->clock,
                                    .should_stop = stop_is_asked};
    loop_init(&loop, provision->ctx->clock);
    if (!inventory->registry.ptr || provision->args->sources.n) {
        if (store_open(provision->arena, provision->ctx->store, &store, err) < 0) {
            return -1;
        }
        provision->store = &store;
    }
    if (fleet_open(&fleet, &loop, inventory, &opts, err) < 0) {
        return -1;
    }
    provision->fleet = &fleet;
    return provide(provision, err);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct provision_args args = {0};
    struct provision provision = {.ctx = ctx, .args = &args, .arena = &arena};
    struct inventory inventory;
    int result = -1;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        /* what was parsed is released below */
    } else if (operands.n != 1) {
        (void)!err_set(err, ERR_USAGE, "nodes provision: expected one inventory");
    } else if (args.images.n + args.sources.n == 0 && !args.data && !args.wants_program) {
        (void)!err_set(err, ERR_USAGE,
                       "nodes provision: nothing to bring: expected --image, --data, --program or "
                       "--source");
    } else if (inventory_load(&arena, ctx->root, operands.items[0], &inventory, err) == 0 &&
               choose_runtime(&args, &inventory, &provision.runtime, err) == 0) {
        stop_hold();
        result = open_all(&provision, &inventory, err);
        result = result < 0 ? stop_end(err) : result;
    }
    VEC_RELEASE(&args.images);
    VEC_RELEASE(&args.sources);
    return result;
}

const struct cmd NODES_PROVISION = {"provision", "INVENTORY", "put what a run needs on the nodes",
                                    OPTS, run};
