/* SPDX-License-Identifier: Apache-2.0 */
/* Making a bundle: what its parts need is listed first, so that nothing is written if something is missing; then the tar is
   written from the list, each file digested on its way, and renamed. Importing one: it is unpacked in the store's tmp/, and
   nothing is changed before every byte has been verified and no lock or reference contradicts an existing one. An import that
   was interrupted is simply done again: blobs that came in stay, references come last. */
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

/* path: NAME.git/... below sources/. Only objects, references and the boundary of a shallow fetch: a config or a hook could
   make git do something else at the destination. */
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

static int check_blob(const struct tree_file *file, struct err *err)
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

/* A file of the bundle. */
struct item {
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
    VEC(struct tree_file) sums;
    struct bundle_info info;
};

static void maker_cleanup(struct maker *m)
{
    map_release(&m->known);
    VEC_RELEASE(&m->items);
    VEC_RELEASE(&m->sums);
}

/* Once; false where it is known already. */
static bool add_file(struct maker *m, const char *name, const char *path)
{
    struct stat info;
    if (!map_add(&m->known, str_of(name), m)) {
        return false;
    }
    VEC_PUSH(&m->items, ((struct item){.name = name, .path = path}));
    m->info.n_files++;
    m->info.file_bytes += stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    return true;
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
    struct store_ref ref = {.kind = part->kind, .name = part->name};
    char *name;
    if (store_ref_read(m->arena, store, &ref, err) < 0 ||
        store_escape(m->arena, part->name, &name, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ref.n_blobs; idx++) {
        if (!store_has(store, ref.blobs[idx], NULL)) {
            return err_set(err, ERR_FETCH, "the store has lost its blob sha256:%s",
                           sha256_hex_of(ref.blobs[idx]).text);
        }
    }
    for (size_t idx = 0; idx < ref.n_blobs; idx++) {
        const char *blob =
            arena_printf(m->arena, BLOBS_BELOW "%s", sha256_hex_of(ref.blobs[idx]).text);
        const uint64_t before = m->info.file_bytes;
        m->info.n_blobs += add_file(m, blob, store_blob_path(store, ref.blobs[idx]));
        m->info.blob_bytes += m->info.file_bytes - before;
    }
    VEC_PUSH(&m->items, ((struct item){.name = arena_printf(m->arena, REFS_BELOW "%s/%s.json",
                                                            part->kind, name),
                                       .text = ref.text}));
    m->info.is_synthetic |= str_find(ref.text, STR_LIT("\"synthetic\": true")) >= 0;
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
        m->info.parts[m->info.n_parts++] = str_of(part->said);
        return 0;
    }
    if (why.code == ERR_INTEGRITY || why.code == ERR_INTERRUPTED) {
        *err = why;
        return err_wrap(err, "%s", part->said);
    }
    m->info.missing[m->info.n_missing++] = (struct bundle_missing){
        str_of(part->said), why.code == ERR_NOT_FOUND ? STR_LIT("not in the store")
                                                      : str_printf(m->arena, "%s", why.msg)};
    return 0;
}

static int add_parts(struct maker *m, struct err *err)
{
    const struct bundle_missing *missing = m->info.missing =
        arena_array(m->arena, struct bundle_missing, m->opts->n_parts + 1);
    m->info.parts = arena_array(m->arena, struct str, m->opts->n_parts + 1);
    for (size_t idx = 0; idx < m->opts->n_parts; idx++) {
        if (add_part(m, &m->opts->parts[idx], err) < 0) {
            return -1;
        }
    }
    qsort(m->info.parts, m->info.n_parts, sizeof(struct str), str_cmp_first);
    if (m->info.n_missing && !m->opts->allows_missing && !m->is_dry) {
        size_t n_more = m->info.n_missing - 1;
        return err_set(err, ERR_FETCH,
                       "%.*s: %.*s%s; fetch it first, or --allow-missing makes a bundle without",
                       STR_ARG(missing->said), STR_ARG(missing->why),
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
    return str_starts(str_of(item->name), STR_LIT(BLOBS_BELOW)) && check_blob(&file, err) < 0
               ? err_wrap(err, "the store is corrupt")
               : 0;
}

static int put_about(struct maker *m, struct tar_maker *tar, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(STORE_TEXT_MAX);
    m->info.made = clock_text(m->arena, m->opts->clock);
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

/* A lock, or a file about a dataset, that is not there yet. */
struct taken_text {
    const char *from, *to;
    const char *described; /* the dataset that it describes, or NULL */
};

struct importer {
    struct arena *arena;
    struct store *store;
    const struct import_opts *opts;
    /* The unpacked bundle, which has its blobs and references where a store has them. */
    struct store there;
    struct tree_list list;
    struct bundle_info info;
    VEC(struct store_ref) refs;
    VEC(struct taken_text) texts;
};

static void importer_cleanup(struct importer *im)
{
    VEC_RELEASE(&im->refs);
    VEC_RELEASE(&im->texts);
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
    return json_read_file(store_path(&im->there, ABOUT), &doc, err) < 0
               ? -1
               : json_decode(&doc.root, im->arena, BUNDLE_ABOUT, ARRAY_LEN(BUNDLE_ABOUT), &im->info,
                             err);
}

/* A blob is what its name says; of a repository no file could make git run or read something else. */
static int check_file(struct importer *im UNUSED, const struct tree_file *file, struct err *err)
{
    struct str path = str_of(file->path);
    if (str_starts(path, STR_LIT(BLOBS_BELOW))) {
        return check_blob(file, err);
    }
    bool is_good = str_starts(path, STR_LIT(SOURCES_BELOW))
                       ? may_have(file->path + strlen(SOURCES_BELOW))
                       : !str_starts(path, STR_LIT(OWN_BELOW)) ||
                             str_starts(path, STR_LIT(OWN_DATASETS)) ||
                             str_starts(path, STR_LIT(OWN_LOCKS));
    return is_good ? 0
                   : err_set(err, ERR_INTEGRITY, "%s: not a file that a bundle may contain",
                             file->path);
}

static int check_bundle(struct importer *im, struct err *err)
{
    const struct unpack_tree_opts opts = {
        .archive = im->opts->path, .into = im->there.folder, .size_bytes = -1};
    struct unpack_tree_result result;
    struct tree_list wanted;
    struct tree_differences found;
    if (unpack_tree(im->arena, &opts, &result, err) < 0) {
        return -1;
    }
    if (tree_list_read(im->arena, store_path(&im->there, SUMS), &wanted, err) < 0) {
        return err_wrap(err, "%s: not a bundle", im->opts->path);
    }
    if (result.n_links) {
        return err_set(err, ERR_INTEGRITY, "%s: a link is in it", im->opts->path);
    }
    im->list = result.list;
    tree_compare(im->arena, &wanted, &result.list, &found);
    return check_sums(im, &found, err) < 0 || for_below(im, "", check_file, err) < 0 ||
                   read_about(im, err) < 0
               ? err_wrap(err, "%s", im->opts->path)
               : 0;
}

/* ---- importing: references ---- */

static bool has_blob(const struct store_ref *ref, const uint8_t *sha256)
{
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        if (memcmp(ref->blobs[idx], sha256, SHA256_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static int check_dataset(const struct importer *im, const struct store_ref *ref, struct err *err)
{
    struct dataset_record record;
    const struct lock *seen = &record.seen;
    if (dataset_record_parse(im->arena, ref->text, ref->name, &record, err) < 0) {
        return -1;
    }
    const char *own = arena_printf(im->arena, "%s%s", seen->id.ptr,
                                   record.is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
    if (strcmp(own, ref->name) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected the reference of dataset %s, found that of %s",
                       ref->name, own);
    }
    for (size_t idx = 0; idx < seen->n_items; idx++) {
        const struct lock_item *item = &seen->items[idx];
        uint64_t size_bytes = 0;
        if (!has_blob(ref, item->sha256)) {
            return err_set(err, ERR_INTEGRITY, "%s: its blob is not among those that are kept",
                           item->name.ptr);
        }
        if (store_has(&im->there, item->sha256, &size_bytes) &&
            size_bytes != (uint64_t)item->size_bytes) {
            return err_set(err, ERR_INTEGRITY, "%s: expected %lld bytes, found %llu",
                           item->name.ptr, (long long)item->size_bytes,
                           (unsigned long long)size_bytes);
        }
    }
    return 0;
}

/* A reference claims digests that nobody checks again: it is whole, of that name, and its blobs are there. */
static int check_ref(const struct importer *im, const struct store_ref *ref, struct err *err)
{
    const bool is_dataset = strcmp(ref->kind, DATASET_REF_KIND) == 0;
    struct image_info info;
    if (!is_dataset && strcmp(ref->kind, IMAGE_KIND) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected one of a dataset or an image");
    }
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        if (!store_has(&im->there, ref->blobs[idx], NULL)) {
            return err_set(err, ERR_INTEGRITY, "the bundle does not have sha256:%s",
                           sha256_hex_of(ref->blobs[idx]).text);
        }
    }
    return is_dataset ? check_dataset(im, ref, err)
                      : image_open(im->arena, &im->there, ref->name, &info, err);
}

/* A bundle fills the store; it does not change what a name means here. A reference grows while it is used, so one with all of the
   other's blobs counts as the same. */
static int check_same(const struct importer *im, const struct store_ref *ref, struct str text,
                      struct err *err)
{
    struct store_ref ours = {.name = ref->name, .text = text};
    size_t n_of_ours = 0, n_of_theirs = 0;
    if (store_ref_parse(im->arena, &ours, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ours.n_blobs; idx++) {
        n_of_ours += has_blob(ref, ours.blobs[idx]);
    }
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        n_of_theirs += has_blob(&ours, ref->blobs[idx]);
    }
    return n_of_ours == ours.n_blobs || n_of_theirs == ref->n_blobs
               ? 0
               : err_set(
                     err, ERR_INTEGRITY,
                     "%s %s: the store has a different one than the bundle; nothing was imported",
                     ref->kind, ref->name);
}

static int read_ref(void *ctx, const struct store_ref *ref, struct err *err)
{
    struct importer *im = ctx;
    struct err absent = {0};
    struct str ours;
    if (check_ref(im, ref, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "reference %s %s", ref->kind, ref->name);
    }
    if (store_ref_get(im->store, ref->kind, ref->name, &ours, &absent) == 0) {
        return check_same(im, ref, ours, err);
    }
    if (absent.code != ERR_NOT_FOUND) {
        return err_pass(err, &absent);
    }
    VEC_PUSH(&im->refs, ((struct store_ref){.kind = arena_printf(im->arena, "%s", ref->kind),
                                            .name = arena_printf(im->arena, "%s", ref->name),
                                            .text = str_dup(im->arena, ref->text)}));
    return 0;
}

static int read_refs(struct importer *im, struct err *err)
{
    if (!fs_is_dir(store_path(&im->there, "refs")) ||
        store_each_ref(&im->there, read_ref, im, err) == 0) {
        return 0;
    }
    err->code = err->code == ERR_MANIFEST ? ERR_INTEGRITY : err->code;
    return err_wrap(err, "bundle %s", im->opts->path);
}

/* The MD5s that it says of its blobs, which are in the store by now, later count as checked. The store's alias is made from
   the bytes. */
static int check_md5s(const struct importer *im, const struct store_ref *ref, struct err *err)
{
    struct dataset_record record;
    if (strcmp(ref->kind, DATASET_REF_KIND) != 0) {
        return 0;
    }
    if (dataset_record_parse(im->arena, ref->text, ref->name, &record, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < record.seen.n_items; idx++) {
        const struct lock_item *item = &record.seen.items[idx];
        uint8_t sha256[SHA256_BYTES];
        if (item->has_md5 && (store_find_md5(im->store, item->md5, sha256, ERR_IGNORED) < 0 ||
                              memcmp(sha256, item->sha256, SHA256_BYTES) != 0)) {
            return err_set(err, ERR_INTEGRITY,
                           "reference %s %s: %s: its bytes do not have the MD5 that the reference "
                           "says",
                           ref->kind, ref->name, item->name.ptr);
        }
    }
    return 0;
}

static int put_refs(struct importer *im, struct err *err)
{
    for (size_t idx = 0; idx < im->refs.n; idx++) {
        const struct store_ref *ref = &im->refs.items[idx];
        if (check_md5s(im, ref, err) < 0 ||
            store_ref_put(im->store, ref->kind, ref->name, ref->text, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- importing: locks, and descriptions of one's own datasets ---- */

/* What is there decides, and must be the same. */
static int take_text(struct importer *im, struct taken_text text, struct err *err)
{
    struct str ours, theirs;
    if (!fs_exists(text.to)) {
        VEC_PUSH(&im->texts, text);
        return 0;
    }
    if (fs_read(im->arena, text.to, OWN_TEXT_MAX, &ours, err) < 0 ||
        fs_read(im->arena, text.from, OWN_TEXT_MAX, &theirs, err) < 0) {
        return -1;
    }
    return str_eq(ours, theirs)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: that of the bundle differs; compare both, then remove one", text.to);
}

/* It belongs at KIND/NAME.json: it decides what every later fetch must deliver. */
static int check_lock(const struct importer *im, const char *path, const char *to, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct lock lock;
    char *own = NULL;
    if (json_read_file(path, &doc, err) < 0 || lock_decode(&doc.root, im->arena, &lock, err) < 0 ||
        lock_path(im->arena, im->opts->locks, lock.kind, lock.id.ptr, &own, err) < 0) {
        return -1;
    }
    return strcmp(own, to) == 0 ? 0
                                : err_set(err, ERR_INTEGRITY, "%s: is the lock of %s %s", path,
                                          LOCK_KIND_NAMES[lock.kind], lock.id.ptr);
}

static int read_lock(struct importer *im, const struct tree_file *file, struct err *err)
{
    const char *from = store_path(&im->there, file->path);
    const char *to = fs_join(im->arena, im->opts->locks, file->path + strlen(LOCKS_BELOW));
    if (!str_ends(str_of(file->path), STR_LIT(".json"))) {
        return 0;
    }
    if (check_lock(im, from, to, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "bundle %s", im->opts->path);
    }
    return take_text(im, (struct taken_text){from, to, NULL}, err);
}

/* A description, after all that belongs to it: with it the dataset is described. One that is described here stays as it is. */
static int read_description(struct importer *im, const struct tree_file *file, struct err *err)
{
    struct str path = str_of(file->path);
    const char *place = NULL;
    if (!str_ends(path, STR_LIT(DESCRIPTION))) {
        return 0;
    }
    const size_t below = strlen(OWN_DATASETS);
    struct str name = str_sub(path, below, path.len - below - strlen(DESCRIPTION));
    struct str folder = str_sub(path, 0, path.len - strlen(DESCRIPTION) + 1);
    if (!is_slug(name)) {
        return err_set(err, ERR_INTEGRITY, "%s: not a name of a dataset", file->path);
    }
    const char *id = str_z(im->arena, name);
    struct taken_text text = {.from = store_path(&im->there, file->path), .described = id};
    text.to = fs_join(im->arena, places_path(im->arena, im->opts->ctx->root, "datasets", id),
                      DESCRIPTION + 1);
    if (fs_exists(text.to)) {
        return take_text(im, text, err);
    }
    if (places_to_write(im->arena, im->opts->ctx, &place, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < im->list.n; idx++) {
        const char *other = im->list.files[idx].path;
        bool is_lock = str_starts(str_of(other), STR_LIT(OWN_LOCKS)) &&
                       is_lock_of(str_of(other + strlen(OWN_LOCKS)), name);
        const struct taken_text more = {.from = store_path(&im->there, other),
                                        .to = fs_join(im->arena, place, other + strlen(OWN_BELOW))};
        if ((is_lock || str_starts(str_of(other), folder)) && strcmp(other, file->path) != 0 &&
            take_text(im, more, err) < 0) {
            return -1;
        }
    }
    text.to = fs_join(im->arena, place, file->path + strlen(OWN_BELOW));
    return take_text(im, text, err);
}

static int put_texts(const struct importer *im, struct err *err)
{
    for (size_t idx = 0; idx < im->texts.n; idx++) {
        const struct taken_text *one = &im->texts.items[idx];
        struct str text;
        if (fs_read(im->arena, one->from, OWN_TEXT_MAX, &text, err) < 0 ||
            fs_mkdir_above(one->to, err) < 0 || fs_write_atomic(one->to, text, err) < 0) {
            return -1;
        }
        if (one->described) {
            log_line(LOG_INFO, "dataset %s is described in %s; data fetch %s unpacks it",
                     one->described, one->to, one->described);
        }
    }
    return 0;
}

/* ---- importing: into the store ---- */

/* One that is there already may be damaged; the bundle's is known to be correct. */
static int import_blob(struct importer *im, const struct tree_file *file, struct err *err)
{
    const char *path = store_path(&im->there, file->path);
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

/* The bundle is a mirror for every source that it says it has: git checks each object on its way (store/source_store.h). */
static int import_sources(struct importer *im, struct err *err)
{
    struct net_opts net = *im->opts->net;
    net.mirror = im->there.folder;
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
    im.there = (struct store){.folder = temp->path, .arena = arena, .lock_fd = -1};
    if (check_bundle(&im, err) < 0 || read_refs(&im, err) < 0 ||
        for_below(&im, LOCKS_BELOW, read_lock, err) < 0 ||
        for_below(&im, OWN_DATASETS, read_description, err) < 0 ||
        for_below(&im, BLOBS_BELOW, import_blob, err) < 0 || import_sources(&im, err) < 0 ||
        put_refs(&im, err) < 0 || put_texts(&im, err) < 0) {
        return -1;
    }
    im.info.n_files = im.list.n;
    *ret_info = im.info;
    return 0;
}
