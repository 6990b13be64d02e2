/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "fleet/stage_impl.h"
#include "sys/digest_cache.h"
#include "sys/tree.h"

#define THREADS_MAX 8
#define MARK_BYTES  16

const char *const STAGE_WAY_NAMES[] = {"nothing", "shared", "chain", "ssh"};

/* ---- the files here ---- */

struct gathering {
    struct staging *staging;
    struct tree_opts tree;
    VEC(struct relay_file) files;
};

static bool is_ours(const char *path)
{
    return strncmp(basename(path), STAGE_MARK_PREFIX, sizeof(STAGE_MARK_PREFIX) - 1) == 0;
}

static int add_file(struct gathering *g, const char *path, const uint8_t *sha256, size_t item,
                    struct err *err)
{
    struct staging *staging = g->staging;
    struct relay_file file = {.path = path, .item = (uint32_t)item};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    bool is_folder = staging->items[item].kind == STAGE_FOLDER;
    const char *source =
        is_folder ? fs_join(&arena, staging->sources[item], path) : staging->items[item].source;
    struct stat info;
    if (stat(source, &info) < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", source, err_errno_text(errno));
    }
    if (g->files.n >= RELAY_FILES_MAX) {
        return err_set(err, ERR_USAGE, "more than %d files to stage", RELAY_FILES_MAX);
    }
    file.size_bytes = (uint64_t)info.st_size;
    file.is_executable =
        is_folder ? (info.st_mode & S_IXUSR) != 0 : staging->items[item].is_executable;
    memcpy(file.sha256, sha256, SHA256_BYTES);
    staging->report.total_bytes += file.size_bytes;
    VEC_PUSH(&g->files, file);
    return 0;
}

static int gather_folder(struct gathering *g, size_t item, struct err *err)
{
    struct tree_list list;
    g->tree.folder = g->staging->sources[item];
    if (tree_hash(g->staging->arena, &g->tree, &list, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        if (!is_ours(list.files[idx].path) &&
            add_file(g, list.files[idx].path, list.files[idx].sha256, item, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Read once, as long as it does not change. */
static int digest_of(struct digest_cache *cache, const char *path, struct digest_value *ret_value,
                     struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct digest_key key;
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_errno(err, "open", path);
    }
    digest_key_of(&info, &key);
    if (cache && digest_cache_find(cache, &key, DIGEST_SHA256, ret_value)) {
        return 0;
    }
    bool is_settled = cache && digest_cache_is_settled(cache, &key, digest_cache_slack_ns(fd));
    if (digest_fd(fd, path, DIGEST_SHA256, ret_value, err) < 0) {
        return -1;
    }
    if (is_settled && ret_value->size_bytes == key.size_bytes) {
        digest_cache_add(cache, &key, DIGEST_SHA256, ret_value);
    }
    return 0;
}

static int gather_file(struct gathering *g, size_t item, struct err *err)
{
    const struct stage_item *spec = &g->staging->items[item];
    const char *name = basename(spec->target);
    struct digest_value value;
    if (digest_of(g->tree.cache, spec->source, &value, err) < 0) {
        return -1;
    }
    if (spec->sha256_hex.ptr && !str_eq_z(spec->sha256_hex, sha256_hex_of(value.sha256).text)) {
        return err_set(err, ERR_INTEGRITY, "%s: its SHA-256 is not %.*s", spec->source,
                       STR_ARG(spec->sha256_hex));
    }
    return add_file(g, arena_strndup(g->staging->arena, name, strlen(name)), value.sha256, item,
                    err);
}

/* Absolute, without symlinks: what the nodes are asked about. */
static int find_source(struct staging *staging, size_t item, struct err *err)
{
    const struct stage_item *spec = &staging->items[item];
    char *whole CLEANUP(free) = realpath(spec->source, NULL);
    if (!whole) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", spec->source,
                       err_errno_text(errno));
    }
    if ((spec->kind == STAGE_FOLDER) != fs_is_dir(whole)) {
        return err_set(err, ERR_USAGE, "%s: expected a %s", spec->source,
                       spec->kind == STAGE_FOLDER ? "folder" : "file");
    }
    staging->sources[item] = arena_strndup(staging->arena, whole, strlen(whole));
    return 0;
}

static int gather_items(struct gathering *g, struct err *err)
{
    struct relay_order *order = &g->staging->order;
    for (size_t idx = 0; idx < order->n_items; idx++) {
        order->items[idx] = (struct relay_item){.mark = "", .first = g->files.n};
        if (find_source(g->staging, idx, err) < 0 ||
            (g->staging->items[idx].kind == STAGE_FOLDER ? gather_folder(g, idx, err)
                                                         : gather_file(g, idx, err)) < 0) {
            return -1;
        }
        order->items[idx].n = g->files.n - order->items[idx].first;
    }
    return 0;
}

static int stage_gather(struct staging *staging, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    struct gathering g = {.staging = staging, .tree.kinds = DIGEST_SHA256};
    const char *cache_path = staging->opts->cache_path;
    struct err why = {0};
    const size_t cores = pool_lanes().n;
    g.tree.n_threads = cores < THREADS_MAX ? cores : THREADS_MAX;
    if (cache_path && fs_mkdir_above(cache_path, &why) < 0) { /* it only costs time */
        log_line(LOG_WARN, "%s", why.msg);
    }
    if (pool_new(g.tree.n_threads, &pool, err) < 0) {
        return -1;
    }
    if (cache_path) {
        cache = digest_cache_open(cache_path, staging->opts->clock);
    }
    g.tree.pool = pool;
    g.tree.cache = cache;
    int result = gather_items(&g, err);
    arena_adopt(staging->arena, g.files.items);
    staging->order.files = g.files.items;
    staging->order.n_files = g.files.n;
    digest_cache_save(cache);
    return result;
}

/* ---- marks ---- */

/* A node that sees this file sees the folder that it lies in. A read-only folder cannot be marked: it is copied. */
static void stage_mark(struct staging *staging, const uint8_t *id)
{
    for (size_t idx = 0; idx < staging->order.n_items; idx++) {
        struct relay_item *item = &staging->order.items[idx];
        const char *mark = arena_printf(staging->arena, "%s/" STAGE_MARK_PREFIX "%s",
                                        staging->sources[idx], hex_of(id, MARK_BYTES).text);
        struct err why = {0};
        if (!staging->items[idx].may_be_shared || staging->items[idx].kind != STAGE_FOLDER ||
            staging->opts->must_copy) {
            continue;
        }
        if (fs_write_atomic(mark, STR_LIT(""), &why) < 0) {
            log_line(LOG_INFO, "it is not known whether the nodes share it, so it is copied: %s",
                     why.msg);
            continue;
        }
        item->mark = mark;
    }
}

static void stage_unmark(struct staging *staging)
{
    for (size_t idx = 0; idx < staging->order.n_items; idx++) {
        const char *mark = staging->order.items[idx].mark;
        if (mark[0] && unlink(mark) < 0) {
            log_line(LOG_WARN, "remove %s: %s", mark, err_errno_text(errno));
        }
    }
}

/* ---- paths ---- */

char *stage_item_path(const struct staging *staging, struct arena *arena, const char *work,
                      size_t item)
{
    const char *target = staging->items[item].target;
    return target[0] == '/' ? arena_strndup(arena, target, strlen(target))
                            : fs_join(arena, work, target);
}

char *stage_source_path(const struct staging *staging, struct arena *arena, size_t file)
{
    const struct relay_file *spec = &staging->order.files[file];
    const char *source = staging->sources[spec->item];
    return staging->items[spec->item].kind == STAGE_FOLDER
               ? fs_join(arena, source, spec->path)
               : arena_strndup(arena, source, strlen(source));
}

/* ---- nodes ---- */

static void init_node(struct staging *staging, size_t idx)
{
    struct staging_node *node = &staging->nodes[idx];
    *node = (struct staging_node){
        .staging = staging,
        .idx = idx,
        .is_missing = arena_array(staging->arena, uint8_t, staging->order.n_files + 1),
        .told = &staging->report.nodes[idx],
        .relay.stream.fd = -1};
    if (staging->fleet->nodes[idx].is_left_out) {
        node->phase = PHASE_OVER;
    } else {
        node->part = staging->order.n_parts++;
    }
    strbuf_init(&node->order, RELAY_ORDER_MAX);
    strbuf_init(&node->line, RELAY_LINE_MAX);
    strbuf_init(&node->feed, STAGE_BUFFER_MAX);
}

/* Where the items lie on a node. The relay says of each item whether it is shared; a node is told of as shared if all are. This
   machine itself, as a node, uses the files in place; gathering has compared them with what was expected. */
static void tell_of_node(struct staging *staging, size_t idx)
{
    struct staging_node *node = &staging->nodes[idx];
    struct stage_node *told = node->told;
    bool is_local = staging->fleet->inventory->is_local;
    size_t n_shared = 0;
    told->paths = arena_array(staging->arena, const char *, staging->order.n_items);
    for (size_t item = 0; item < staging->order.n_items; item++) {
        bool is_shared = is_local || node->relay.item_is_shared[item];
        n_shared += is_shared;
        told->paths[item] = is_shared ? staging->sources[item]
                                      : stage_item_path(staging, staging->arena,
                                                        node->work ? node->work : "/", item);
    }
    told->is_shared = n_shared == staging->order.n_items;
    if (told->is_shared) {
        told->way = STAGE_SHARED;
    }
    if (is_local) {
        told->bytes_there = staging->report.total_bytes;
    }
}

/* All nodes are busy from beginning to end: a chain needs all its members. */
static int stage_nodes(struct staging *staging, struct err *err)
{
    struct fleet *fleet = staging->fleet;
    size_t fanout = fleet->fanout;
    uint8_t random[RELAY_TOKEN_BYTES + MARK_BYTES];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    if (pool_new(1, &staging->pool, err) < 0 || pool_attach(staging->pool, fleet->loop, err) < 0) {
        return -1;
    }
    memcpy(staging->order.token, random, RELAY_TOKEN_BYTES);
    stage_mark(staging, random + RELAY_TOKEN_BYTES);
    fleet->fanout = fleet->n_nodes;
    int n_failed = fleet_each(fleet, 0, stage_step_node, staging, err);
    fleet->fanout = fanout;
    stage_unmark(staging);
    return n_failed;
}

static void staging_release(struct staging *staging)
{
    if (staging->pool) {
        pool_detach(staging->pool, staging->fleet->loop);
        pool_free(staging->pool);
    }
    stage_stream_end(staging, &staging->chain.stream);
    for (size_t idx = 0; idx < staging->fleet->n_nodes; idx++) {
        struct staging_node *node = &staging->nodes[idx];
        stage_stream_end(staging, &node->relay.stream);
        strbuf_release(&node->order);
        strbuf_release(&node->line);
        strbuf_release(&node->feed);
    }
}

int stage_items(struct arena *arena, struct fleet *fleet, const struct stage_opts *opts,
                struct stage_list list, struct stage_report *ret_report, struct err *err)
{
    struct staging staging = {
        .arena = arena, .fleet = fleet, .opts = opts, .items = list.items, .chain.stream.fd = -1};
    int n_failed = 0;
    ASSERT(list.n > 0 && list.n <= STAGE_ITEMS_MAX);
    staging.order.items = arena_array(arena, struct relay_item, list.n);
    staging.order.n_items = list.n;
    staging.sources = arena_array(arena, const char *, list.n);
    staging.nodes = arena_array(arena, struct staging_node, fleet->n_nodes + 1);
    staging.report.nodes = arena_array(arena, struct stage_node, fleet->n_nodes + 1);
    if (stage_gather(&staging, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        init_node(&staging, idx);
    }
    if (!fleet->inventory->is_local) {
        n_failed = stage_nodes(&staging, err);
    }
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        tell_of_node(&staging, idx);
    }
    staging_release(&staging);
    if (n_failed >= 0) {
        *ret_report = staging.report;
    }
    return n_failed;
}

/* ---- items of the usual kinds ---- */

int stage_program_item(struct arena *arena, const char *path, struct stage_item *ret_item,
                       struct err *err)
{
    struct str hex;
    if (digest_file_hex(arena, path, &hex, err) < 0) {
        return -1;
    }
    *ret_item = (struct stage_item){
        .kind = STAGE_FILE,
        .source = arena_strndup(arena, path, strlen(path)),
        .target = arena_printf(arena, "bin/%.*s/%s", STR_ARG(hex), basename(path)),
        .sha256_hex = hex,
        .is_executable = true};
    return 0;
}

int stage_packed_item(struct arena *arena, const char *folder, struct stage_item *ret_item,
                      struct err *err)
{
    struct str hex;
    if (digest_file_hex(arena, fs_join(arena, folder, "pack.json"), &hex, err) < 0) {
        return err_wrap(err, "%s: no packed data", folder);
    }
    *ret_item = (struct stage_item){.kind = STAGE_FOLDER,
                                    .source = arena_strndup(arena, folder, strlen(folder)),
                                    .target = arena_printf(arena, "data/%.*s", STR_ARG(hex)),
                                    .may_be_shared = true};
    return 0;
}
