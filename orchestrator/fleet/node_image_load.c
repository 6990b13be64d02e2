/* SPDX-License-Identifier: Apache-2.0 */
/* From the store to the nodes without a registry: one tar, passed on by fleet/stage, given to each node's engine. */
#include "base/base.h"

#include "fleet/node_image_impl.h"

#include <sys/stat.h>
#include <unistd.h>

#include "fleet/stage.h"
#include "store/image_export.h"

#define OUTPUT_MAX (64u << 10)
#define RM_NS      (60 * NS_PER_S)

/* $1 engine, $2 tar, $3 and $4 the ids that it may be known by afterwards. */
static const char LOAD[] =
    "out=$(\"$1\" load --input \"$2\" 2>&1) || { printf '%s\\n' \"$out\" | tail -n 3; exit 1; }\n"
    "for name in \"$3\" \"$4\"; do\n"
    "  [ -n \"$name\" ] || continue\n"
    "  id=$(\"$1\" image inspect --format '{{.Id}}' \"$name\" 2>/dev/null) || continue\n"
    "  case $id in sha256:*) echo \"loaded $id\" ;; *) echo \"loaded sha256:$id\" ;; esac\n"
    "  exit 0\n"
    "done\n"
    "echo \"the image was loaded and is not known by its id: manifest verification failed\"\n"
    "exit 1\n";

struct node_load {
    struct provide *provide;
    struct fleet fleet;       /* the nodes that lack it: remotes and specs are those of provide's */
    size_t *node_idx;         /* of each, in provide's fleet */
    const char **tars;        /* on each */
    const char **staged_tars; /* of all that were staged to */
    struct fleet_result *results;
    struct image_info info;
};

static void gather(struct node_load *load)
{
    struct provide *provide = load->provide;
    const struct fleet *all = provide->fleet;
    load->fleet = *all;
    load->fleet.nodes = arena_array(provide->arena, struct fleet_node, all->n_nodes + 1);
    load->fleet.n_nodes = 0;
    load->node_idx = arena_array(provide->arena, size_t, all->n_nodes + 1);
    load->tars = arena_array(provide->arena, const char *, all->n_nodes + 1);
    load->results = arena_array(provide->arena, struct fleet_result, all->n_nodes + 1);
    for (size_t idx = 0; idx < all->n_nodes; idx++) {
        if (!all->nodes[idx].is_left_out && all->nodes[idx].err.code == ERR_NONE &&
            !provide->report.nodes[idx].id.ptr) {
            load->node_idx[load->fleet.n_nodes] = idx;
            load->fleet.nodes[load->fleet.n_nodes++] = all->nodes[idx];
        }
    }
}

/* Nodes that failed are left out of what follows; their errors go back to provide's fleet. */
static void drop_failed(struct node_load *load)
{
    size_t n = 0;
    for (size_t idx = 0; idx < load->fleet.n_nodes; idx++) {
        struct fleet_node *node = &load->fleet.nodes[idx];
        if (node->err.code != ERR_NONE) {
            load->provide->fleet->nodes[load->node_idx[idx]].err = node->err;
            continue;
        }
        load->fleet.nodes[n] = *node;
        load->tars[n] = load->tars[idx];
        load->node_idx[n++] = load->node_idx[idx];
    }
    load->fleet.n_nodes = n;
}

static int open_image(struct node_load *load, struct err *err)
{
    struct provide *provide = load->provide;
    const struct image_pins *have = &load->info.pins;
    if (!provide->store) {
        return err_set(err, ERR_NOT_FOUND, "image %s: no registry and no store to take it from",
                       provide->spec->name);
    }
    if (image_open(provide->arena, provide->store, provide->spec->name, &load->info, err) < 0) {
        return err_wrap(err, "the nodes lack image %s (reperf data fetch image:%s gets it here)",
                        provide->spec->name, provide->spec->name);
    }
    if (!node_image_is_pinned(&provide->spec->pins, have)) {
        return err_set(err, ERR_INTEGRITY, "image %s: the store has another than the pinned one",
                       provide->spec->name);
    }
    oci_digest_text(have->config, provide->config);
    oci_digest_text(have->manifest, provide->manifest);
    return 0;
}

/* ---- this machine ---- */

static int load_here(struct node_load *load, struct err *err)
{
    struct provide *provide = load->provide;
    struct fleet_node *node = &provide->fleet->nodes[0];
    enum image_engine engine = provide->kind == RUNTIME_PODMAN ? IMAGE_PODMAN : IMAGE_DOCKER;
    struct image_loaded loaded;
    if (image_load(
            provide->arena, provide->store, &load->info,
            &(struct image_load_opts){.engine = engine, .should_stop = provide->fleet->should_stop},
            &loaded, &node->err) < 0) {
        return node->err.code == ERR_INTERRUPTED
                   ? err_set(err, ERR_INTERRUPTED, "stopped by a signal")
                   : 1;
    }
    provide->report.nodes[0] = (struct node_image_node){
        loaded.was_there ? NODE_IMAGE_THERE : NODE_IMAGE_LOADED, loaded.id};
    return 0;
}

/* ---- the nodes ---- */

static int stage_tar(struct node_load *load, const char *path, struct err *err)
{
    struct provide *provide = load->provide;
    struct digest_value value;
    struct stage_report report;
    struct stat info;
    if (image_export(provide->arena, provide->store, &load->info, path, load->fleet.should_stop,
                     err) < 0 ||
        digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    if (stat(path, &info) < 0) {
        return err_set(err, ERR_IO, "%s: gone", path);
    }
    const struct hex hex = sha256_hex_of(value.sha256);
    const struct stage_item item = {
        .kind = STAGE_FILE,
        .source = path,
        .target = arena_printf(provide->arena, "images/%s.tar", hex.text),
        .sha256_hex = str_of(arena_strndup(provide->arena, hex.text, strlen(hex.text)))};
    const struct stage_opts opts = {.clock = load->fleet.loop->clock};
    if (stage_items(provide->arena, &load->fleet, &opts, (struct stage_list){&item, 1}, &report,
                    err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < load->fleet.n_nodes; idx++) {
        load->tars[idx] = report.nodes[idx].paths ? report.nodes[idx].paths[0] : NULL;
    }
    provide->report.tar_bytes = (uint64_t)info.st_size;
    provide->report.head_bytes = report.head_bytes;
    return 0;
}

static enum step step_load(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct node_load *load = ctx;
    const struct provide *provide = load->provide;
    const char *const args[] = {RUNTIME_KIND_NAMES[provide->kind], load->tars[node_idx],
                                provide->config, provide->manifest, NULL};
    const struct remote_exec exec = {.script = LOAD,
                                     .args = args,
                                     .output = &load->results[node_idx].output,
                                     .deadline_ns = provide->deadline_ns};
    return node->remote->ops->exec(node->remote, &exec, &load->results[node_idx].exit_status, err);
}

/* Of the nodes that were staged to, in that order. */
static enum step step_remove(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct node_load *load = ctx;
    const char *const args[] = {load->staged_tars[node_idx], NULL};
    int status = -1;
    const struct remote_exec exec = {.script = "rm -f \"$1\"",
                                     .args = args,
                                     .output = &load->results[node_idx].output,
                                     .deadline_ns = RM_NS};
    return node->remote->ops->exec(node->remote, &exec, &status, err);
}

static int load_all(struct node_load *load, struct err *err)
{
    int result = fleet_each(&load->fleet, load->provide->deadline_ns, step_load, load, err);
    if (result < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < load->fleet.n_nodes; idx++) {
        struct fleet_node *node = &load->fleet.nodes[idx];
        if (node->err.code == ERR_NONE) {
            (void)!node_image_take(
                load->provide, load->node_idx[idx], load->results[idx].exit_status,
                strbuf_str(&load->results[idx].output), NODE_IMAGE_LOADED, &node->err);
        }
    }
    drop_failed(load);
    return 0;
}

/* The tars are removed last, for all nodes: in a shared work folder the first node must not remove it from the others. */
static int load_nodes(struct node_load *load, const char *tar, struct err *err)
{
    if (stage_tar(load, tar, err) < 0) {
        return -1;
    }
    drop_failed(load);
    struct fleet staged = load->fleet; /* load_all packs its nodes anew */
    staged.nodes = arena_array(load->provide->arena, struct fleet_node, staged.n_nodes + 1);
    load->staged_tars = arena_array(load->provide->arena, const char *, staged.n_nodes + 1);
    memcpy(load->staged_tars, load->tars, staged.n_nodes * sizeof(load->tars[0]));
    memcpy(staged.nodes, load->fleet.nodes, staged.n_nodes * sizeof(staged.nodes[0]));
    for (size_t idx = 0; idx < staged.n_nodes; idx++) {
        load->results[idx].exit_status = -1;
        strbuf_init(&load->results[idx].output, OUTPUT_MAX);
    }
    int result = load_all(load, err);
    if (result == 0) {
        result = fleet_each(&staged, RM_NS, step_remove, load, err) < 0 ? -1 : 0;
    }
    for (size_t idx = 0; idx < staged.n_nodes; idx++) {
        strbuf_release(&load->results[idx].output);
    }
    return result;
}

int node_image_load(struct provide *provide, struct err *err)
{
    struct node_load load = {.provide = provide};
    int n_failed = 0;
    gather(&load);
    if (load.fleet.n_nodes > 0) {
        if (open_image(&load, err) < 0) {
            return -1;
        }
        if (provide->fleet->inventory->is_local) {
            return load_here(&load, err);
        }
        const char *tar = arena_printf(provide->arena, "%s/image-%ld.tar",
                                       store_path(provide->store, "tmp"), (long)getpid());
        int result = load_nodes(&load, tar, err);
        unlink(tar);
        if (result < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < provide->fleet->n_nodes; idx++) {
        const struct fleet_node *node = &provide->fleet->nodes[idx];
        n_failed += !node->is_left_out && node->err.code != ERR_NONE;
    }
    return n_failed;
}
