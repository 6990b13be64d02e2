/* SPDX-License-Identifier: Apache-2.0 */
/* Making a bundle: the needs of all parts are looked up first, so that nothing is written if something is missing; then
   everything is copied into a folder next to the target, read again and digested there, and renamed. */
#include "base/base.h"

#include "store/bundle.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/publish.h"
#include "base/temp.h"
#include "store/bundle_copy.h"
#include "store/bundle_impl.h"
#include "store/image_store.h"
#include "sys/tree.h"

struct maker {
    struct arena *arena;
    const struct bundle_opts *opts;
    const char *folder;      /* in the making */
    VEC(const char *) blobs; /* hex, no two alike */
    VEC(struct bundle_part) parts;
    VEC(struct str) refs; /* texts, as parts; of a source NULL */
    VEC(struct bundle_missing) missing;
    struct map known; /* blobs by hex */
    struct bundle_info info;
};

static void maker_cleanup(struct maker *m)
{
    VEC_RELEASE(&m->blobs);
    VEC_RELEASE(&m->parts);
    VEC_RELEASE(&m->refs);
    VEC_RELEASE(&m->missing);
    map_release(&m->known);
}

static bool should_stop(const struct maker *m)
{
    return m->opts->should_stop && m->opts->should_stop();
}

/* ---- what is needed ---- */

/* NULL if the store has everything that the reference names, else why not. */
static const char *take_blobs(struct maker *m, struct str text, const char *name)
{
    uint8_t(*sha256)[SHA256_BYTES];
    size_t n;
    uint64_t size_bytes = 0;
    struct err err = {0};
    if (store_ref_blobs(m->arena, text, name, &sha256, &n, &err) < 0) {
        return arena_printf(m->arena, "%s", err.msg);
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (!store_has(m->opts->store, sha256[idx], &size_bytes)) {
            return arena_printf(m->arena, "the store has lost its blob sha256:%s",
                                sha256_hex_of(sha256[idx]).text);
        }
    }
    for (size_t idx = 0; idx < n; idx++) {
        const char *hex = arena_printf(m->arena, "%s", sha256_hex_of(sha256[idx]).text);
        if (!map_get(&m->known, str_of(hex))) {
            (void)map_add(&m->known, str_of(hex), (void *)(uintptr_t)hex);
            VEC_PUSH(&m->blobs, hex);
            m->info.blob_bytes +=
                store_has(m->opts->store, sha256[idx], &size_bytes) ? size_bytes : 0;
        }
    }
    return NULL;
}

static void add_missing(struct maker *m, const struct bundle_part *part, const char *why)
{
    VEC_PUSH(&m->missing, (struct bundle_missing){str_of(part->said),
                                                  str_of(arena_printf(m->arena, "%s", why))});
}

static void look_up_part(struct maker *m, const struct bundle_part *part)
{
    struct str text = STR_EMPTY;
    struct source_tree tree;
    struct err err = {0};
    const char *why = NULL;
    const bool is_source = strcmp(part->kind, BUNDLE_SOURCE) == 0;
    if ((is_source ? bundle_source(m->arena, m->opts->store, m->opts->net, part->name, &tree, &err)
                   : store_ref_get(m->opts->store, part->kind, part->name, &text, &err)) < 0) {
        why = err.code == ERR_NOT_FOUND ? "not in the store" : err.msg;
    } else if (!is_source) {
        why = take_blobs(m, text, part->said);
    }
    if (why) {
        add_missing(m, part, why);
        return;
    }
    m->info.is_synthetic = m->info.is_synthetic || bundle_is_synthetic(text);
    VEC_PUSH(&m->parts, *part);
    VEC_PUSH(&m->refs, text);
}

static int look_up(struct maker *m, struct err *err)
{
    for (size_t idx = 0; idx < m->opts->n_parts; idx++) {
        look_up_part(m, &m->opts->parts[idx]);
    }
    m->info.missing = m->missing.items;
    m->info.n_missing = m->missing.n;
    if (m->missing.n && !m->opts->allows_missing) {
        size_t n_more = m->missing.n - 1;
        return err_set(err, ERR_FETCH,
                       "%.*s: %.*s%s; fetch it first, or --allow-missing makes a bundle without",
                       STR_ARG(m->missing.items[0].said), STR_ARG(m->missing.items[0].why),
                       n_more ? arena_printf(m->arena, " (and %zu more)", n_more) : "");
    }
    return 0;
}

/* ---- what is written ---- */

static char *below(const struct maker *m, const char *name)
{
    return fs_join(m->arena, m->folder, name);
}

static int copy_blobs(struct maker *m, struct store *to, struct err *err)
{
    const struct store_hooks hooks = {.should_stop = m->opts->should_stop};
    for (size_t idx = 0; idx < m->blobs.n; idx++) {
        const char *hex = m->blobs.items[idx];
        struct digest_value value;
        if (store_add_file(
                to, store_path(m->opts->store, arena_printf(m->arena, "blobs/sha256/%s", hex)),
                &hooks, &value, err) < 0) {
            return -1;
        }
        const struct hex found = sha256_hex_of(value.sha256);
        if (strcmp(found.text, hex) != 0) {
            return err_set(err, ERR_INTEGRITY,
                           "blob sha256:%s of the store is corrupt: its bytes have the digest %s",
                           hex, found.text);
        }
    }
    return 0;
}

/* git brings a source into the bundle, and checks every object there (store/source_store.h). Only objects, references and the
   boundary of a shallow fetch stay: a config or a hook could make git do something else at the destination. */
static int copy_source(struct maker *m, struct store *to, const struct bundle_part *part,
                       struct err *err)
{
    struct net_opts net = *m->opts->net;
    struct source_tree tree;
    struct fs_names files;
    const char *folder = store_path(to, "sources");
    net.mirror = m->opts->store->folder;
    if (bundle_source(m->arena, to, &net, part->name, &tree, err) < 0 ||
        fs_walk(m->arena, folder, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        const char *path = fs_join(m->arena, folder, files.items[idx]);
        if (!bundle_may_have(files.items[idx]) && unlink(path) < 0) {
            return err_errno(err, "remove", path);
        }
    }
    return 0;
}

static int copy_part(struct maker *m, struct store *to, const struct bundle_part *part,
                     struct str text, struct err *err)
{
    if (!text.ptr) {
        return copy_source(m, to, part, err);
    }
    if (store_ref_put(to, part->kind, part->name, text, err) < 0) {
        return -1;
    }
    return strcmp(part->kind, IMAGE_KIND) == 0 ? image_list_again(to, part->name, err) : 0;
}

static int copy_parts(struct maker *m, struct err *err)
{
    CLEANUP(store) struct store to = STORE_EMPTY;
    if (store_open(m->arena, below(m, "store"), &to, err) < 0 || copy_blobs(m, &to, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < m->parts.n; idx++) {
        const struct bundle_part *part = &m->parts.items[idx];
        if (copy_part(m, &to, part, m->refs.items[idx], err) < 0) {
            return err_wrap(err, "%s", part->said);
        }
    }
    return 0;
}

/* Data and programs: from a folder of the data, or beside this program, to where reperf finds it in the bundle. */
static int for_files(struct maker *m,
                     int (*fn)(struct maker *, const char *, const char *, struct err *),
                     struct err *err)
{
    static const char *const FOLDERS[] = {"manifests", "images", "datasets", "logs/published",
                                          "workloads/competitors"};
    static const char *const PROGRAMS[] = {"reperf-train", "reperf-pack", "reperf-node"};
    const char *slash = strrchr(m->opts->self, '/');
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        const char *from = fs_join(m->arena, m->opts->root, FOLDERS[idx]);
        if (fs_is_dir(from) &&
            fn(m, from, arena_printf(m->arena, "share/reperf/%s", FOLDERS[idx]), err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; slash && idx < ARRAY_LEN(PROGRAMS); idx++) {
        const char *from = arena_printf(m->arena, "%.*s/%s", (int)(slash - m->opts->self),
                                        m->opts->self, PROGRAMS[idx]);
        if (fs_exists(from) &&
            fn(m, from, arena_printf(m->arena, "bin/%s", PROGRAMS[idx]), err) < 0) {
            return -1;
        }
    }
    return fn(m, m->opts->self, "bin/reperf", err);
}

static int copy(struct maker *m, const char *from, const char *to, struct err *err)
{
    return fs_is_dir(from) ? copy_folder(m->arena, from, below(m, to), m->opts->should_stop, err)
                           : copy_file(from, below(m, to), m->opts->should_stop, NULL, err);
}

static void list_parts(struct maker *m)
{
    m->info.n_parts = m->parts.n;
    m->info.n_blobs = m->blobs.n;
    m->info.parts = arena_array(m->arena, struct str, m->parts.n + 1);
    for (size_t idx = 0; idx < m->parts.n; idx++) {
        m->info.parts[idx] = str_of(m->parts.items[idx].said);
    }
    qsort(m->info.parts, m->info.n_parts, sizeof(struct str), str_cmp_first);
}

static int write_about(struct maker *m, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(STORE_TEXT_MAX);
    char date[RFC3339_MAX];
    clock_rfc3339(m->opts->clock.wall_ns(m->opts->clock.ctx), date);
    list_parts(m);
    m->info.made = str_dup(m->arena, str_of(date));
    m->info.version = STR_LIT(REPERF_VERSION);
    json_encode_document(&text, BUNDLE_ABOUT_ROWS, BUNDLE_ABOUT_N_ROWS, &m->info);
    return fs_write_atomic(below(m, BUNDLE_ABOUT), strbuf_str(&text), err);
}

/* The copies are read again, so that SHA256SUMS and the blobs' names describe what is in the bundle. */
static int write_sums(struct maker *m, struct err *err)
{
    struct tree_list list;
    uint8_t ignored[SHA256_BYTES];
    if (bundle_hash(m->arena, m->folder, m->opts->should_stop, &list, err) < 0 ||
        bundle_check_blobs(&list, err) < 0) {
        return -1;
    }
    m->info.n_files = list.n;
    return tree_list_write(&list, below(m, BUNDLE_SUMS), ignored, err);
}

static int write_all(struct maker *m, struct err *err)
{
    if (copy_parts(m, err) < 0 || for_files(m, copy, err) < 0 || write_about(m, err) < 0 ||
        write_sums(m, err) < 0) {
        return -1;
    }
    if (should_stop(m)) {
        return err_set(err, ERR_INTERRUPTED, "stopped");
    }
    return publish_tree(m->folder, m->opts->folder, err);
}

static void give_info(const struct maker *m, struct bundle_info *ret_info)
{
    *ret_info = m->info;
    ret_info->missing = arena_array(m->arena, struct bundle_missing, m->missing.n + 1);
    for (size_t idx = 0; idx < m->missing.n; idx++) {
        ret_info->missing[idx] = m->missing.items[idx];
    }
}

int bundle_make(struct arena *arena, const struct bundle_opts *opts, struct bundle_info *ret_info,
                struct err *err)
{
    CLEANUP(maker) struct maker m = {.arena = arena, .opts = opts};
    CLEANUP(temp) struct temp *made = NULL;
    if (fs_exists(opts->folder)) {
        return err_set(err, ERR_USAGE, "%s exists already", opts->folder);
    }
    if (look_up(&m, err) < 0 || temp_folder(opts->folder, &made, err) < 0) {
        return -1;
    }
    m.folder = made->path;
    if (write_all(&m, err) < 0) {
        return -1;
    }
    give_info(&m, ret_info);
    return 0;
}

/* ---- what would be written ---- */

static int weigh(struct maker *m, const char *from, const char *ignored, struct err *err)
{
    struct fs_names paths = {0};
    struct stat info;
    (void)ignored;
    if (fs_is_dir(from) && fs_walk(m->arena, from, &paths, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < (fs_is_dir(from) ? paths.n : 1); idx++) {
        if (stat(fs_is_dir(from) ? fs_join(m->arena, from, paths.items[idx]) : from, &info) == 0) {
            m->info.n_files++;
            m->info.file_bytes += (uint64_t)info.st_size;
        }
    }
    return 0;
}

int bundle_foresee(struct arena *arena, const struct bundle_opts *opts,
                   struct bundle_info *ret_info, struct err *err)
{
    struct bundle_opts all = *opts;
    all.allows_missing = true;
    CLEANUP(maker) struct maker m = {.arena = arena, .opts = &all};
    if (look_up(&m, err) < 0) {
        return -1;
    }
    list_parts(&m);
    m.info.n_files = m.blobs.n;
    m.info.file_bytes = m.info.blob_bytes;
    if (for_files(&m, weigh, err) < 0) {
        return -1;
    }
    give_info(&m, ret_info);
    return 0;
}
