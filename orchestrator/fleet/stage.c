/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "fleet/stage_impl.h"
#include "sys/digest_cache.h"
#include "sys/relay_net.h"
#include "sys/tree.h"

#define THREADS_MAX 8
#define MARK_BYTES  (RELAY_MARK_HEX / 2)
#define BUFFER_MAX  (8u << 20) /* of what is under way to a node; much less is used */

const char *const STAGE_WAY_NAMES[] = {"nothing", "shared", "chain", "ssh"};

/* ---- the files here ---- */

struct gathering {
    struct staging *staging;
    struct pool *pool;
    size_t n_threads;
    struct digest_cache *cache;
    VEC(struct relay_file) files;
};

static bool is_ours(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, STAGE_MARK_PREFIX, sizeof(STAGE_MARK_PREFIX) - 1) == 0;
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
    struct tree_opts opts = {.folder = g->staging->sources[item],
                             .pool = g->pool,
                             .n_threads = g->n_threads,
                             .cache = g->cache,
                             .kinds = DIGEST_SHA256};
    struct tree_list list;
    if (tree_hash(g->staging->arena, &opts, &list, err) < 0) {
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
static int digest_of(struct gathering *g, const char *path, struct digest_value *ret_value,
                     struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct digest_key key;
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_errno(err, "open", path);
    }
    digest_key_of(&info, &key);
    if (g->cache && digest_cache_find(g->cache, &key, DIGEST_SHA256, ret_value)) {
        return 0;
    }
    bool is_settled =
        g->cache && digest_cache_is_settled(g->cache, &key, digest_cache_slack_ns(fd));
    if (digest_fd(fd, path, DIGEST_SHA256, ret_value, err) < 0) {
        return -1;
    }
    if (is_settled && ret_value->size_bytes == key.size_bytes) {
        digest_cache_add(g->cache, &key, DIGEST_SHA256, ret_value);
    }
    return 0;
}

static int gather_file(struct gathering *g, size_t item, struct err *err)
{
    const struct stage_item *spec = &g->staging->items[item];
    const char *slash = strrchr(spec->target, '/');
    const char *name = slash ? slash + 1 : spec->target;
    uint8_t wanted[SHA256_BYTES];
    struct digest_value value;
    if (digest_of(g, spec->source, &value, err) < 0) {
        return -1;
    }
    if (spec->sha256_hex.ptr && hex_decode(spec->sha256_hex, SHA256_BYTES, wanted, err) < 0) {
        return err_wrap(err, "%s", spec->source);
    }
    if (spec->sha256_hex.ptr && memcmp(wanted, value.sha256, SHA256_BYTES) != 0) {
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

static int gather_items(struct gathering *g, size_t n_items, struct err *err)
{
    struct relay_order *order = &g->staging->order;
    for (size_t idx = 0; idx < n_items; idx++) {
        order->items[idx].first = g->files.n;
        if (find_source(g->staging, idx, err) < 0 ||
            (g->staging->items[idx].kind == STAGE_FOLDER ? gather_folder(g, idx, err)
                                                         : gather_file(g, idx, err)) < 0) {
            return -1;
        }
        order->items[idx].n = g->files.n - order->items[idx].first;
    }
    return 0;
}

/* A cache that cannot be saved only costs time. */
static void make_cache_folder(struct staging *staging)
{
    const char *path = staging->opts->cache_path;
    struct err why = {0};
    if (path && fs_mkdir_above(path, &why) < 0) {
        log_line(LOG_WARN, "%s", why.msg);
    }
}

static int stage_gather(struct staging *staging, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    struct gathering g = {.staging = staging};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    g.n_threads = cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (size_t)cores;
    make_cache_folder(staging);
    if (pool_new(g.n_threads, &pool, err) < 0) {
        return -1;
    }
    if (staging->opts->cache_path) {
        cache = digest_cache_open(staging->opts->cache_path, staging->opts->clock);
    }
    g.pool = pool;
    g.cache = cache;
    int result = gather_items(&g, staging->order.n_items, err);
    arena_adopt(staging->arena, g.files.items);
    staging->order.files = g.files.items;
    staging->order.n_files = g.files.n;
    digest_cache_save(cache);
    return result;
}

/* ---- marks ---- */

static char *mark_path(struct arena *arena, const struct relay_item *item)
{
    return fs_join(arena, item->mark_folder, item->mark_name);
}

/* A read-only folder cannot be marked: it is copied. */
static int mark_item(struct staging *staging, size_t idx, struct err *err)
{
    struct relay_item *item = &staging->order.items[idx];
    uint8_t bytes[MARK_BYTES];
    char hex[RELAY_MARK_HEX + 1];
    struct err why = {0};
    if (relay_random(bytes, sizeof(bytes), err) < 0) {
        return -1;
    }
    hex_encode(bytes, sizeof(bytes), hex);
    item->mark_folder = staging->sources[idx];
    item->mark_name =
        arena_printf(staging->arena, STAGE_MARK_PREFIX "%.16s", hex + RELAY_MARK_HEX - 16);
    item->mark_hex = arena_strndup(staging->arena, hex, RELAY_MARK_HEX);
    if (fs_write_atomic(mark_path(staging->arena, item), str_of(item->mark_hex), &why) < 0) {
        log_line(LOG_INFO, "it is not known whether the nodes share it, so it is copied: %s",
                 why.msg);
        item->mark_folder = item->mark_name = item->mark_hex = NULL;
    }
    return 0;
}

static int stage_mark(struct staging *staging, struct err *err)
{
    for (size_t idx = 0; idx < staging->order.n_items; idx++) {
        if (staging->items[idx].may_be_shared && staging->items[idx].kind == STAGE_FOLDER &&
            !staging->opts->must_copy && mark_item(staging, idx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static void stage_unmark(struct staging *staging)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    for (size_t idx = 0; idx < staging->order.n_items; idx++) {
        const struct relay_item *item = &staging->order.items[idx];
        if (item->mark_name && unlink(mark_path(&arena, item)) < 0) {
            log_line(LOG_WARN, "remove %s: %s", mark_path(&arena, item), err_errno_text(errno));
        }
    }
}

/* ---- paths ---- */

static char *stage_item_path(const struct staging *staging, struct arena *arena, const char *work,
                             size_t item)
{
    const char *target = staging->items[item].target;
    return target[0] == '/' ? arena_strndup(arena, target, strlen(target))
                            : fs_join(arena, work, target);
}

char *stage_item_root(const struct staging *staging, struct arena *arena, const char *work,
                      size_t item)
{
    char *path = stage_item_path(staging, arena, work, item);
    if (staging->items[item].kind == STAGE_FILE) {
        *strrchr(path, '/') = '\0';
    }
    return path;
}

char *stage_source_path(const struct staging *staging, struct arena *arena, size_t file)
{
    const struct relay_file *spec = &staging->order.files[file];
    return staging->items[spec->item].kind == STAGE_FOLDER
               ? fs_join(arena, staging->sources[spec->item], spec->path)
               : arena_strndup(arena, staging->sources[spec->item],
                               strlen(staging->sources[spec->item]));
}

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
