/* SPDX-License-Identifier: Apache-2.0 */
/* Making a bundle: what its parts need is listed first, so that nothing is written if something is missing; then the tar is written
   from the list, each file digested on its way, and renamed. Importing one: it is unpacked in the store's tmp/, and nothing is changed
   before every byte has been verified and no lock or reference contradicts an existing one. An import that was interrupted is simply done
   again: blobs that came in stay, references come last. */
#include "base/base.h"

#include "store/bundle_impl.h"

#include <sys/stat.h>

#include "base/map.h"
#include "base/publish.h"
#include "base/temp.h"
#include "codec/tar_make.h"

/* ---- bundle.json ---- */

static const struct json_field MISSING_ROWS[] = {
    ROW("part", struct bundle_missing, said, JSON_REQUIRED),
    ROW("why", struct bundle_missing, why, JSON_REQUIRED)};

#define LISTS                                                                                      \
    ROW_STRS("parts", struct bundle_info, parts, n_parts, JSON_REQUIRED, .max = BUNDLE_PARTS_MAX), \
        ROW_LIST("missing", struct bundle_info, missing, n_missing, MISSING_ROWS, JSON_REQUIRED,   \
                 .max = BUNDLE_PARTS_MAX)
const struct json_field BUNDLE_LISTS[BUNDLE_LISTS_N] = {LISTS};
const struct json_field BUNDLE_ABOUT[BUNDLE_ABOUT_N] = {
    ROW_NUMBER("schema_version", 1),
    ROW("made", struct bundle_info, made, JSON_REQUIRED),
    ROW("version", struct bundle_info, version, JSON_REQUIRED),
    ROW("synthetic", struct bundle_info, is_synthetic, JSON_REQUIRED),
    LISTS,
};

/* ---- what both ways know of a part ---- */

bool bundle_may_have(const char *path)
{
    static const char *const NAMES[] = {"HEAD", "shallow", "packed-refs", NULL};
    struct str below = str_of(path), repo;
    return str_next(&below, '/', &repo) &&
           (str_eq_any(below, NAMES) || str_starts(below, STR_LIT("refs/")) ||
            (str_starts(below, STR_LIT("objects/")) &&
             !str_starts(below, STR_LIT("objects/info/"))));
}

int bundle_find_source(const struct source_from *from, const char *name,
                       struct source_tree *ret_tree, struct err *err)
{
    struct sources sources;
    const char *at = strrchr(name, '@');
    if (!at) {
        return err_set(err, ERR_USAGE, "source %s: expected URL@COMMIT", name);
    }
    const char *url = arena_strndup(from->arena, name, (size_t)(at - name));
    if (sources_init(&sources, from->arena, from->store, from->net, err) < 0) {
        return -1;
    }
    return from->net->mirror ? source_fetch(&sources, url, at + 1, ret_tree, err)
                             : source_verify(&sources, url, at + 1, from->is_deep, ret_tree, err);
}

int bundle_check_blob(const struct tree_file *file, struct err *err)
{
    const struct hex hex = sha256_hex_of(file->sha256);
    const char *name = file->path + strlen(BLOBS_BELOW);
    return strcmp(name, hex.text) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "blob sha256:%s: its bytes have the digest %s", name,
                         hex.text);
}

bool bundle_is_lock_of(struct str name, struct str id)
{
    return str_starts(name, id) && name.ptr[id.len] == '.' &&
           (str_eq_z(str_sub(name, id.len, name.len), ".json") ||
            str_ends(name, STR_LIT(".pieces")));
}

/* ---- making: what is needed ---- */

struct item { /* a file of the bundle */
    const char *name;
    const char *path; /* where it is now; NULL: it is `text` */
    struct str text;
};

struct maker {
    struct arena *arena;
    const struct bundle_opts *opts;
    bool is_dry;
    struct map known; /* items by name */
    VEC(struct item) items;
    VEC(struct str) parts;
    VEC(struct bundle_missing) missing;
    VEC(struct tree_file) sums;
    struct bundle_info info;
};

static void maker_cleanup(struct maker *m)
{
    map_release(&m->known);
    VEC_RELEASE(&m->items);
    VEC_RELEASE(&m->parts);
    VEC_RELEASE(&m->missing);
    VEC_RELEASE(&m->sums);
}

static void add_file(struct maker *m, const char *name, const char *path)
{
    struct stat info;
    if (map_add(&m->known, str_of(name), (void *)(uintptr_t)name)) {
        VEC_PUSH(&m->items, ((struct item){.name = name, .path = path}));
        m->info.n_files++;
        m->info.file_bytes += stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    }
}

/* Every file of a folder; all below sources/ that a bundle may have. */
static int add_folder(struct maker *m, const char *name, const char *folder, struct err *err)
{
    struct fs_names files;
    if (fs_walk(m->arena, folder, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        const char *to = fs_join(m->arena, name, files.items[idx]);
        if (!str_starts(str_of(to), STR_LIT(SOURCES_BELOW)) ||
            bundle_may_have(to + strlen(SOURCES_BELOW))) {
            add_file(m, to, fs_join(m->arena, folder, files.items[idx]));
        }
    }
    return 0;
}

static int add_source(struct maker *m, const char *name, struct err *err)
{
    const struct source_from from = {m->arena, m->opts->store, m->opts->net, !m->is_dry};
    struct source_tree tree;
    if (bundle_find_source(&from, name, &tree, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < tree.n; idx++) {
        const char *repo = tree.parts[idx].repo;
        if (tree.parts[idx].url &&
            add_folder(m, arena_printf(m->arena, SOURCES_BELOW "%s", strrchr(repo, '/') + 1), repo,
                       err) < 0) {
            return -1;
        }
    }
    return 0;
}

static bool is_synthetic(struct str ref_text)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err ignored = {0};
    struct json member;
    bool is = false;
    if (json_parse(ref_text, "reference", &doc, &ignored) < 0) {
        return false;
    }
    struct json root = json_root(&doc);
    return json_find(&root, "synthetic", &member) && json_bool(&member, &is, &ignored) == 0 && is;
}

static int add_ref(struct maker *m, const struct bundle_part *part, struct err *err)
{
    const struct store *store = m->opts->store;
    uint8_t(*sha256)[SHA256_BYTES];
    struct str text;
    uint64_t size_bytes = 0;
    char *name;
    size_t n;
    if (store_ref_get(store, part->kind, part->name, &text, err) < 0 ||
        store_ref_blobs(m->arena, text, part->said, &sha256, &n, err) < 0 ||
        store_escape(m->arena, part->name, &name, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (!store_has(store, sha256[idx], NULL)) {
            return err_set(err, ERR_FETCH, "the store has lost its blob sha256:%s",
                           sha256_hex_of(sha256[idx]).text);
        }
    }
    for (size_t idx = 0; idx < n; idx++) {
        const char *blob =
            arena_printf(m->arena, BLOBS_BELOW "%s", sha256_hex_of(sha256[idx]).text);
        if (!map_get(&m->known, str_of(blob)) && store_has(store, sha256[idx], &size_bytes)) {
            m->info.n_blobs++;
            m->info.blob_bytes += size_bytes;
        }
        add_file(m, blob, store_blob_path(store, sha256[idx]));
    }
    VEC_PUSH(&m->items, ((struct item){.name = arena_printf(m->arena, REFS_BELOW "%s/%s.json",
                                                            part->kind, name),
                                       .text = text}));
    m->info.is_synthetic = m->info.is_synthetic || is_synthetic(text);
    return 0;
}

/* Without description and lock nobody elsewhere knows what the blobs are. */
static int add_description(struct maker *m, const struct dataset_here *own, struct err *err)
{
    const char *locks = fs_join(m->arena, own->locks, "dataset");
    struct fs_names files = {0};
    if (add_folder(m, fs_join(m->arena, OWN_DATASETS, own->dataset.id.ptr), own->folder, err) < 0 ||
        (own->has_lock && fs_walk(m->arena, locks, &files, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        if (bundle_is_lock_of(str_of(files.items[idx]), own->dataset.id)) {
            add_file(m, arena_printf(m->arena, OWN_LOCKS "%s", files.items[idx]),
                     fs_join(m->arena, locks, files.items[idx]));
        }
    }
    return 0;
}

static int add_part(struct maker *m, const struct bundle_part *part, struct err *err)
{
    struct err why = {0};
    if (part->own && add_description(m, part->own, err) < 0) {
        return -1;
    }
    if ((strcmp(part->kind, SOURCE_KIND) == 0 ? add_source(m, part->name, &why)
                                              : add_ref(m, part, &why)) == 0) {
        VEC_PUSH(&m->parts, str_of(part->said));
        return 0;
    }
    if (why.code == ERR_INTEGRITY || why.code == ERR_INTERRUPTED) {
        *err = why;
        return err_wrap(err, "%s", part->said);
    }
    VEC_PUSH(&m->missing,
             ((struct bundle_missing){str_of(part->said),
                                      why.code == ERR_NOT_FOUND
                                          ? STR_LIT("not in the store")
                                          : str_of(arena_printf(m->arena, "%s", why.msg))}));
    return 0;
}

static int add_parts(struct maker *m, struct err *err)
{
    for (size_t idx = 0; idx < m->opts->n_parts; idx++) {
        if (add_part(m, &m->opts->parts[idx], err) < 0) {
            return -1;
        }
    }
    if (m->missing.n && !m->opts->allows_missing && !m->is_dry) {
        size_t n_more = m->missing.n - 1;
        return err_set(err, ERR_FETCH,
                       "%.*s: %.*s%s; fetch it first, or --allow-missing makes a bundle without",
                       STR_ARG(m->missing.items[0].said), STR_ARG(m->missing.items[0].why),
                       n_more ? arena_printf(m->arena, " (and %zu more)", n_more) : "");
    }
    return 0;
}

/* Data and programs: from a folder of the data, or beside this program, to where reperf finds it in the bundle. */
static int add_own(struct maker *m, struct err *err)
{
    static const char *const FOLDERS[] = {"manifests", "images", "datasets", "logs/published",
                                          "workloads/competitors"};
    static const char *const OTHERS[] = {"reperf-train", "reperf-pack", "reperf-node"};
    const struct str beside = str_rcut(str_of(m->opts->self), 0, "/");
    for (size_t idx = 0; idx < ARRAY_LEN(FOLDERS); idx++) {
        const char *from = fs_join(m->arena, m->opts->root, FOLDERS[idx]);
        if (fs_is_dir(from) &&
            add_folder(m, arena_printf(m->arena, "share/reperf/%s", FOLDERS[idx]), from, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; beside.len && idx < ARRAY_LEN(OTHERS); idx++) {
        const char *from = arena_printf(m->arena, "%.*s%s", STR_ARG(beside), OTHERS[idx]);
        if (fs_exists(from)) {
            add_file(m, arena_printf(m->arena, PROGRAMS "%s", OTHERS[idx]), from);
        }
    }
    add_file(m, PROGRAMS "reperf", m->opts->self);
    return 0;
}

static void list_parts(struct maker *m)
{
    struct bundle_info *info = &m->info;
    info->n_parts = m->parts.n;
    info->parts = arena_array(m->arena, struct str, m->parts.n + 1);
    for (size_t idx = 0; idx < m->parts.n; idx++) {
        info->parts[idx] = m->parts.items[idx];
    }
    qsort(info->parts, info->n_parts, sizeof(struct str), str_cmp_first);
    info->n_missing = m->missing.n;
    info->missing = arena_array(m->arena, struct bundle_missing, m->missing.n + 1);
    for (size_t idx = 0; idx < m->missing.n; idx++) {
        info->missing[idx] = m->missing.items[idx];
    }
}

/* ---- making: what is written ---- */

static int put(struct maker *m, struct tar_maker *tar, const struct item *item, struct err *err)
{
    struct tree_file file = {.path = item->name};
    tar->is_executable = str_starts(str_of(item->name), STR_LIT(PROGRAMS));
    if (item->path) {
        if (tar_make_file(tar, item->name, item->path, file.sha256, err) < 0) {
            return -1;
        }
    } else {
        sha256_of(item->text, file.sha256);
        if (tar_make_bytes(tar, str_of(item->name), item->text.ptr, item->text.len, err) < 0) {
            return -1;
        }
    }
    VEC_PUSH(&m->sums, file);
    return str_starts(str_of(item->name), STR_LIT(BLOBS_BELOW)) && bundle_check_blob(&file, err) < 0
               ? err_wrap(err, "the store is corrupt")
               : 0;
}

static int put_about(struct maker *m, struct tar_maker *tar, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(STORE_TEXT_MAX);
    char date[RFC3339_MAX];
    clock_rfc3339(m->opts->clock.wall_ns(m->opts->clock.ctx), date);
    m->info.made = str_dup(m->arena, str_of(date));
    m->info.version = STR_LIT(REPERF_VERSION);
    json_encode_document(&text, BUNDLE_ABOUT, BUNDLE_ABOUT_N, &m->info);
    return put(m, tar, &(struct item){.name = ABOUT, .text = strbuf_str(&text)}, err);
}

static int put_sums(struct maker *m, struct tar_maker *tar, struct err *err)
{
    CLEANUP(temp) struct temp *temp = NULL;
    struct tree_list list = {.files = m->sums.items, .n = m->sums.n};
    if (temp_file(store_path(m->opts->store, "tmp/"), 0600, &temp) < 0) {
        return err_errno(err, "create a file in", m->opts->store->folder);
    }
    tree_list_sort(&list);
    return tree_list_print(&list, temp->fd, SUMS, err) < 0
               ? -1
               : tar_make_file(tar, SUMS, temp->path, NULL, err);
}

static int write_all(struct maker *m, struct tar_maker *tar, int fd, struct err *err)
{
    struct digest_value ignored;
    if (fs_expect_room(fd, m->info.file_bytes, m->opts->path, err) < 0 ||
        tar_make_open(tar, fd, false, err) < 0 || put_about(m, tar, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < m->items.n; idx++) {
        if (put(m, tar, &m->items.items[idx], err) < 0) {
            return -1;
        }
    }
    return put_sums(m, tar, err) < 0 ? -1 : tar_make_close(tar, &ignored, err);
}

int bundle_make(struct arena *arena, const struct bundle_opts *opts, bool is_dry,
                struct bundle_info *ret_info, struct err *err)
{
    CLEANUP(maker) struct maker m = {.arena = arena, .opts = opts, .is_dry = is_dry};
    CLEANUP(tar_maker) struct tar_maker tar = {.fd = -1, .should_stop = opts->should_stop};
    CLEANUP(temp) struct temp *temp = NULL;
    if (!is_dry && fs_exists(opts->path)) {
        return err_set(err, ERR_USAGE, "%s exists already", opts->path);
    }
    if (add_parts(&m, err) < 0 || add_own(&m, err) < 0) {
        return -1;
    }
    list_parts(&m);
    if (!is_dry) {
        if (temp_file(opts->path, 0644, &temp) < 0) {
            return err_errno(err, "create", opts->path);
        }
        if (write_all(&m, &tar, temp->fd, err) < 0 ||
            publish_file(temp->fd, temp->path, opts->path, err) < 0) {
            return -1;
        }
    }
    *ret_info = m.info;
    return 0;
}
