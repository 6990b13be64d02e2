/* SPDX-License-Identifier: Apache-2.0 */
/* Data that lies outside of the store, against the description of a dataset: the archives as they were downloaded, and the list of
   digests that its tree can be checked against. */
#include "base/base.h"

#include "base/fs.h"
#include "store/dataset_verify_impl.h"

/* ---- archives ---- */

static int digest_archive(struct dataset_verifying *v, const char *path,
                          struct digest_value *ret_value, struct err *err)
{
    if (dataset_digest_file(path, "verify", v->opts->clock, ret_value, err) < 0) {
        err->code = err->code == ERR_INTERRUPTED ? ERR_INTERRUPTED : ERR_INTEGRITY;
        return -1;
    }
    v->out->n_bytes_read += ret_value->size_bytes;
    return 0;
}

static bool is_right(const struct dataset_file *file, const struct digest_value *found)
{
    return (file->size_bytes < 0 || (uint64_t)file->size_bytes == found->size_bytes) &&
           (!file->has_md5 || memcmp(file->md5, found->md5, MD5_BYTES) == 0) &&
           (!file->has_sha256 || memcmp(file->sha256, found->sha256, SHA256_BYTES) == 0);
}

static int check_archive(struct dataset_verifying *v, const char *path,
                         struct dataset_archive *archive, struct err *err)
{
    const struct dataset_file *file = archive->file;
    archive->is_there = true;
    if (digest_archive(v, path, &archive->found, err) < 0) {
        return -1;
    }
    archive->is_right = is_right(file, &archive->found);
    if (!archive->is_right) {
        bool is_size =
            file->size_bytes >= 0 && (uint64_t)file->size_bytes != archive->found.size_bytes;
        verify_add_fault(v, FAULT_CORRUPT, file->name.ptr,
                         is_size ? "its size differs" : "its digest differs");
    } else if (!file->has_md5 && !file->has_sha256 && !v->here->is_synthetic) {
        verify_note(v, arena_printf(v->arena, "that %s is its authors' file: no digest is known",
                                    file->name.ptr));
    }
    return 0;
}

/* All archives in the description if one of them is in the folder, or is the path itself. */
static int check_archives(struct dataset_verifying *v, bool *ret_is_file, struct err *err)
{
    const char *path = v->out->tree_path;
    const char *slash = strrchr(path, '/');
    size_t n_files = 0;
    size_t n_there = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n_files);
    bool is_file = !fs_is_dir(path);
    v->out->archives = arena_array(v->arena, struct dataset_archive, n_files + 1);
    for (size_t idx = 0; idx < n_files; idx++) {
        struct dataset_archive archive = {.file = &files[idx]};
        const char *at = is_file ? path : fs_join(v->arena, path, files[idx].name.ptr);
        if (is_file && !str_eq_z(files[idx].name, slash ? slash + 1 : path)) {
            continue;
        }
        /* A file that is no archive and lies at the top is one of the tree. */
        if (!is_file && !files[idx].unpack.ptr && !files[idx].into.ptr) {
            continue;
        }
        if (!is_file && (!fs_exists(at) || fs_is_dir(at))) {
            v->out->archives[v->out->n_archives++] = archive;
            continue;
        }
        if (check_archive(v, at, &archive, err) < 0) {
            return -1;
        }
        n_there++;
        v->out->archives[v->out->n_archives++] = archive;
    }
    *ret_is_file = is_file;
    if (n_there == 0) {
        v->out->n_archives = 0;
    }
    return is_file && n_there == 0
               ? err_set(err, ERR_USAGE, "%s: no file of %s has that name (%s)", path,
                         v->here->name, n_files ? files[0].name.ptr : "it has none")
               : 0;
}

/* ---- where its paths begin ---- */

static struct str first_part(struct str path)
{
    size_t len = str_cspan(path, 0, "/");
    return len < path.len ? str_sub(path, 0, len) : STR_EMPTY;
}

/* The first folder that all globs share, such as "cityscapes"; empty if none. */
static struct str common_part(const struct dataset *dataset)
{
    struct str part = dataset->n_groups ? first_part(dataset->groups[0].glob) : STR_EMPTY;
    for (size_t idx = 1; idx < dataset->n_groups; idx++) {
        if (!str_eq(first_part(dataset->groups[idx].glob), part)) {
            return STR_EMPTY;
        }
    }
    return memchr(part.ptr ? part.ptr : "", '*', part.len) ? STR_EMPTY : part;
}

static struct str without(struct str path, size_t len)
{
    return str_sub(path, len, SIZE_MAX);
}

/* A description whose paths begin one folder lower; its names and numbers are the same. */
static const struct dataset_here *lowered(struct dataset_verifying *v, size_t len)
{
    struct dataset_here *here = arena_new(v->arena, struct dataset_here);
    struct dataset *dataset = &here->dataset;
    *here = *v->here;
    dataset->groups = arena_array(v->arena, struct dataset_group, dataset->n_groups + 1);
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        struct dataset_group *group = &dataset->groups[idx];
        *group = v->here->dataset.groups[idx];
        group->glob = without(group->glob, len);
        group->odd_paths = arena_array(v->arena, struct str, group->n_odd + 1);
        for (size_t at = 0; at < group->n_odd; at++) {
            group->odd_paths[at] = without(v->here->dataset.groups[idx].odd_paths[at], len);
        }
    }
    return here;
}

/* Length of the prefix of each path that is the folder itself: "cityscapes/" if the folder is cityscapes/. */
static size_t find_start(struct dataset_verifying *v)
{
    struct str part = common_part(&v->here->dataset);
    const char *folder = v->out->tree_path;
    if (part.len == 0 || fs_exists(fs_join(v->arena, folder, str_z(v->arena, part)))) {
        return 0;
    }
    for (size_t idx = 0; idx < v->here->dataset.n_groups; idx++) {
        struct str rest = without(v->here->dataset.groups[idx].glob, part.len + 1);
        struct str next = first_part(rest);
        if (next.len && fs_is_dir(fs_join(v->arena, folder, str_z(v->arena, next)))) {
            return part.len + 1;
        }
    }
    return 0;
}

/* ---- the list ---- */

/* The lines of a list that begin in the folder, without its name. */
static void lower_list(struct tree_list *list, const char *start, size_t len)
{
    size_t n = 0;
    for (size_t idx = 0; idx < list->n && len; idx++) {
        if (strncmp(list->files[idx].path, start, len) == 0) {
            list->files[n] = list->files[idx];
            list->files[n++].path += len;
        }
    }
    list->n = len ? n : list->n;
}

static int read_list(struct dataset_verifying *v, const char *path, bool is_known, struct err *err)
{
    const struct dataset *dataset = &v->here->dataset;
    if (tree_list_read(v->arena, path, &v->list, err) < 0) {
        return -1;
    }
    tree_list_sha256(&v->list, v->out->tree.seen.list_sha256);
    if (is_known &&
        memcmp(v->out->tree.seen.list_sha256, dataset->list_sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: not the known list of files of %s", path,
                       v->here->name);
    }
    v->out->tree.seen.has_list = true;
    if (!is_known) {
        verify_note(v, arena_printf(v->arena,
                                    "that the list %s is right: no lock or description of %s has "
                                    "its digest",
                                    path, v->here->name));
    }
    return 0;
}

/* The description's own, the folder's, or that of the store's tree; having none is not an error. */
static int find_list(struct dataset_verifying *v, struct err *err)
{
    const struct dataset *dataset = &v->here->dataset;
    bool is_known = !v->here->is_synthetic && dataset->has_list_sha256;
    const char *paths[3] = {
        fs_join(v->arena, v->out->tree_path, DATASET_TREE_LIST),
        fs_join(v->arena, dataset_tree_path(v->store, v->here->name), DATASET_TREE_LIST)};
    if (!v->here->is_synthetic && dataset->list_path.ptr) {
        return read_list(v, fs_join(v->arena, v->here->folder, dataset->list_path.ptr), is_known,
                         err);
    }
    for (size_t idx = 0; paths[idx]; idx++) {
        if (fs_exists(paths[idx])) {
            return read_list(v, paths[idx], is_known, err);
        }
    }
    v->lacks_list = true;
    verify_note(v, arena_printf(v->arena,
                                "the bytes of the files: no list of their digests is at hand "
                                "(reperf data fetch %s makes one from the archives)",
                                dataset->id.ptr));
    return 0;
}

/* Reads the folder's own tree.json: for a synthetic dataset, its number of samples. */
static int read_record(struct dataset_verifying *v, struct err *err)
{
    const char *path = fs_join(v->arena, v->out->tree_path, DATASET_TREE_JSON);
    struct str text;
    if (!fs_exists(path)) {
        return 0;
    }
    if (fs_read(v->arena, path, STORE_TEXT_MAX, &text, err) < 0 ||
        dataset_record_parse(v->arena, text, path, &v->out->tree, err) < 0) {
        return -1;
    }
    if (!str_eq(v->out->tree.seen.id, v->here->dataset.id) ||
        v->out->tree.is_synthetic != v->here->is_synthetic) {
        return err_set(err, ERR_INTEGRITY, "%s: says that it is %s%s", v->out->tree_path,
                       v->out->tree.seen.id.ptr, v->out->tree.is_synthetic ? ", synthetic" : "");
    }
    return verify_archives(v, err);
}

static bool has_tree(const struct dataset_verifying *v, struct err *err)
{
    struct fs_names names = {0};
    size_t n_archives = 0;
    for (size_t idx = 0; idx < v->out->n_archives; idx++) {
        n_archives += v->out->archives[idx].is_there;
    }
    return fs_list(v->arena, v->out->tree_path, &names, err) == 0 &&
           (n_archives == 0 || names.n > n_archives);
}

int verify_open_folder(struct dataset_verifying *v, bool *ret_has_tree, struct err *err)
{
    bool is_file = false;
    if (check_archives(v, &is_file, err) < 0) {
        return -1;
    }
    *ret_has_tree = !is_file && has_tree(v, err);
    if (!*ret_has_tree) {
        if (err->code == ERR_NONE) {
            verify_note(v, "what is in the archives: only they are there, not unpacked");
        }
        for (size_t idx = 0; !is_file && idx < v->out->n_archives; idx++) {
            if (!v->out->archives[idx].is_there) {
                verify_add_fault(v, FAULT_MISSING, v->out->archives[idx].file->name.ptr, NULL);
            }
        }
        return err->code == ERR_NONE ? 0 : -1;
    }
    size_t len = find_start(v);
    if (read_record(v, err) < 0 || find_list(v, err) < 0) {
        return -1;
    }
    if (len) {
        lower_list(&v->list, v->here->dataset.groups[0].glob.ptr, len);
        v->here = lowered(v, len);
    }
    return 0;
}
