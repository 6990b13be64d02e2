/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/stage.h"

#include "base/fs.h"
#include "fleet/stage_impl.h"
#include "sys/relay_net.h"

#define BUFFER_MAX (8u << 20) /* of what is under way to a node; much less is used */

const char *const STAGE_WAY_NAMES[] = {"nothing", "shared", "chain", "ssh"};

/* ---- this machine itself ---- */

/* A local node uses the files in place; gathering has compared them with what was expected. */
static void report_local(struct staging *staging)
{
    struct stage_node *node = &staging->report.nodes[0];
    node->is_shared = true;
    node->way = STAGE_SHARED;
    node->bytes_there = staging->report.total_bytes;
    for (size_t idx = 0; idx < staging->order.n_items; idx++) {
        node->paths[idx] = staging->sources[idx];
    }
}

/* ---- nodes ---- */

static void init_node(struct staging *staging, size_t idx)
{
    struct staging_node *node = &staging->nodes[idx];
    struct arena *arena = staging->arena;
    *node = (struct staging_node){
        .staging = staging, .idx = idx, .first_bytes = UINT64_MAX, .relay.stream.fd = -1};
    node->relay.is_missing = arena_array(arena, uint8_t, staging->order.n_files + 1);
    node->was_bad = arena_array(arena, uint8_t, staging->order.n_files + 1);
    node->report = &staging->report.nodes[idx];
    if (staging->fleet->nodes[idx].is_left_out) {
        node->phase = PHASE_OVER;
    } else {
        node->part = staging->order.n_parts++;
    }
    strbuf_init(&node->order, RELAY_ORDER_MAX);
    strbuf_init(&node->line, RELAY_LINE_MAX);
    strbuf_init(&node->relay.feed, BUFFER_MAX);
}

static void release_node(struct staging_node *node)
{
    strbuf_release(&node->order);
    strbuf_release(&node->line);
    strbuf_release(&node->relay.feed);
    VEC_RELEASE(&node->relay.partials);
    stage_stream_end(&node->relay.stream);
}

/* Paths of the items on a node. The relay says which are shared one by one; what is said here of a node as a whole needs all. */
static void report_node(struct staging *staging, size_t idx)
{
    struct staging_node *node = &staging->nodes[idx];
    size_t n_shared = 0;
    for (size_t item = 0; item < staging->order.n_items; item++) {
        bool is_shared = node->relay.item_is_shared[item];
        n_shared += is_shared;
        node->report->paths[item] =
            is_shared
                ? staging->sources[item]
                : stage_item_path(staging, staging->arena, node->work ? node->work : "/", item);
    }
    node->report->is_shared = n_shared == staging->order.n_items;
    if (node->report->is_shared) {
        node->report->way = STAGE_SHARED;
    }
}

/* All nodes are busy from beginning to end: a chain needs all its members. */
static int stage_nodes(struct staging *staging, struct err *err)
{
    struct fleet *fleet = staging->fleet;
    size_t fanout = fleet->fanout;
    if (relay_random(staging->order.token, RELAY_TOKEN_BYTES, err) < 0 ||
        pool_new(1, &staging->pool, err) < 0 || pool_attach(staging->pool, fleet->loop, err) < 0) {
        return -1;
    }
    staging->chain.members = arena_array(staging->arena, size_t, fleet->n_nodes + 1);
    strbuf_init(&staging->chain.out, BUFFER_MAX);
    if (stage_mark(staging, err) < 0) {
        stage_unmark(staging);
        return -1;
    }
    fleet->fanout = fleet->n_nodes;
    int n_failed = fleet_each(fleet, 0, stage_step_node, staging, err);
    fleet->fanout = fanout;
    stage_unmark(staging);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        report_node(staging, idx);
    }
    return n_failed;
}

static int stage_all(struct staging *staging, struct err *err)
{
    if (stage_gather(staging, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        staging->report.nodes[idx].paths =
            arena_array(staging->arena, const char *, staging->order.n_items + 1);
    }
    if (staging->fleet->inventory->is_local) {
        report_local(staging);
        return 0;
    }
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        init_node(staging, idx);
    }
    return stage_nodes(staging, err);
}

int stage_items(struct arena *arena, struct fleet *fleet, const struct stage_opts *opts,
                struct stage_list list, struct stage_report *ret_report, struct err *err)
{
    struct staging staging = {.arena = arena,
                              .fleet = fleet,
                              .opts = opts,
                              .items = list.items,
                              .chain = {.fd = -1, .connected_fd = -1, .stream.fd = -1}};
    ASSERT(list.n > 0 && list.n <= STAGE_ITEMS_MAX);
    staging.order.items = arena_array(arena, struct relay_item, list.n);
    staging.order.n_items = list.n;
    staging.sources = arena_array(arena, const char *, list.n);
    staging.nodes = arena_array(arena, struct staging_node, fleet->n_nodes + 1);
    staging.report.nodes = arena_array(arena, struct stage_node, fleet->n_nodes + 1);
    int n_failed = stage_all(&staging, err);
    stage_chain_release(&staging);
    if (staging.pool) {
        pool_detach(staging.pool, fleet->loop);
        pool_free(staging.pool);
    }
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        release_node(&staging.nodes[idx]);
    }
    if (n_failed >= 0) {
        *ret_report = staging.report;
    }
    return n_failed;
}

/* ---- items of the usual kinds ---- */

int stage_program_item(struct arena *arena, const char *path, struct stage_item *ret_item,
                       struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct digest_value value;
    char hex[SHA256_HEX_SIZE];
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    hex_encode(value.sha256, SHA256_BYTES, hex);
    *ret_item = (struct stage_item){
        .kind = STAGE_FILE,
        .source = arena_strndup(arena, path, strlen(path)),
        .target = arena_printf(arena, "bin/%s/%s", hex, slash ? slash + 1 : path),
        .sha256_hex = str_of(arena_strndup(arena, hex, sizeof(hex))),
        .is_executable = true};
    return 0;
}

int stage_packed_item(struct arena *arena, const char *folder, struct stage_item *ret_item,
                      struct err *err)
{
    struct digest_value value;
    if (digest_file(fs_join(arena, folder, "pack.json"), DIGEST_SHA256, &value, err) < 0) {
        return err_wrap(err, "%s: no packed data", folder);
    }
    *ret_item = (struct stage_item){
        .kind = STAGE_FOLDER,
        .source = arena_strndup(arena, folder, strlen(folder)),
        .target = arena_printf(arena, "data/%s", sha256_hex_of(value.sha256).text),
        .may_be_shared = true};
    return 0;
}
