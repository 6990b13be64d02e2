/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over what is expected and what is there.

     record and list  -->  digests of all files (sys/tree)  -->  headers, in parallel  -->  groups  -->  faults

   A folder outside of the store may have archives next to its tree or instead of it, and no record or list of its own: then
   what is known elsewhere is taken, and what nobody knows is said in not_checked. */
#include "base/base.h"

#include "store/dataset_verify.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/progress.h"
#include "codec/file_header.h"

#define NOTES_MAX (8 + 4 * DATASET_GROUPS_MAX + 2 * DATASET_FILES_MAX)

/* A file that is there. */
struct file {
    const char *path;                         /* below the folder */
    const struct dataset_group *group;        /* NULL: none has it */
    const struct tree_difference *difference; /* from the list; NULL: none */
    char *why;                                /* owned by the heap: what is wrong with its header */
    int64_t n_records;                        /* records of a TFRecord, lines of a text; -1: none */
    bool is_seen, is_paired;
};

struct dataset_check {
    struct arena *arena;
    const struct store *store;
    const struct dataset_here *here;
    const struct dataset_verify_opts *opts;
    struct dataset_verified *out;
    bool lacks_list;    /* a folder's: what lies there is no fault for want of a line in a list */
    struct file *files; /* sorted by path */
    size_t n_files;
    VEC(struct dataset_fault) faults;
    struct progress progress;
};

const char *const DATASET_FAULTS[FAULT_KINDS] = {"missing", "extra",      "corrupt",
                                                 "header",  "unreadable", "count"};
const char *const DATASET_VERDICTS[DATASET_N_VERDICTS] = {"holds", "partly", "wrong"};

char *dataset_faults_text(struct arena *arena, const size_t n_of[FAULT_KINDS])
{
    char *text = NULL;
    for (size_t idx = 0; idx < FAULT_KINDS; idx++) {
        const char *name = idx == FAULT_COUNT    ? "wrong counts"
                           : idx == FAULT_HEADER ? "not what their group says"
                                                 : DATASET_FAULTS[idx];
        if (n_of[idx]) {
            text = text ? arena_printf(arena, "%s, %zu %s", text, n_of[idx], name)
                        : arena_printf(arena, "%zu %s", n_of[idx], name);
        }
    }
    return text ? text : arena_printf(arena, "nothing is wrong");
}

PRINTF_LIKE(2, 3) static void note(struct dataset_check *v, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ASSERT(v->out->n_not_checked < NOTES_MAX);
    v->out->not_checked[v->out->n_not_checked++] = str_vprintf(v->arena, fmt, args).ptr;
    va_end(args);
}

PRINTF_LIKE(4, 5)
static void add_fault(struct dataset_check *v, enum dataset_fault_kind kind, const char *path,
                      const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const struct str why = str_vprintf(v->arena, fmt, args);
    VEC_PUSH(&v->faults,
             ((struct dataset_fault){.kind = kind, .path = path, .why = why.len ? why.ptr : NULL}));
    va_end(args);
}

static bool is_deep(const struct dataset_check *v)
{
    return v->opts->depth == DEPTH_DEEP;
}

/* ---- headers ---- */

/* Where the dataset is synthetic, the description's number of lines is the original's. */
static int check_facts(const struct dataset_check *v, const struct dataset_group *group,
                       const struct file_header *header, struct err *err)
{
    const struct {
        const char *what;
        int64_t wanted, found;
    } facts[] = {{"pixels of width", group->width, header->width},
                 {"pixels of height", group->height, header->height},
                 {"channels", group->channels, header->channels},
                 {"lines", v->here->is_synthetic ? -1 : group->n_lines, header->n_records}};
    for (size_t idx = 0; idx < ARRAY_LEN(facts); idx++) {
        if (facts[idx].wanted >= 0 && facts[idx].found != facts[idx].wanted) {
            return err_set(err, ERR_INTEGRITY, "expected %lld %s, found %lld",
                           (long long)facts[idx].wanted, facts[idx].what,
                           (long long)facts[idx].found);
        }
    }
    return 0;
}

static const struct {
    int (*read)(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                struct err *err);
    bool is_skipped; /* most of the file, unless deep */
} READERS[] = {
    [FILE_JPEG] = {file_header_jpeg, true},         [FILE_PNG] = {file_header_png, false},
    [FILE_HDF5] = {file_header_hdf5, true},         [FILE_TEXT] = {file_header_text, false},
    [FILE_TFRECORD] = {file_header_tfrecord, true},
};

static int check_bytes(const struct dataset_check *v, struct file *file, const void *ptr,
                       size_t len, struct err *err)
{
    struct file_header header;
    if (READERS[file->group->format].read(ptr, len, is_deep(v), &header, err) < 0) {
        return -1;
    }
    file->n_records = header.n_records;
    return check_facts(v, file->group, &header, err);
}

/* The tree is the user's: a file that is cut while it is mapped may end this program with SIGBUS, so only large files, or
   those of which most is skipped, are mapped. */
#define READ_MAX (64u << 20)

static int check_file(const struct dataset_check *v, struct file *file, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(fd) int fd = -1;
    const char *path = fs_join(&arena, v->out->tree_path, file->path);
    struct str text;
    struct stat info;
    if (fs_open(path, &fd, &info, err) < 0) {
        return -1;
    }
    const size_t len = (size_t)info.st_size;
    const bool is_skipped = !is_deep(v) && READERS[file->group->format].is_skipped;
    if (len <= READ_MAX && (!is_skipped || len == 0)) {
        return fs_read(&arena, path, READ_MAX, &text, err) < 0
                   ? -1
                   : check_bytes(v, file, text.ptr, text.len, err);
    }
    void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return err_errno(err, "map", path);
    }
    int result = check_bytes(v, file, bytes, len, err);
    munmap(bytes, len);
    return result;
}

static int check_nth(void *ctx, size_t idx, const atomic_bool *is_stopped UNUSED,
                     struct err *err UNUSED)
{
    const struct dataset_check *v = ctx;
    struct file *file = &v->files[idx];
    struct err why = {0};
    file->is_seen = file->group && READERS[file->group->format].read &&
                    !str_is_in(str_of(file->path), file->group->odd_paths, file->group->n_odd);
    if (file->is_seen && check_file(v, file, &why) < 0) {
        file->why = xstrdup(why.msg);
    }
    return 0;
}

static void show_headers(void *ctx, size_t n_begun)
{
    struct dataset_check *v = ctx;
    progress_set(&v->progress, n_begun);
}

static int check_headers(struct dataset_check *v, struct err *err)
{
    const struct pool_many many = {.pool = v->opts->pool,
                                   .n_threads = v->opts->n_threads ? v->opts->n_threads : 1,
                                   .n = v->n_files,
                                   .each = check_nth,
                                   .on_tick = show_headers,
                                   .ctx = v};
    if (v->opts->depth == DEPTH_QUICK) {
        note(v, "headers of images and records, and the numbers of samples in them (--quick)");
        return 0;
    }
    progress_start(&v->progress, v->opts->clock, "headers", "files", v->n_files);
    int result = pool_many(&many, err);
    progress_end(&v->progress);
    return result < 0 ? err_wrap(err, "verify") : 0;
}

/* ---- the description's groups against the files that exist: numbers, folders, partners, samples ---- */

static const struct dataset_synthetic_split *synthetic_split(const struct dataset_check *v,
                                                             struct str name)
{
    return v->here->is_synthetic ? STR_NAMED(v->out->tree.splits, v->out->tree.n_splits, name, name)
                                 : NULL;
}

static int64_t samples_of(const struct dataset_check *v, struct str split)
{
    const struct dataset *dataset = &v->here->dataset;
    const struct dataset_synthetic_split *synthetic = synthetic_split(v, split);
    const struct dataset_split *stated = STR_NAMED(dataset->splits, dataset->n_splits, name, split);
    return synthetic                          ? synthetic->n_samples
           : v->here->is_synthetic || !stated ? -1
                                              : stated->n_samples;
}

static bool is_label_text(const struct dataset_group *group)
{
    return group->role == ROLE_LABEL && group->format == FILE_TEXT;
}

/* For a synthetic dataset what was made; else what is stated for the group, or for the split if each image is a file. */
static void wanted_counts(const struct dataset_check *v, const struct dataset_group *group,
                          struct dataset_group_count *count)
{
    const struct dataset_synthetic_split *synthetic = synthetic_split(v, group->split);
    const bool is_whole = is_label_text(group) || group->role == ROLE_RECORDS;
    count->wanted_files = count->wanted_folders = -1;
    if (synthetic) {
        count->wanted_files = is_label_text(group) ? 1
                              : is_whole           ? synthetic->n_folders
                                                   : synthetic->n_samples;
        count->wanted_folders = is_whole ? -1 : synthetic->n_folders;
    } else if (!v->here->is_synthetic) {
        count->wanted_folders = group->n_folders;
        count->wanted_files = group->n_files >= 0 || group->role != ROLE_IMAGE
                                  ? group->n_files
                                  : samples_of(v, group->split);
    }
}

static void check_folder(struct dataset_check *v, const struct dataset_group *group,
                         struct str folder, int64_t n)
{
    if (!v->here->is_synthetic && ((group->folder_min >= 0 && n < group->folder_min) ||
                                   (group->folder_max >= 0 && n > group->folder_max))) {
        add_fault(v, FAULT_COUNT, str_z(v->arena, folder),
                  "%s: expected %lld to %lld files in the folder, found %lld", group->name.ptr,
                  (long long)group->folder_min, (long long)group->folder_max, (long long)n);
    }
}

static void check_number(struct dataset_check *v, const char *name, int64_t wanted, int64_t found,
                         const char *what)
{
    if (wanted >= 0 && wanted != found) {
        add_fault(v, FAULT_COUNT, name, "expected %lld %s, found %lld", (long long)wanted, what,
                  (long long)found);
    }
}

/* The samples in files with many each. */
static void check_records(struct dataset_check *v, const struct dataset_group *group, int64_t found)
{
    const int64_t wanted = samples_of(v, group->split);
    if (group->role != ROLE_RECORDS &&
        !(synthetic_split(v, group->split) && is_label_text(group))) {
        return;
    }
    if (group->format == FILE_HDF5) {
        note(v,
             "the datasets within the HDF5 files of group %s (reperf data pack reads them): only "
             "signature and length",
             group->name.ptr);
    } else if (wanted < 0) {
        note(v, "the number of samples of group %s: not stated", group->name.ptr);
    } else if (v->opts->depth != DEPTH_QUICK) {
        check_number(v, group->name.ptr, wanted, found, "samples");
    }
}

static void check_group(struct dataset_check *v, const struct dataset_group *group,
                        struct dataset_group_count *count)
{
    struct str *folders = arena_array(v->arena, struct str, v->n_files + 1);
    int64_t n = 0, n_records = 0;
    *count = (struct dataset_group_count){.name = group->name.ptr};
    wanted_counts(v, group, count);
    for (size_t idx = 0; idx < v->n_files; idx++) {
        const struct file *file = &v->files[idx];
        if (file->group == group) {
            folders[n++] = str_rcut(str_of(file->path), 0, "/");
            count->n_headers += file->is_seen;
            n_records += file->n_records > 0 ? file->n_records : 0;
        }
    }
    qsort(folders, (size_t)n, sizeof(*folders), str_cmp_first);
    for (int64_t idx = 0, first = 0; idx < n; idx++) {
        if (idx + 1 == n || !str_eq(folders[idx], folders[idx + 1])) {
            struct str folder = folders[idx];
            folder.len -= folder.len > 0; /* its slash */
            check_folder(v, group, folder, idx + 1 - first);
            count->n_folders++;
            first = idx + 1;
        }
    }
    count->n_files = (uint64_t)n;
    if (v->lacks_list && n == 0) {
        add_fault(v, FAULT_COUNT, count->name, "no file of this group exists");
    } else if (count->wanted_files < 0) {
        note(v, "the number of files of group %s: not stated (%lld found)", count->name,
             (long long)n);
    } else {
        check_number(v, count->name, count->wanted_files, n, "files");
    }
    check_number(v, count->name, count->wanted_folders, (int64_t)count->n_folders, "folders");
    check_records(v, group, n_records);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

/* Each file of the one group has its partner in the other, and vice versa. */
static void check_pairs(struct dataset_check *v, const struct dataset_group *group)
{
    for (size_t idx = 0; idx < v->n_files; idx++) {
        const struct file *one = &v->files[idx];
        if (!one->group || !str_eq(one->group->name, group->pair_of)) {
            continue;
        }
        const struct str path = dataset_partner(v->arena, group, str_of(one->path));
        const struct file key = {.path = path.ptr};
        struct file *other =
            path.ptr ? bsearch(&key, v->files, v->n_files, sizeof(key), by_path) : NULL;
        if (other) {
            other->is_paired = true;
        } else {
            add_fault(v, FAULT_MISSING, path.ptr ? path.ptr : one->path, "the partner of %s",
                      one->path);
        }
    }
    for (size_t idx = 0; idx < v->n_files; idx++) {
        if (v->files[idx].group == group && !v->files[idx].is_paired) {
            add_fault(v, FAULT_EXTRA, v->files[idx].path, "it has no partner in group %s",
                      group->pair_of.ptr);
        }
    }
}

/* Every group in turn, then the files that no group has. */
static void check_groups(struct dataset_check *v)
{
    const struct dataset *dataset = &v->here->dataset;
    v->out->groups = arena_array(v->arena, struct dataset_group_count, dataset->n_groups + 1);
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        check_group(v, &dataset->groups[idx], &v->out->groups[v->out->n_groups++]);
        if (dataset->groups[idx].pair_of.ptr) {
            check_pairs(v, &dataset->groups[idx]);
        }
    }
    if (dataset->n_groups == 0) {
        note(v, "what must be in the tree: its description names no groups of files");
    }
    for (size_t idx = 0; idx < v->n_files && !dataset->allows_others; idx++) {
        if (!v->files[idx].group) {
            add_fault(v, FAULT_EXTRA, v->files[idx].path, "no group of the description has it");
        }
    }
}

/* ---- the tree by its list ---- */

/* The two files of ours, and of a folder the archives next to its tree. */
static bool is_ours(const struct dataset_check *v, const char *path)
{
    for (size_t idx = 0; idx < v->out->n_archives; idx++) {
        if (strcmp(path, v->out->archives[idx].file->name.ptr) == 0) {
            return true;
        }
    }
    return strcmp(path, DATASET_TREE_JSON) == 0 || strcmp(path, DATASET_TREE_LIST) == 0;
}

static void add_difference(struct dataset_check *v, const struct tree_difference *difference,
                           const char *why)
{
    static const enum dataset_fault_kind KINDS[] = {[TREE_MISSING] = FAULT_MISSING,
                                                    [TREE_EXTRA] = FAULT_EXTRA,
                                                    [TREE_CORRUPT] = FAULT_CORRUPT,
                                                    [TREE_UNREADABLE] = FAULT_UNREADABLE};
    const bool is_corrupt = difference->fault == TREE_CORRUPT;
    add_fault(v, KINDS[difference->fault], difference->path, "%s%s%s",
              is_corrupt ? "its digest differs" : "", is_corrupt && why ? "; " : "",
              why ? why : "");
    struct dataset_fault *fault = &v->faults.items[v->faults.n - 1];
    fault->found = difference->found;
    fault->expected = difference->expected;
}

/* The files that exist are the list's without the missing ones, and the extra ones. Both are sorted by path. */
static void collect_files(struct dataset_check *v, const struct tree_differences *differences)
{
    const struct tree_list *list = &v->out->list;
    v->files = arena_array(v->arena, struct file, list->n + differences->n + 1);
    for (size_t idx = 0, at = 0; idx < list->n || at < differences->n;) {
        const struct tree_difference *difference =
            at < differences->n ? &differences->items[at] : NULL;
        const int order = !difference      ? -1
                          : idx == list->n ? 1
                                           : strcmp(list->files[idx].path, difference->path);
        const char *path = order <= 0 ? list->files[idx].path : difference->path;
        idx += order <= 0;
        at += order >= 0;
        if (order >= 0 && difference->fault == TREE_MISSING) {
            add_difference(v, difference, NULL);
        } else if (order <= 0 || !is_ours(v, path)) {
            const bool is_known = order < 0 || (difference->fault == TREE_EXTRA && v->lacks_list);
            v->files[v->n_files++] =
                (struct file){.path = path,
                              .group = dataset_group_of(&v->here->dataset, str_of(path)),
                              .difference = is_known ? NULL : difference,
                              .n_records = -1};
        }
    }
}

/* The name of the missing file that this extra one is; NULL: none. missing: paths by digest. */
static const char *renamed_from(struct dataset_check *v, const struct map *missing,
                                const char *path)
{
    struct digest_value value;
    const char *was = missing->n && digest_file(fs_join(v->arena, v->out->tree_path, path),
                                                DIGEST_SHA256, &value, ERR_IGNORED) == 0
                          ? map_get(missing, (struct str){(const char *)value.sha256, SHA256_BYTES})
                          : NULL;
    return was ? arena_printf(v->arena, "it is the missing %s under another name", was) : NULL;
}

/* One fault a file: a corrupt one says what its header says, where that is wrong too. */
static void judge_files(struct dataset_check *v, const struct tree_differences *differences)
{
    CLEANUP(map) struct map missing = {0};
    for (size_t idx = 0; idx < differences->n; idx++) {
        const struct tree_difference *difference = &differences->items[idx];
        if (difference->fault == TREE_MISSING && difference->expected) {
            /* Where two have equal contents the first is named. */
            (void)map_add(&missing, (struct str){(const char *)difference->expected, SHA256_BYTES},
                          (void *)(uintptr_t)difference->path);
        }
    }
    for (size_t idx = 0; idx < v->n_files; idx++) {
        const struct file *file = &v->files[idx];
        const bool is_extra = file->difference && file->difference->fault == TREE_EXTRA;
        const char *was = is_extra ? renamed_from(v, &missing, file->path) : NULL;
        v->out->n_headers += file->is_seen;
        if (file->difference) {
            add_difference(v, file->difference, was ? was : file->why);
        } else if (file->why) {
            add_fault(v, FAULT_HEADER, file->path, "%s", file->why);
        }
    }
}

static int verify_tree(struct dataset_check *v, struct err *err)
{
    struct tree_verify_result result = {0};
    const struct tree_opts opts = {.folder = v->out->tree_path,
                                   .pool = v->opts->pool,
                                   .n_threads = v->opts->n_threads,
                                   .cache = is_deep(v) ? NULL : v->opts->cache,
                                   .kinds = DIGEST_SHA256,
                                   .on_progress = progress_show,
                                   .progress_ctx = &v->progress};
    progress_start(&v->progress, v->opts->clock, "verify", "files", v->out->list.n);
    int status = tree_verify(v->arena, &opts, &v->out->list, &result, err);
    progress_end(&v->progress);
    v->out->n_from_cache = result.n_cached;
    v->out->n_bytes_read += result.n_bytes_read;
    if (status < 0) {
        return -1;
    }
    collect_files(v, &result.differences);
    if (check_headers(v, err) < 0) {
        return -1;
    }
    v->out->n_files = v->n_files;
    check_groups(v);
    judge_files(v, &result.differences);
    return 0;
}

/* ---- record and list ---- */

static int check_record(const struct dataset_check *v, struct err *err)
{
    const struct dataset_record *tree = &v->out->tree;
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    const char *suffix = v->here->is_synthetic ? " --synthetic" : "";
    if (!str_eq(tree->seen.id, v->here->dataset.id) ||
        tree->is_synthetic != v->here->is_synthetic) {
        return err_set(err, ERR_INTEGRITY, "%s: says that it is %s%s", v->out->tree_path,
                       tree->seen.id.ptr, tree->is_synthetic ? ", synthetic" : "");
    }
    for (size_t idx = 0; idx < n; idx++) {
        const struct lock_item *item = lock_find(&tree->seen, files[idx].name);
        const struct lock_item known = dataset_file_known(&files[idx]);
        if (!item) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: it was not made of %s: reperf data fetch %s%s again",
                           v->out->tree_path, files[idx].name.ptr, v->here->dataset.id.ptr, suffix);
        }
        if (lock_check_item(&known, item, files[idx].name.ptr, err) < 0) {
            return err_wrap(err, "%s was made of another file", v->out->tree_path);
        }
    }
    return 0;
}

/* `wanted`: by the record of the store's tree; NULL: what the list is takes its place there. */
static int read_list(struct dataset_check *v, const char *path, const uint8_t *wanted,
                     struct err *err)
{
    const struct dataset *dataset = &v->here->dataset;
    uint8_t sha256[SHA256_BYTES];
    if (tree_list_read(v->arena, path, &v->out->list, err) < 0) {
        err->code = wanted && err->code != ERR_DISK ? ERR_INTEGRITY : err->code;
        return -1;
    }
    tree_list_sha256(&v->out->list, sha256);
    if (wanted && memcmp(sha256, wanted, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: not the list that %s names: it was changed", path,
                       DATASET_TREE_JSON);
    }
    memcpy(v->out->tree.seen.list_sha256, sha256, SHA256_BYTES);
    v->out->tree.seen.has_list = true;
    if (v->here->is_synthetic || !dataset->has_list_sha256) {
        note(v,
             "that the list of files is right: it %s %s, and no lock or description has its digest",
             wanted ? "was made here with the tree on" : "is",
             wanted ? str_z(v->arena, str_sub(v->out->tree.date, 0, 10)) : path);
        return 0;
    }
    return memcmp(sha256, dataset->list_sha256, SHA256_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: not the list of files that is known of %s (%s)",
                         path, v->here->name, v->here->has_lock ? "its lock" : "its description");
}

/* Archives without a published digest. Synthetic ones cannot have one. */
static void note_archive(struct dataset_check *v, const struct dataset_file *file)
{
    if (!file->has_md5 && !file->has_sha256 && !v->here->is_synthetic) {
        note(v,
             "that %s is its authors' file: no digest of it is known (reperf lock records it at "
             "first sight)",
             file->name.ptr);
    }
}

static int open_tree(struct dataset_check *v, struct err *err)
{
    const char *list = fs_join(v->arena, v->out->tree_path, DATASET_TREE_LIST);
    uint8_t wanted[SHA256_BYTES];
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    if (dataset_tree_read(v->arena, v->store, v->here->name, &v->out->tree, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            return dataset_no_tree(v->arena, v->store, v->here, err);
        }
        err->code = ERR_INTEGRITY;
        return -1;
    }
    memcpy(wanted, v->out->tree.seen.list_sha256, SHA256_BYTES);
    if (read_list(v, list, wanted, err) < 0 || check_record(v, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        note_archive(v, &files[idx]);
    }
    return 0;
}

/* ---- a folder outside of the store: its archives ---- */

static int check_archive(struct dataset_check *v, const char *path, struct dataset_archive *archive,
                         struct err *err)
{
    const struct dataset_file *file = archive->file;
    const struct digest_value *found = &archive->found;
    archive->is_there = true;
    if (dataset_digest_file(path, "verify", v->opts->clock, &archive->found, err) < 0) {
        err->code = err->code == ERR_INTERRUPTED ? ERR_INTERRUPTED : ERR_INTEGRITY;
        return -1;
    }
    v->out->n_bytes_read += found->size_bytes;
    const bool has_size = file->size_bytes < 0 || (uint64_t)file->size_bytes == found->size_bytes;
    const struct lock_item known = dataset_file_known(file);
    const struct lock_item item = dataset_file_found(file->name, found, NULL, STR_EMPTY);
    archive->is_right = lock_check_item(&known, &item, file->name.ptr, ERR_IGNORED) == 0;
    if (!archive->is_right) {
        add_fault(v, FAULT_CORRUPT, file->name.ptr, "its %s differs", has_size ? "digest" : "size");
    } else {
        note_archive(v, file);
    }
    return 0;
}

/* All archives of the description if one of them is in the folder, or is the path itself. */
static int check_archives(struct dataset_check *v, bool is_file, size_t *ret_n_there,
                          struct err *err)
{
    const char *path = v->out->tree_path;
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    *ret_n_there = 0;
    v->out->archives = arena_array(v->arena, struct dataset_archive, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        struct dataset_archive *archive = &v->out->archives[v->out->n_archives];
        const char *at = is_file ? path : fs_join(v->arena, path, files[idx].name.ptr);
        /* A file that is no archive and lies at the top of a folder is one of the tree. */
        if (is_file ? !str_eq_z(files[idx].name, basename(path))
                    : !files[idx].unpack.ptr && !files[idx].into.ptr) {
            continue;
        }
        archive->file = &files[idx];
        v->out->n_archives++;
        if (is_file || (fs_exists(at) && !fs_is_dir(at))) {
            if (check_archive(v, at, archive, err) < 0) {
                return -1;
            }
            ++*ret_n_there;
        }
    }
    v->out->n_archives = *ret_n_there ? v->out->n_archives : 0;
    return !is_file || *ret_n_there
               ? 0
               : err_set(err, ERR_USAGE, "%s: no file of %s has that name (%s)", path,
                         v->here->name, n ? files[0].name.ptr : "it has none");
}

/* ---- a folder: where its paths begin ---- */

static struct str first_part(struct str path)
{
    return str_sub(path, 0, str_cspan(path, 0, "/") + 1);
}

/* The first folder that all globs share with its slash, such as "cityscapes/", where it is not in the folder, and what is
   below it is; else empty. */
static struct str find_start(const struct dataset_check *v)
{
    const struct dataset *dataset = &v->here->dataset;
    struct str start = dataset->n_groups ? first_part(dataset->groups[0].glob) : STR_EMPTY;
    bool is_below = false;
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        struct str glob = dataset->groups[idx].glob;
        struct str next = first_part(str_sub(glob, start.len, SIZE_MAX));
        if (!str_ends(start, STR_LIT("/")) || str_cspan(start, 0, "*?") < start.len ||
            !str_eq(first_part(glob), start)) {
            return STR_EMPTY;
        }
        is_below |= str_ends(next, STR_LIT("/")) &&
                    fs_is_dir(fs_join(v->arena, v->out->tree_path, str_z(v->arena, next)));
    }
    return is_below && !fs_exists(fs_join(v->arena, v->out->tree_path, str_z(v->arena, start)))
               ? start
               : STR_EMPTY;
}

/* The folder is the first one itself: the description and the list are read as if all paths began one folder lower. */
static void lower(struct dataset_check *v, struct str start)
{
    struct dataset_here *here = arena_new(v->arena, struct dataset_here);
    struct dataset *dataset = &here->dataset;
    struct tree_list *list = &v->out->list;
    size_t n = 0;
    *here = *v->here;
    dataset->groups = arena_array(v->arena, struct dataset_group, dataset->n_groups + 1);
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        struct dataset_group *group = &dataset->groups[idx];
        *group = v->here->dataset.groups[idx];
        group->glob = str_sub(group->glob, start.len, SIZE_MAX);
        group->odd_paths = arena_array(v->arena, struct str, group->n_odd + 1);
        for (size_t at = 0; at < group->n_odd; at++) {
            group->odd_paths[at] =
                str_sub(v->here->dataset.groups[idx].odd_paths[at], start.len, SIZE_MAX);
        }
    }
    for (size_t idx = 0; idx < list->n; idx++) {
        if (str_starts(str_of(list->files[idx].path), start)) {
            list->files[n] = list->files[idx];
            list->files[n++].path += start.len;
        }
    }
    list->n = n;
    v->here = here;
}

/* The list is the description's own, the folder's, or that of the store's tree; having none is not an error. */
static int open_folder_tree(struct dataset_check *v, struct err *err)
{
    const struct dataset *dataset = &v->here->dataset;
    const char *folder = v->out->tree_path;
    const char *record = fs_join(v->arena, folder, DATASET_TREE_JSON);
    const char *const lists[] = {
        v->here->is_synthetic || !dataset->list_path.ptr
            ? NULL
            : fs_join(v->arena, v->here->folder, dataset->list_path.ptr),
        fs_join(v->arena, folder, DATASET_TREE_LIST),
        fs_join(v->arena, dataset_tree_path(v->store, v->here->name), DATASET_TREE_LIST)};
    const struct str start = find_start(v);
    const char *list = NULL;
    struct str text;
    if (fs_exists(record) &&
        (fs_read(v->arena, record, STORE_TEXT_MAX, &text, err) < 0 ||
         dataset_record_parse(v->arena, text, record, &v->out->tree, err) < 0 ||
         check_record(v, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(lists) && !list; idx++) {
        list = lists[idx] && (idx == 0 || fs_exists(lists[idx])) ? lists[idx] : NULL;
    }
    v->lacks_list = !list;
    if (!list) {
        note(v,
             "the bytes of the files: no list of their digests is at hand (reperf data fetch %s "
             "makes one from the archives)",
             dataset->id.ptr);
    } else if (read_list(v, list, NULL, err) < 0) {
        return -1;
    }
    if (start.len) {
        lower(v, start);
    }
    return 0;
}

static int verify_folder(struct dataset_check *v, struct err *err)
{
    const bool is_file = !fs_is_dir(v->out->tree_path);
    struct fs_names names = {0};
    size_t n_archives = 0;
    if (check_archives(v, is_file, &n_archives, err) < 0 ||
        (!is_file && fs_list(v->arena, v->out->tree_path, &names, err) < 0)) {
        return -1;
    }
    if (!is_file && (n_archives == 0 || names.n > n_archives)) {
        return open_folder_tree(v, err) < 0 ? -1 : verify_tree(v, err);
    }
    note(v, "what is in the archives: only they are there, not unpacked");
    for (size_t idx = 0; idx < v->out->n_archives; idx++) {
        if (!v->out->archives[idx].is_there) {
            add_fault(v, FAULT_MISSING, v->out->archives[idx].file->name.ptr, "%s", "");
        }
    }
    return 0;
}

/* ---- the whole ---- */

static int by_kind(const void *a, const void *b)
{
    const struct dataset_fault *one = a, *other = b;
    return one->kind != other->kind ? (int)one->kind - (int)other->kind
                                    : strcmp(one->path, other->path);
}

/* A partner that is missing is also missing from the list: named once, with what both know. */
static void settle_faults(struct dataset_check *v)
{
    struct dataset_verified *out = v->out;
    VEC_SORT(&v->faults, by_kind);
    out->faults = arena_array(v->arena, struct dataset_fault, v->faults.n + 1);
    for (size_t idx = 0; idx < v->faults.n; idx++) {
        const struct dataset_fault *fault = &v->faults.items[idx];
        struct dataset_fault *last = out->n_faults ? &out->faults[out->n_faults - 1] : NULL;
        if (last && fault->kind != FAULT_COUNT && by_kind(last, fault) == 0) {
            last->why = last->why ? last->why : fault->why;
            last->expected = last->expected ? last->expected : fault->expected;
            last->found = last->found ? last->found : fault->found;
            continue;
        }
        out->faults[out->n_faults++] = *fault;
        out->n_of[fault->kind]++;
    }
    out->verdict = out->n_faults        ? VERDICT_WRONG
                   : out->n_not_checked ? VERDICT_PARTLY
                                        : VERDICT_HOLDS;
}

int dataset_verify(struct arena *arena, const struct store *store, const struct dataset_here *here,
                   const struct dataset_verify_opts *opts, struct dataset_verified *ret_verified,
                   struct err *err)
{
    struct dataset_verified out = {.tree_path = opts->folder ? opts->folder
                                                             : dataset_tree_path(store, here->name),
                                   .not_checked = arena_array(arena, const char *, NOTES_MAX + 1)};
    struct dataset_check v = {
        .arena = arena, .store = store, .here = here, .opts = opts, .out = &out};
    if (here->dataset.is_synthetic) {
        return err_set(err, ERR_USAGE, "%s is generated on the device: there is nothing to verify",
                       here->name);
    }
    int result = opts->folder             ? verify_folder(&v, err)
                 : open_tree(&v, err) < 0 ? -1
                                          : verify_tree(&v, err);
    for (size_t idx = 0; idx < v.n_files; idx++) {
        free(v.files[idx].why);
    }
    if (result == 0) {
        settle_faults(&v);
        *ret_verified = out;
    }
    VEC_RELEASE(&v.faults);
    return result;
}
