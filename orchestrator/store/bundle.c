/* SPDX-License-Identifier: Apache-2.0 */
/* Making a bundle: what its parts need is listed first, so that nothing is written if something is missing; then the tar is written
   from the list, each file digested on its way, and renamed. Importing one: it is unpacked in the store's tmp/, and nothing is changed
   before every byte has been verified and no lock or reference contradicts an existing one. An import that was interrupted is simply done
   again: blobs that came in stay, references come last. */
#include "base/base.h"

#include "store/bundle.h"

#include <sys/stat.h>

#include "base/log.h"
#include "base/map.h"
#include "base/publish.h"
#include "base/stop.h"
#include "base/temp.h"
#include "codec/tar_make.h"
#include "load/places.h"
#include "store/image_store.h"
#include "store/lock_file.h"
#include "store/source_store.h"
#include "store/unpack_tree.h"

#define ABOUT         "bundle.json"
#define SUMS          "SHA256SUMS"
#define BLOBS_BELOW   "blobs/sha256/"
#define REFS_BELOW    "refs/"
#define SOURCES_BELOW "sources/"
#define PROGRAMS      "bin/"
#define LOCKS_BELOW   "share/reperf/manifests/locks/"
#define OWN_BELOW     "manifests/"
#define OWN_DATASETS  "manifests/datasets/"
#define OWN_LOCKS     "manifests/locks/dataset/"
#define DESCRIPTION   "/dataset.json"
#define SOURCE_KIND   "source"
#define OWN_TEXT_MAX  (1u << 30) /* the list of files of a large dataset */

/* ---- bundle.json ---- */

static const struct json_field MISSING_ROWS[] = {
    ROW("part", struct bundle_missing, said, JSON_REQUIRED),
    ROW("why", struct bundle_missing, why, JSON_REQUIRED)};

#define LISTS                                                                                      \
    ROW_STRS("parts", struct bundle_info, parts, n_parts, JSON_REQUIRED, .max = BUNDLE_PARTS_MAX), \
        ROW_LIST("missing", struct bundle_info, missing, n_missing, MISSING_ROWS, JSON_REQUIRED,   \
                 .max = BUNDLE_PARTS_MAX)
const struct json_field BUNDLE_LISTS[BUNDLE_LISTS_N] = {LISTS};
static const struct json_field BUNDLE_ABOUT[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("made", struct bundle_info, made, JSON_REQUIRED),
    ROW("version", struct bundle_info, version, JSON_REQUIRED),
    ROW("synthetic", struct bundle_info, is_synthetic, JSON_REQUIRED),
    LISTS,
};

/* ---- what both ways know of a part ---- */

struct importer;

/* path: NAME.git/... below sources/. Only objects, references and the boundary of a shallow fetch: a config or a hook could make git do
   something else at the destination. */
static bool may_have(const char *path)
{
    static const char *const NAMES[] = {"HEAD", "shallow", "packed-refs", NULL};
    struct str below = str_of(path), repo;
    return str_next(&below, '/', &repo) &&
           (str_eq_any(below, NAMES) || str_starts(below, STR_LIT("refs/")) ||
            (str_starts(below, STR_LIT("objects/")) &&
             !str_starts(below, STR_LIT("objects/info/"))));
}

struct source_from {
    struct arena *arena;
    const struct store *store;
    const struct net_opts *net;
    bool is_deep; /* every object is hashed again */
};

/* The source URL@COMMIT, which is fetched into the store from net->mirror, or without one must be there: ERR_NOT_FOUND. */
static int find_source(const struct source_from *from, const char *name,
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

static int check_blob(struct importer *im UNUSED, const struct tree_file *file, struct err *err)
{
    const struct hex hex = sha256_hex_of(file->sha256);
    const char *name = file->path + strlen(BLOBS_BELOW);
    return strcmp(name, hex.text) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "blob sha256:%s: its bytes have the digest %s", name,
                         hex.text);
}

/* ID.json and ID.FILE.pieces */
static bool is_lock_of(struct str name, struct str id)
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
            may_have(to + strlen(SOURCES_BELOW))) {
            add_file(m, to, fs_join(m->arena, folder, files.items[idx]));
        }
    }
    return 0;
}

static int add_source(struct maker *m, const char *name, struct err *err)
{
    const struct source_from from = {m->arena, m->opts->store, m->opts->net, !m->is_dry};
    struct source_tree tree;
    if (find_source(&from, name, &tree, err) < 0) {
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
    m->info.is_synthetic |= str_find(text, STR_LIT("\"synthetic\": true")) >= 0;
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
        if (is_lock_of(str_of(files.items[idx]), own->dataset.id)) {
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
    VEC_PUSH(&m->missing, ((struct bundle_missing){str_of(part->said),
                                                   why.code == ERR_NOT_FOUND
                                                       ? STR_LIT("not in the store")
                                                       : str_printf(m->arena, "%s", why.msg)}));
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
    m->info.parts = m->parts.items;
    m->info.n_parts = m->parts.n;
    m->info.missing = m->missing.items;
    m->info.n_missing = m->missing.n;
    arena_adopt(m->arena, m->parts.items);
    arena_adopt(m->arena, m->missing.items);
    if (m->parts.n) {
        qsort(m->parts.items, m->parts.n, sizeof(struct str), str_cmp_first);
    }
    m->parts.items = NULL;
    m->missing.items = NULL;
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
    return str_starts(str_of(item->name), STR_LIT(BLOBS_BELOW)) && check_blob(NULL, &file, err) < 0
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
    json_encode_document(&text, BUNDLE_ABOUT, ARRAY_LEN(BUNDLE_ABOUT), &m->info);
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
    CLEANUP(tar_maker) struct tar_maker tar = {.fd = -1};
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

/* ---- importing ---- */

struct taken_ref { /* a reference of the bundle */
    const char *kind, *name;
    struct str text;
    const uint8_t (*blobs)[SHA256_BYTES];
    size_t n_blobs;
    struct dataset_record record; /* of a dataset */
    bool is_new;
};

struct taken_lock { /* that is not there yet */
    const char *path;
    struct str text;
};

struct importer {
    struct arena *arena;
    struct store *store;
    const struct import_opts *opts;
    const char *folder; /* where it is unpacked */
    struct tree_list list;
    struct bundle_info info;
    VEC(struct taken_ref) refs;
    VEC(struct taken_lock) locks;
    VEC(const char *) own; /* names of datasets that are not described here yet */
};

static void importer_cleanup(struct importer *im)
{
    VEC_RELEASE(&im->refs);
    VEC_RELEASE(&im->locks);
    VEC_RELEASE(&im->own);
}

static char *in_bundle(const struct importer *im, const char *path)
{
    return fs_join(im->arena, im->folder, path);
}

/* Every file of the bundle whose path begins so. */
static int for_below(struct importer *im, const char *prefix,
                     int (*fn)(struct importer *im, const struct tree_file *file, struct err *err),
                     struct err *err)
{
    int result = 0;
    for (size_t idx = 0; result == 0 && idx < im->list.n; idx++) {
        const struct tree_file *file = &im->list.files[idx];
        result = str_starts(str_of(file->path), str_of(prefix)) ? fn(im, file, err) : 0;
    }
    return result;
}

/* ---- importing: the bundle holds ---- */

/* The list cannot hold its own digest, and is therefore one file too many. */
static int check_sums(const struct importer *im, const struct tree_differences *found,
                      struct err *err)
{
    for (size_t idx = 0; idx < found->n; idx++) {
        const struct tree_difference *d = &found->items[idx];
        if (strcmp(d->path, SUMS) != 0) {
            return err_set(err, ERR_INTEGRITY, "bundle %s: %zu files are wrong: %s %s",
                           im->opts->path, found->n - 1, TREE_FAULT_NAMES[d->fault], d->path);
        }
    }
    return 0;
}

static int read_about(struct importer *im, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (json_read_file(in_bundle(im, ABOUT), &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    return json_decode(&root, im->arena, BUNDLE_ABOUT, ARRAY_LEN(BUNDLE_ABOUT), &im->info, err);
}

static int check_bundle(struct importer *im, struct err *err)
{
    const struct unpack_tree_opts opts = {.archive = im->opts->path,
                                          .into = im->folder,
                                          .unpack = {.format = "tar"},
                                          .size_bytes = -1};
    struct unpack_tree_result result;
    struct tree_list wanted;
    struct tree_differences found;
    if (unpack_tree(im->arena, &opts, &result, err) < 0) {
        return -1;
    }
    if (tree_list_read(im->arena, in_bundle(im, SUMS), &wanted, err) < 0) {
        return err_wrap(err, "%s: not a bundle", im->opts->path);
    }
    if (result.n_links) {
        return err_set(err, ERR_INTEGRITY, "%s: a link is in it", im->opts->path);
    }
    im->list = result.list;
    tree_compare(im->arena, &wanted, &result.list, &found);
    return check_sums(im, &found, err) < 0 || for_below(im, BLOBS_BELOW, check_blob, err) < 0 ||
                   read_about(im, err) < 0
               ? err_wrap(err, "%s", im->opts->path)
               : 0;
}

/* ---- importing: locks ---- */

/* The lock that belongs at KIND/NAME.json, and does not differ from ours: it decides what every later fetch must deliver. */
static int check_lock(struct importer *im, struct str text, const char *path, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct lock lock;
    struct str ours;
    char *to = NULL;
    if (json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (lock_decode(&root, im->arena, &lock, err) < 0 ||
        lock_path(im->arena, im->opts->locks, lock.kind, lock.id.ptr, &to, err) < 0) {
        return -1;
    }
    if (strcmp(to, fs_join(im->arena, im->opts->locks, path + strlen(LOCKS_BELOW))) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: is the lock of %s %s", path,
                       LOCK_KIND_NAMES[lock.kind], lock.id.ptr);
    }
    if (!fs_exists(to)) {
        VEC_PUSH(&im->locks, ((struct taken_lock){to, text}));
        return 0;
    }
    if (fs_read(im->arena, to, STORE_TEXT_MAX, &ours, err) < 0) {
        return -1;
    }
    return str_eq(ours, text)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: the lock of the bundle differs; compare both, then remove one", to);
}

static int read_lock(struct importer *im, const struct tree_file *file, struct err *err)
{
    struct str text;
    if (!str_ends(str_of(file->path), STR_LIT(".json"))) {
        return 0;
    }
    if (fs_read(im->arena, in_bundle(im, file->path), STORE_TEXT_MAX, &text, err) < 0) {
        return -1;
    }
    if (check_lock(im, text, file->path, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "bundle %s", im->opts->path);
    }
    return 0;
}

static int put_locks(const struct importer *im, struct err *err)
{
    for (size_t idx = 0; idx < im->locks.n; idx++) {
        const struct taken_lock *lock = &im->locks.items[idx];
        if (fs_mkdir_above(lock->path, err) < 0 ||
            fs_write_atomic(lock->path, lock->text, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- importing: descriptions of one's own datasets ---- */

/* One that is described here stays as it is: it must be the same. */
static int read_own(struct importer *im, const struct tree_file *file, struct err *err)
{
    struct str path = str_of(file->path), ours, theirs;
    if (!str_starts(path, STR_LIT(OWN_DATASETS)) && !str_starts(path, STR_LIT(OWN_LOCKS))) {
        return err_set(err, ERR_INTEGRITY, "%s: not a file that a bundle may contain", file->path);
    }
    if (!str_starts(path, STR_LIT(OWN_DATASETS)) || !str_ends(path, STR_LIT(DESCRIPTION))) {
        return 0;
    }
    const size_t below = strlen(OWN_DATASETS);
    struct str name = str_sub(path, below, path.len - below - strlen(DESCRIPTION));
    if (!is_slug(name)) {
        return err_set(err, ERR_INTEGRITY, "%s: not a name of a dataset", file->path);
    }
    const char *id = str_z(im->arena, name);
    const char *known = fs_join(
        im->arena, places_path(im->arena, im->opts->ctx->root, "datasets", id), "dataset.json");
    if (!fs_exists(known)) {
        VEC_PUSH(&im->own, id);
        return 0;
    }
    if (fs_read(im->arena, known, STORE_TEXT_MAX, &ours, err) < 0 ||
        fs_read(im->arena, in_bundle(im, file->path), STORE_TEXT_MAX, &theirs, err) < 0) {
        return -1;
    }
    return str_eq(ours, theirs) ? 0
                                : err_set(err, ERR_INTEGRITY,
                                          "%s: the bundle describes another dataset %s", known, id);
}

static bool is_of(struct str path, struct str id)
{
    struct str of_folder = str_sub(path, strlen(OWN_DATASETS), path.len);
    return str_starts(path, STR_LIT(OWN_DATASETS))
               ? str_starts(of_folder, id) && of_folder.ptr[id.len] == '/'
               : is_lock_of(str_sub(path, strlen(OWN_LOCKS), path.len), id);
}

/* dataset.json comes last: with it the dataset is described. */
static int put_own(const struct importer *im, struct err *err)
{
    const char *place = NULL;
    if (im->own.n && places_to_write(im->arena, im->opts->ctx, &place, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < 2 * im->own.n * im->list.n; idx++) {
        const char *id = im->own.items[idx / im->list.n / 2];
        struct str path = str_of(im->list.files[idx % im->list.n].path), text;
        bool is_last = str_ends(path, STR_LIT(DESCRIPTION));
        if (!str_starts(path, STR_LIT(OWN_BELOW)) || !is_of(path, str_of(id)) ||
            is_last != (idx / im->list.n % 2 == 1)) {
            continue;
        }
        const char *to = fs_join(im->arena, place, path.ptr + strlen(OWN_BELOW));
        if (fs_read(im->arena, in_bundle(im, path.ptr), OWN_TEXT_MAX, &text, err) < 0 ||
            fs_mkdir_above(to, err) < 0 || fs_write_atomic(to, text, err) < 0) {
            return -1;
        }
        if (is_last) {
            log_line(LOG_INFO, "dataset %s is described in %s; data fetch %s unpacks it", id, to,
                     id);
        }
    }
    return 0;
}

/* ---- importing: references ---- */

static bool has_blob(const uint8_t (*blobs)[SHA256_BYTES], size_t n, const uint8_t *sha256)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (memcmp(blobs[idx], sha256, SHA256_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_all(const struct taken_ref *more, const struct taken_ref *less)
{
    for (size_t idx = 0; idx < less->n_blobs; idx++) {
        if (!has_blob(more->blobs, more->n_blobs, less->blobs[idx])) {
            return false;
        }
    }
    return true;
}

static int list_blobs(struct importer *im, struct taken_ref *ref, struct err *err)
{
    uint8_t(*blobs)[SHA256_BYTES];
    if (store_ref_blobs(im->arena, ref->text, ref->name, &blobs, &ref->n_blobs, err) < 0) {
        return -1;
    }
    ref->blobs = (const uint8_t(*)[SHA256_BYTES])blobs;
    return 0;
}

static int check_dataset(struct importer *im, struct taken_ref *ref, struct err *err)
{
    const struct lock *seen = &ref->record.seen;
    if (dataset_record_parse(im->arena, ref->text, ref->name, &ref->record, err) < 0) {
        return -1;
    }
    const char *own = arena_printf(im->arena, "%s%s", seen->id.ptr,
                                   ref->record.is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
    if (strcmp(own, ref->name) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected the reference of dataset %s, found that of %s",
                       ref->name, own);
    }
    for (size_t idx = 0; idx < seen->n_items; idx++) {
        if (!has_blob(ref->blobs, ref->n_blobs, seen->items[idx].sha256)) {
            return err_set(err, ERR_INTEGRITY, "%s: its blob is not among those that are kept",
                           seen->items[idx].name.ptr);
        }
    }
    return 0;
}

/* A reference claims digests that nobody checks again: it is whole, of that name, and its blobs are there. */
static int check_ref(struct importer *im, struct taken_ref *ref, struct err *err)
{
    const bool is_dataset = strcmp(ref->kind, DATASET_REF_KIND) == 0;
    if (!is_dataset && strcmp(ref->kind, IMAGE_KIND) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected one of a dataset or an image");
    }
    if (list_blobs(im, ref, err) < 0 ||
        (is_dataset ? check_dataset(im, ref, err) : image_ref_check(ref->text, ref->name, err)) <
            0) {
        return -1;
    }
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        const char *hex = arena_printf(im->arena, "%s", sha256_hex_of(ref->blobs[idx]).text);
        if (!tree_list_find(&im->list, arena_printf(im->arena, BLOBS_BELOW "%s", hex)) &&
            !store_has(im->store, ref->blobs[idx], NULL)) {
            return err_set(err, ERR_INTEGRITY, "neither the bundle nor the store has sha256:%s",
                           hex);
        }
    }
    return 0;
}

/* A bundle fills the store; it does not change what a name means here. A reference grows while it is used, so one with all of the
   other's blobs counts as the same. */
static int compare_ref(struct importer *im, struct taken_ref *ref, struct err *err)
{
    struct taken_ref ours = {.kind = ref->kind, .name = ref->name};
    struct err absent = {0};
    if (store_ref_get(im->store, ref->kind, ref->name, &ours.text, &absent) < 0) {
        ref->is_new = absent.code == ERR_NOT_FOUND;
        return ref->is_new ? 0 : (*err = absent, -1);
    }
    if (list_blobs(im, &ours, err) < 0) {
        return -1;
    }
    return has_all(&ours, ref) || has_all(ref, &ours)
               ? 0
               : err_set(
                     err, ERR_INTEGRITY,
                     "%s %s: the store has a different one than the bundle; nothing was imported",
                     ref->kind, ref->name);
}

static int read_ref(struct importer *im, const struct tree_file *file, struct err *err)
{
    struct str rest = str_of(file->path + strlen(REFS_BELOW)), kind;
    struct taken_ref ref = {0};
    if (str_next(&rest, '/', &kind) && str_ends(rest, STR_LIT(".json"))) {
        ref.kind = str_z(im->arena, kind);
        ref.name = store_unescape(im->arena, str_z(im->arena, str_sub(rest, 0, rest.len - 5)));
    }
    if (!ref.name) {
        return err_set(err, ERR_INTEGRITY, "%s: expected refs/KIND/NAME.json", file->path);
    }
    if (fs_read(im->arena, in_bundle(im, file->path), STORE_TEXT_MAX, &ref.text, err) < 0) {
        return -1;
    }
    if (check_ref(im, &ref, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "reference %s %s", ref.kind, ref.name);
    }
    if (compare_ref(im, &ref, err) < 0) {
        return -1;
    }
    VEC_PUSH(&im->refs, ref);
    return 0;
}

/* What it says of its blobs, which are in the store by now: sizes, and MD5s that later count as checked. The store's alias is made from
   the bytes. */
static int check_claims(const struct importer *im, const struct taken_ref *ref, struct err *err)
{
    for (size_t idx = 0; idx < ref->record.seen.n_items; idx++) {
        const struct lock_item *item = &ref->record.seen.items[idx];
        struct err none = {0};
        uint64_t size_bytes = 0;
        uint8_t sha256[SHA256_BYTES];
        if (!store_has(im->store, item->sha256, &size_bytes) ||
            size_bytes != (uint64_t)item->size_bytes) {
            return err_set(err, ERR_INTEGRITY, "%s: expected %lld bytes, found %llu",
                           item->name.ptr, (long long)item->size_bytes,
                           (unsigned long long)size_bytes);
        }
        if (item->has_md5 && (store_find_md5(im->store, item->md5, sha256, &none) < 0 ||
                              memcmp(sha256, item->sha256, SHA256_BYTES) != 0)) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: its bytes do not have the MD5 that the reference says",
                           item->name.ptr);
        }
    }
    return 0;
}

static int import_ref(struct importer *im, const struct taken_ref *ref, struct err *err)
{
    if (check_claims(im, ref, err) < 0) {
        return err_wrap(err, "reference %s %s", ref->kind, ref->name);
    }
    if (ref->is_new && store_ref_put(im->store, ref->kind, ref->name, ref->text, err) < 0) {
        return -1;
    }
    struct image_info info;
    struct err ignored = {0};
    if (strcmp(ref->kind, IMAGE_KIND) != 0 ||
        image_open(im->arena, im->store, ref->name, &info, err) == 0) {
        return 0;
    }
    /* Its manifest is invalid: the name means nothing here. */
    if (ref->is_new && store_ref_drop(im->store, ref->kind, ref->name, &ignored) < 0) {
        log_line(LOG_WARN, "%s", ignored.msg);
    }
    return -1;
}

/* ---- importing: into the store ---- */

/* One that is there already may be damaged; the bundle's is known to be correct. */
static int import_blob(struct importer *im, const struct tree_file *file, struct err *err)
{
    const char *path = in_bundle(im, file->path);
    struct digest_value value; /* the MD5 too, by which descriptions may name it */
    if (stop_is_asked()) {
        return err_set(err, ERR_INTERRUPTED, "stopped");
    }
    if (digest_file(path, DIGEST_MD5 | DIGEST_SHA256, &value, err) < 0 ||
        store_adopt(im->store, path, &value, err) < 0) {
        return -1;
    }
    im->info.n_blobs++;
    im->info.blob_bytes += value.size_bytes;
    return 0;
}

/* Before anything is changed: no file that could make git run or read something else. */
static int check_source(struct importer *im UNUSED, const struct tree_file *file, struct err *err)
{
    return may_have(file->path + strlen(SOURCES_BELOW))
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: not a file that a bundle may contain",
                         file->path);
}

/* The bundle is a mirror for every source that it says it has: git checks each object on its way (store/source_store.h). */
static int import_sources(struct importer *im, struct err *err)
{
    struct net_opts net = *im->opts->net;
    net.mirror = im->folder;
    const struct source_from from = {im->arena, im->store, &net, false};
    for (size_t idx = 0; idx < im->info.n_parts; idx++) {
        struct source_tree tree;
        struct str name = im->info.parts[idx];
        if (str_starts(name, STR_LIT(SOURCE_KIND " ")) &&
            find_source(&from, str_z(im->arena, str_sub(name, strlen(SOURCE_KIND " "), name.len)),
                        &tree, err) < 0) {
            err->code = err->code == ERR_FETCH ? ERR_INTEGRITY : err->code;
            return err_wrap(err, "bundle %s", im->opts->path);
        }
    }
    return 0;
}

int bundle_import(struct arena *arena, const struct import_opts *opts, struct bundle_info *ret_info,
                  struct err *err)
{
    CLEANUP(importer)
    struct importer im = {.arena = arena, .opts = opts, .store = opts->store};
    CLEANUP(temp) struct temp *temp = NULL;
    if (!fs_exists(opts->path)) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such file", opts->path);
    }
    if (temp_folder(store_path(opts->store, "tmp/"), &temp, err) < 0) {
        return -1;
    }
    im.folder = temp->path;
    if (check_bundle(&im, err) < 0 || for_below(&im, SOURCES_BELOW, check_source, err) < 0 ||
        for_below(&im, REFS_BELOW, read_ref, err) < 0 ||
        for_below(&im, LOCKS_BELOW, read_lock, err) < 0 ||
        for_below(&im, OWN_BELOW, read_own, err) < 0 ||
        for_below(&im, BLOBS_BELOW, import_blob, err) < 0 || import_sources(&im, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < im.refs.n; idx++) {
        if (import_ref(&im, &im.refs.items[idx], err) < 0) {
            return -1;
        }
    }
    if (put_locks(&im, err) < 0 || put_own(&im, err) < 0) {
        return -1;
    }
    im.info.n_files = im.list.n;
    *ret_info = im.info;
    return 0;
}
