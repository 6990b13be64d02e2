/* SPDX-License-Identifier: Apache-2.0 */
/* Making a bundle: the needs of all parts are looked up first, so that nothing is written if something is missing; then
   everything is copied into a folder next to the target, read again and digested there, and renamed. */
#include "base/base.h"

#include "store/bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/publish.h"
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
    VEC(struct str) refs;    /* texts, as parts; of a source NULL */
    VEC(const char *) repos; /* folders of the store */
    VEC(struct bundle_missing) missing;
    struct map known; /* blobs by hex */
    struct bundle_info info;
};

static void maker_cleanup(struct maker *m)
{
    VEC_RELEASE(&m->blobs);
    VEC_RELEASE(&m->parts);
    VEC_RELEASE(&m->refs);
    VEC_RELEASE(&m->repos);
    VEC_RELEASE(&m->missing);
    map_release(&m->known);
}

static bool should_stop(const struct maker *m)
{
    return m->opts->should_stop && m->opts->should_stop();
}

/* ---- what is needed ---- */

/* NULL if the store has everything that the reference names, else why not. */
static const char *blobs_missing(struct maker *m, struct str text, const char *name)
{
    uint8_t(*sha256)[SHA256_BYTES];
    size_t n;
    struct err err = {0};
    if (store_ref_blobs(m->arena, text, name, &sha256, &n, &err) < 0) {
        return arena_printf(m->arena, "%s", err.msg);
    }
    for (size_t idx = 0; idx < n; idx++) {
        char hex[SHA256_HEX_SIZE];
        uint64_t size_bytes = 0;
        hex_encode(sha256[idx], SHA256_BYTES, hex);
        if (!store_has(m->opts->store, sha256[idx], &size_bytes)) {
            return arena_printf(m->arena, "the store has lost its blob sha256:%s", hex);
        }
    }
    return NULL;
}

static void take_blobs(struct maker *m, struct str text, const char *name)
{
    uint8_t(*sha256)[SHA256_BYTES];
    size_t n;
    struct err ignored = {0};
    if (store_ref_blobs(m->arena, text, name, &sha256, &n, &ignored) < 0) {
        ASSERT(!"a reference that was read before");
    }
    for (size_t idx = 0; idx < n; idx++) {
        char hex[SHA256_HEX_SIZE];
        uint64_t size_bytes = 0;
        hex_encode(sha256[idx], SHA256_BYTES, hex);
        const char *kept = arena_strndup(m->arena, hex, SHA256_HEX_SIZE - 1);
        if (map_get(&m->known, str_of(kept))) {
            continue;
        }
        (void)map_add(&m->known, str_of(kept), (void *)(uintptr_t)kept);
        VEC_PUSH(&m->blobs, kept);
        if (store_has(m->opts->store, sha256[idx], &size_bytes)) {
            m->info.blob_bytes += size_bytes;
        }
    }
}

static void add_missing(struct maker *m, const struct bundle_part *part, const char *why)
{
    VEC_PUSH(&m->missing, (struct bundle_missing){part->said, arena_printf(m->arena, "%s", why)});
}

static void look_up_source(struct maker *m, const struct bundle_part *part)
{
    struct source_tree tree;
    struct err err = {0};
    if (bundle_check_source(m->arena, m->opts->store, m->opts->net, part->name, &tree, &err) < 0) {
        add_missing(m, part, err.code == ERR_NOT_FOUND ? "not in the store" : err.msg);
        return;
    }
    for (size_t idx = 0; idx < tree.n; idx++) {
        const char *repo = tree.parts[idx].repo;
        if (repo && !map_get(&m->known, str_of(repo))) {
            (void)map_add(&m->known, str_of(repo), m);
            VEC_PUSH(&m->repos, repo);
        }
    }
    VEC_PUSH(&m->parts, *part);
    VEC_PUSH(&m->refs, STR_EMPTY);
}

static void look_up_part(struct maker *m, const struct bundle_part *part)
{
    struct str text = STR_EMPTY;
    struct err err = {0};
    const char *why = NULL;
    if (strcmp(part->kind, BUNDLE_SOURCE) == 0) {
        look_up_source(m, part);
        return;
    }
    if (store_ref_get(m->opts->store, part->kind, part->name, &text, &err) < 0) {
        why = err.code == ERR_NOT_FOUND ? "not in the store" : err.msg;
    } else {
        why = blobs_missing(m, text, part->said);
    }
    if (why) {
        add_missing(m, part, why);
        return;
    }
    take_blobs(m, text, part->said);
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
                       "%s: %s%s; fetch it first, or --allow-missing makes a bundle without",
                       m->missing.items[0].said, m->missing.items[0].why,
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
        char found[SHA256_HEX_SIZE];
        if (store_add_file(
                to, store_path(m->opts->store, arena_printf(m->arena, "blobs/sha256/%s", hex)),
                &hooks, &value, err) < 0) {
            return -1;
        }
        hex_encode(value.sha256, SHA256_BYTES, found);
        if (strcmp(found, hex) != 0) {
            return err_set(err, ERR_INTEGRITY,
                           "blob sha256:%s of the store is corrupt: its bytes have the digest %s",
                           hex, found);
        }
    }
    return 0;
}

static int copy_part(struct store *to, const struct bundle_part *part, struct str text,
                     struct err *err)
{
    if (!text.ptr) {
        return 0;
    }
    if (store_ref_put(to, part->kind, part->name, text, err) < 0) {
        return -1;
    }
    return strcmp(part->kind, IMAGE_KIND) == 0 ? image_list_again(to, part->name, err) : 0;
}

static int copy_repos(struct maker *m, struct err *err)
{
    for (size_t idx = 0; idx < m->repos.n; idx++) {
        const char *name = strrchr(m->repos.items[idx], '/') + 1;
        if (copy_folder(m->arena, m->repos.items[idx],
                        below(m, arena_printf(m->arena, "store/sources/%s", name)),
                        bundle_skips_in_source, m->opts->should_stop, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int copy_parts(struct maker *m, struct err *err)
{
    CLEANUP(store) struct store to = STORE_EMPTY;
    if (store_open(m->arena, below(m, "store"), &to, err) < 0 || copy_blobs(m, &to, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < m->parts.n; idx++) {
        const struct bundle_part *part = &m->parts.items[idx];
        if (copy_part(&to, part, m->refs.items[idx], err) < 0) {
            return err_wrap(err, "%s", part->said);
        }
    }
    return copy_repos(m, err);
}

static const char *const FOLDERS[] = {"manifests", "images", "datasets", "logs/published",
                                      "workloads/competitors"};
static const char *const PROGRAMS[] = {"reperf-train", "reperf-pack", "reperf-node"};

static int copy_data(struct maker *m, struct err *err)
{
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        const char *from = fs_join(m->arena, m->opts->root, FOLDERS[idx]);
        if (fs_is_dir(from) &&
            copy_folder(m->arena, from,
                        below(m, arena_printf(m->arena, "share/reperf/%s", FOLDERS[idx])), NULL,
                        m->opts->should_stop, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int copy_programs(struct maker *m, struct err *err)
{
    const char *slash = strrchr(m->opts->self, '/');
    if (copy_file(m->opts->self, below(m, "bin/reperf"), m->opts->should_stop, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; slash && idx < ARRAY_LEN(PROGRAMS); idx++) {
        const char *from = arena_printf(m->arena, "%.*s/%s", (int)(slash - m->opts->self),
                                        m->opts->self, PROGRAMS[idx]);
        if (fs_exists(from) &&
            copy_file(from, below(m, arena_printf(m->arena, "bin/%s", PROGRAMS[idx])),
                      m->opts->should_stop, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_parts(struct maker *m)
{
    m->info.n_parts = m->parts.n;
    m->info.n_blobs = m->blobs.n;
    m->info.parts = arena_array(m->arena, const char *, m->parts.n + 1);
    for (size_t idx = 0; idx < m->parts.n; idx++) {
        m->info.parts[idx] = m->parts.items[idx].said;
    }
    qsort(m->info.parts, m->info.n_parts, sizeof(char *), by_text);
}

static int write_about(struct maker *m, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    list_parts(m);
    strbuf_init(&text, STORE_TEXT_MAX);
    bundle_about_encode(&m->info, m->opts->clock, &text);
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
    if (copy_parts(m, err) < 0 || copy_data(m, err) < 0 || copy_programs(m, err) < 0 ||
        write_about(m, err) < 0 || write_sums(m, err) < 0) {
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
    struct err ignored = {0};
    if (fs_exists(opts->folder)) {
        return err_set(err, ERR_USAGE, "%s exists already", opts->folder);
    }
    if (look_up(&m, err) < 0) {
        return -1;
    }
    char *folder = arena_printf(arena, "%s.partial-XXXXXX", opts->folder);
    if (!mkdtemp(folder)) {
        return err_set(err, err_code_of_errno(errno), "make %s: %s", folder, err_errno_text(errno));
    }
    m.folder = folder;
    if (chmod(folder, 0755) < 0) {
        log_line(LOG_DEBUG, "chmod %s: %s", folder, err_errno_text(errno));
    }
    if (write_all(&m, err) < 0) {
        if (fs_remove_tree(m.folder, &ignored) < 0) {
            log_line(LOG_DEBUG, "%s", ignored.msg);
        }
        return -1;
    }
    give_info(&m, ret_info);
    return 0;
}

/* ---- what would be written ---- */

static int weigh(struct maker *m, const char *folder, struct err *err)
{
    struct fs_names paths;
    if (!fs_is_dir(folder)) {
        return 0;
    }
    if (fs_walk(m->arena, folder, &paths, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < paths.n; idx++) {
        struct stat info;
        if (stat(fs_join(m->arena, folder, paths.items[idx]), &info) == 0) {
            m->info.n_files++;
            m->info.file_bytes += (uint64_t)info.st_size;
        }
    }
    return 0;
}

static void weigh_programs(struct maker *m)
{
    const char *slash = strrchr(m->opts->self, '/');
    struct stat info;
    for (size_t idx = 0; idx <= ARRAY_LEN(PROGRAMS); idx++) {
        const char *path = idx == 0 || !slash
                               ? m->opts->self
                               : arena_printf(m->arena, "%.*s/%s", (int)(slash - m->opts->self),
                                              m->opts->self, PROGRAMS[idx - 1]);
        if ((idx == 0 || slash) && stat(path, &info) == 0) {
            m->info.n_files++;
            m->info.file_bytes += (uint64_t)info.st_size;
        }
    }
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
    for (size_t idx = 0; idx < m.repos.n; idx++) {
        if (weigh(&m, m.repos.items[idx], err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        if (weigh(&m, fs_join(arena, opts->root, FOLDERS[idx]), err) < 0) {
            return -1;
        }
    }
    weigh_programs(&m);
    give_info(&m, ret_info);
    return 0;
}
