/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_verify_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/progress.h"
#include "codec/file_header.h"

typedef int (*header_fn)(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                         struct err *err);

static const header_fn READERS[] = {
    [FILE_JPEG] = file_header_jpeg, [FILE_PNG] = file_header_png,
    [FILE_HDF5] = file_header_hdf5, [FILE_TFRECORD] = file_header_tfrecord,
    [FILE_TEXT] = file_header_text,
};

static bool is_odd(const struct dataset_group *group, const char *path)
{
    for (size_t idx = 0; idx < group->n_odd; idx++) {
        if (str_eq_z(group->odd_paths[idx], path)) {
            return true;
        }
    }
    return false;
}

static bool is_deep(const struct dataset_verifying *v)
{
    return v->opts->depth == DEPTH_DEEP;
}

/* Of a synthetic dataset the description's number of lines is the original's. */
static int check_facts(const struct dataset_verifying *v, const struct dataset_group *group,
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

static int check_bytes(const struct dataset_verifying *v, struct header_check *check,
                       const uint8_t *ptr, size_t len, struct err *err)
{
    struct file_header header;
    if (READERS[check->group->format](ptr, len, is_deep(v), &header, err) < 0) {
        return -1;
    }
    check->n_records = header.n_records;
    return check_facts(v, check->group, &header, err);
}

/* The tree is the user's: a file that changes while it is mapped may end this program with SIGBUS, so only large files, or those of
   which most is skipped, are mapped. */
#define READ_MAX  (64u << 20)
#define HEAD_MAX  (128u << 10)
#define TAIL_SIZE 2u

/* For a JPEG the header and the end marker are enough, so most of a dataset is not read twice. False if they are inconclusive:
   then all of it is checked. */
static bool is_right_jpeg(const struct dataset_verifying *v, struct header_check *check, int fd,
                          size_t len, struct arena *arena)
{
    if (len <= HEAD_MAX + TAIL_SIZE) {
        return false;
    }
    uint8_t *bytes = arena_array(arena, uint8_t, HEAD_MAX + TAIL_SIZE);
    return pread(fd, bytes, HEAD_MAX, 0) == HEAD_MAX &&
           pread(fd, bytes + HEAD_MAX, TAIL_SIZE, (off_t)(len - TAIL_SIZE)) == TAIL_SIZE &&
           check_bytes(v, check, bytes, HEAD_MAX + TAIL_SIZE, ERR_IGNORED) == 0;
}

static int check_mapped(const struct dataset_verifying *v, struct header_check *check, int fd,
                        size_t len, struct err *err)
{
    void *bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return err_set(err, err_code_of_errno(errno), "%s", err_errno_text(errno));
    }
    int result = check_bytes(v, check, bytes, len, err);
    munmap(bytes, len);
    return result;
}

static int check_file(const struct dataset_verifying *v, struct header_check *check,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    enum file_format format = check->group->format;
    const char *path = fs_join(&arena, v->out->tree_path, check->path);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_skipped = !is_deep(v) && (format == FILE_HDF5 || format == FILE_TFRECORD);
    struct str text;
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return err_set(err, err_code_of_errno(errno), "%s", err_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "not a regular file");
    }
    size_t len = (size_t)info.st_size;
    if (!is_deep(v) && format == FILE_JPEG && is_right_jpeg(v, check, fd, len, &arena)) {
        return 0;
    }
    if (len > READ_MAX || (is_skipped && len > 0)) {
        return check_mapped(v, check, fd, len, err);
    }
    return fs_read(&arena, path, READ_MAX, &text, err) < 0
               ? -1
               : check_bytes(v, check, (const uint8_t *)text.ptr, text.len, err);
}

static void check_one(const struct dataset_verifying *v, struct header_check *check)
{
    struct err err = {0};
    check->n_records = -1;
    if (!check->group || !READERS[check->group->format] || is_odd(check->group, check->path)) {
        return;
    }
    check->is_seen = true;
    if (check_file(v, check, &err) < 0) {
        check->why = xstrdup(err.msg);
    }
}

static int check_nth(void *ctx, size_t idx, const atomic_bool *is_stopped UNUSED,
                     struct err *err UNUSED)
{
    struct dataset_verifying *v = ctx;
    check_one(v, &v->present[idx]);
    return 0;
}

static void show_headers(void *ctx, size_t n_begun)
{
    struct dataset_verifying *v = ctx;
    progress_set(&v->progress, n_begun);
}

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

/* ---- the description's groups against the files that exist: numbers, folders, partners, samples ---- */

void verify_add_fault(struct dataset_verifying *v, enum dataset_fault_kind kind, const char *path,
                      const char *why)
{
    VEC_PUSH(&v->faults, (struct dataset_fault){.kind = kind, .path = path, .why = why});
}

void verify_note(struct dataset_verifying *v, const char *text)
{
    ASSERT(v->out->n_not_checked < NOTES_MAX);
    v->out->not_checked[v->out->n_not_checked++] = text;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct header_check *)a)->path, ((const struct header_check *)b)->path);
}

static struct header_check *find(struct dataset_verifying *v, const char *path)
{
    struct header_check wanted = {.path = path};
    return v->n_present ? bsearch(&wanted, v->present, v->n_present, sizeof(wanted), compare)
                        : NULL;
}

static const struct dataset_synthetic_split *synthetic_split(const struct dataset_verifying *v,
                                                             struct str name)
{
    return v->here->is_synthetic ? STR_NAMED(v->out->tree.splits, v->out->tree.n_splits, name, name)
                                 : NULL;
}

static bool is_label_text(const struct dataset_group *group)
{
    return group->role == ROLE_LABEL && group->format == FILE_TEXT;
}

/* For a synthetic dataset what was made; else what is stated for the group, or for the split if each image is a file. */
static void wanted_counts(const struct dataset_verifying *v, const struct dataset_group *group,
                          struct dataset_group_count *count)
{
    const struct dataset_synthetic_split *synthetic = synthetic_split(v, group->split);
    count->wanted_files = v->here->is_synthetic ? -1 : group->n_files;
    count->wanted_folders = v->here->is_synthetic ? -1 : group->n_folders;
    if (synthetic) {
        count->wanted_files = is_label_text(group)          ? 1
                              : group->role == ROLE_RECORDS ? synthetic->n_folders
                                                            : synthetic->n_samples;
        count->wanted_folders =
            is_label_text(group) || group->role == ROLE_RECORDS ? -1 : synthetic->n_folders;
        return;
    }
    for (size_t idx = 0; idx < v->here->dataset.n_splits && count->wanted_files < 0; idx++) {
        const struct dataset_split *split = &v->here->dataset.splits[idx];
        if (!v->here->is_synthetic && group->role == ROLE_IMAGE &&
            str_eq(split->name, group->split)) {
            count->wanted_files = split->n_samples;
        }
    }
}

static struct str folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (struct str){path, slash ? (size_t)(slash - path) : 0};
}

static void check_folder_size(struct dataset_verifying *v, const struct dataset_group *group,
                              struct str folder, uint64_t n)
{
    if (v->here->is_synthetic) {
        return;
    }
    if ((group->folder_min >= 0 && n < (uint64_t)group->folder_min) ||
        (group->folder_max >= 0 && n > (uint64_t)group->folder_max)) {
        verify_add_fault(v, FAULT_COUNT, arena_printf(v->arena, "%.*s", STR_ARG(folder)),
                         arena_printf(v->arena,
                                      "%s: expected %lld to %lld files in the folder, found %llu",
                                      group->name.ptr, (long long)group->folder_min,
                                      (long long)group->folder_max, (unsigned long long)n));
    }
}

static void check_group(struct dataset_verifying *v, const struct dataset_group *group,
                        struct dataset_group_count *count)
{
    struct str *folders = arena_array(v->arena, struct str, v->n_present + 1);
    size_t n = 0;
    *count = (struct dataset_group_count){.name = group->name.ptr};
    wanted_counts(v, group, count);
    for (size_t idx = 0; idx < v->n_present; idx++) {
        if (v->present[idx].group == group) {
            folders[n++] = folder_of(v->present[idx].path);
            count->n_headers += v->present[idx].is_seen;
        }
    }
    count->n_files = n;
    qsort(folders, n, sizeof(*folders), str_cmp_first);
    for (size_t idx = 0, first = 0; idx < n; idx++) {
        if (idx + 1 == n || !str_eq(folders[idx], folders[idx + 1])) {
            check_folder_size(v, group, folders[idx], idx + 1 - first);
            count->n_folders++;
            first = idx + 1;
        }
    }
}

static void judge_count(struct dataset_verifying *v, const struct dataset_group_count *count)
{
    if (v->lacks_list && count->n_files == 0) {
        verify_add_fault(v, FAULT_COUNT, count->name, "no file of this group exists");
    } else if (count->wanted_files < 0) {
        verify_note(v, arena_printf(v->arena,
                                    "the number of files of group %s: not stated (%llu found)",
                                    count->name, (unsigned long long)count->n_files));
    } else if ((uint64_t)count->wanted_files != count->n_files) {
        verify_add_fault(v, FAULT_COUNT, count->name,
                         arena_printf(v->arena, "expected %lld files, found %llu",
                                      (long long)count->wanted_files,
                                      (unsigned long long)count->n_files));
    }
    if (count->wanted_folders >= 0 && (uint64_t)count->wanted_folders != count->n_folders) {
        verify_add_fault(v, FAULT_COUNT, count->name,
                         arena_printf(v->arena, "expected %lld folders, found %llu",
                                      (long long)count->wanted_folders,
                                      (unsigned long long)count->n_folders));
    }
}

/* Each file of the one group has its partner in the other, and vice versa. */
static void check_pairs(struct dataset_verifying *v, const struct dataset_group *group)
{
    for (size_t idx = 0; idx < v->n_present && group->pair_of.ptr; idx++) {
        const struct header_check *one = &v->present[idx];
        struct header_check *other = NULL;
        struct str path;
        if (!one->group || !str_eq(one->group->name, group->pair_of)) {
            continue;
        }
        path = dataset_partner(v->arena, group, str_of(one->path));
        if (path.ptr) {
            other = find(v, path.ptr);
        }
        if (!other) {
            verify_add_fault(v, FAULT_MISSING, path.ptr ? path.ptr : one->path,
                             arena_printf(v->arena, "the partner of %s", one->path));
        } else {
            v->is_paired[other - v->present] = true;
        }
    }
    for (size_t idx = 0; idx < v->n_present && group->pair_of.ptr; idx++) {
        if (v->present[idx].group == group && !v->is_paired[idx]) {
            verify_add_fault(
                v, FAULT_EXTRA, v->present[idx].path,
                arena_printf(v->arena, "it has no partner in group %s", group->pair_of.ptr));
        }
    }
}

static void check_strangers(struct dataset_verifying *v)
{
    for (size_t idx = 0; idx < v->n_present && !v->here->dataset.allows_others; idx++) {
        if (!v->present[idx].group) {
            verify_add_fault(v, FAULT_EXTRA, v->present[idx].path,
                             "no group of the description has it");
        }
    }
}

/* Counts samples in files with many each. */
static void check_records(struct dataset_verifying *v, const struct dataset_group *group)
{
    const struct dataset_synthetic_split *synthetic = synthetic_split(v, group->split);
    int64_t wanted = synthetic ? synthetic->n_samples : -1;
    int64_t found = 0;
    for (size_t idx = 0; idx < v->here->dataset.n_splits && !v->here->is_synthetic; idx++) {
        if (str_eq(v->here->dataset.splits[idx].name, group->split)) {
            wanted = v->here->dataset.splits[idx].n_samples;
        }
    }
    if (group->role != ROLE_RECORDS && !(synthetic && is_label_text(group))) {
        return;
    }
    if (group->format == FILE_HDF5) {
        verify_note(v, arena_printf(
                           v->arena,
                           "the datasets within the HDF5 files of group %s (reperf data pack reads "
                           "them): only signature and length",
                           group->name.ptr));
        return;
    }
    if (wanted < 0) {
        verify_note(v, arena_printf(v->arena, "the number of samples of group %s: not stated",
                                    group->name.ptr));
        return;
    }
    for (size_t idx = 0; idx < v->n_present; idx++) {
        found += v->present[idx].group == group && v->present[idx].n_records > 0
                     ? v->present[idx].n_records
                     : 0;
    }
    if (found != wanted && v->opts->depth != DEPTH_QUICK) {
        verify_add_fault(v, FAULT_COUNT, group->name.ptr,
                         arena_printf(v->arena, "expected %lld samples, found %lld",
                                      (long long)wanted, (long long)found));
    }
}

/* Every group in turn, then the files that no group has. */
static void check_counts(struct dataset_verifying *v)
{
    const struct dataset *dataset = &v->here->dataset;
    v->out->groups = arena_array(v->arena, struct dataset_group_count, dataset->n_groups + 1);
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        check_group(v, &dataset->groups[idx], &v->out->groups[v->out->n_groups]);
        judge_count(v, &v->out->groups[v->out->n_groups++]);
        check_pairs(v, &dataset->groups[idx]);
        check_records(v, &dataset->groups[idx]);
    }
    if (dataset->n_groups == 0) {
        verify_note(v, "what must be in the tree: its description names no groups of files");
    }
    check_strangers(v);
}

/* The two files of ours, and of a folder the archives next to its tree. */
static bool is_ours(const struct dataset_verifying *v, const char *path)
{
    for (size_t idx = 0; idx < v->out->n_archives; idx++) {
        if (strcmp(path, v->out->archives[idx].file->name.ptr) == 0) {
            return true;
        }
    }
    return strcmp(path, DATASET_TREE_JSON) == 0 || strcmp(path, DATASET_TREE_LIST) == 0;
}

/* ---- the list ---- */

static int read_list(struct dataset_verifying *v, struct err *err)
{
    const char *folder = v->out->tree_path;
    const char *path = fs_join(v->arena, folder, DATASET_TREE_LIST);
    const struct dataset *dataset = &v->here->dataset;
    uint8_t sha256[SHA256_BYTES];
    if (dataset_tree_read(v->arena, v->store, v->here->name, &v->out->tree, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            return dataset_no_tree(v->arena, v->store, v->here, err);
        }
        err->code = ERR_INTEGRITY;
        return -1;
    }
    if (!fs_exists(path)) {
        return err_set(err, ERR_INTEGRITY, "%s: the tree's list is gone", path);
    }
    if (tree_list_read(v->arena, path, &v->list, err) < 0) {
        err->code = err->code == ERR_DISK ? ERR_DISK : ERR_INTEGRITY;
        return -1;
    }
    tree_list_sha256(&v->list, sha256);
    if (memcmp(sha256, v->out->tree.seen.list_sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: not the list that %s names: it was changed", path,
                       DATASET_TREE_JSON);
    }
    if (!str_eq(v->out->tree.seen.id, dataset->id) ||
        v->out->tree.is_synthetic != v->here->is_synthetic) {
        return err_set(err, ERR_INTEGRITY, "%s: says that it is %s%s", folder,
                       v->out->tree.seen.id.ptr, v->out->tree.is_synthetic ? ", synthetic" : "");
    }
    if (!v->here->is_synthetic && dataset->has_list_sha256) {
        return memcmp(sha256, dataset->list_sha256, SHA256_BYTES) == 0
                   ? 0
                   : err_set(err, ERR_INTEGRITY,
                             "%s: not the list of files that is known of %s (%s)", path,
                             v->here->name, v->here->has_lock ? "its lock" : "its description");
    }
    verify_note(
        v,
        arena_printf(
            v->arena,
            "that the list of files is right: it was made here with the tree on %.10s, and "
            "no %s has its digest",
            v->out->tree.date.ptr,
            v->here->is_synthetic ? "description of a synthetic dataset" : "lock or description"));
    return 0;
}

int verify_archives(struct dataset_verifying *v, struct err *err)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct lock_item *item = lock_find(&v->out->tree.seen, files[idx].name);
        const struct lock_item known = dataset_file_known(&files[idx]);
        if (!item) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: it was not made of %s: reperf data fetch %s%s again",
                           v->out->tree_path, files[idx].name.ptr, v->here->dataset.id.ptr,
                           v->here->is_synthetic ? " --synthetic" : "");
        }
        if (lock_check_item(&known, item, files[idx].name.ptr, err) < 0) {
            return err_wrap(err, "%s was made of another file", v->out->tree_path);
        }
    }
    return 0;
}

/* Archives without a published digest. Synthetic ones cannot have one. */
static void note_archives(struct dataset_verifying *v)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    for (size_t idx = 0; idx < n && !v->here->is_synthetic; idx++) {
        if (!files[idx].has_md5 && !files[idx].has_sha256) {
            verify_note(
                v, arena_printf(v->arena,
                                "that %s is its authors' file: no digest of it is known (reperf "
                                "lock records it at first sight)",
                                files[idx].name.ptr));
        }
    }
}

/* ---- files by digest ---- */

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct dataset_verifying *v = ctx;
    v->progress.total = total;
    progress_set(&v->progress, done);
}

static int check_digests(struct dataset_verifying *v, struct tree_verify_result *ret,
                         struct err *err)
{
    const struct tree_opts opts = {.folder = v->out->tree_path,
                                   .pool = v->opts->pool,
                                   .n_threads = v->opts->n_threads,
                                   .cache = is_deep(v) ? NULL : v->opts->cache,
                                   .kinds = DIGEST_SHA256,
                                   .on_progress = show_progress,
                                   .progress_ctx = v};
    progress_start(&v->progress, v->opts->clock, "verify", "files", v->list.n);
    int result = tree_verify(v->arena, &opts, &v->list, ret, err);
    progress_end(&v->progress);
    v->out->n_from_cache = ret->n_cached;
    v->out->n_bytes_read = ret->n_bytes_read;
    return result;
}

static const enum dataset_fault_kind KINDS[] = {[TREE_MISSING] = FAULT_MISSING,
                                                [TREE_EXTRA] = FAULT_EXTRA,
                                                [TREE_CORRUPT] = FAULT_CORRUPT,
                                                [TREE_UNREADABLE] = FAULT_UNREADABLE};

/* The existing files: the list without missing ones, plus extra ones. Both are sorted by path. */
static void collect_present(struct dataset_verifying *v, const struct tree_differences *differences)
{
    size_t at = 0;
    v->present = arena_array(v->arena, struct header_check, v->list.n + differences->n + 1);
    for (size_t idx = 0; idx < v->list.n; idx++) {
        const char *path = v->list.files[idx].path;
        while (at < differences->n && strcmp(differences->items[at].path, path) < 0) {
            at++;
        }
        if (at == differences->n || strcmp(differences->items[at].path, path) != 0 ||
            differences->items[at].fault != TREE_MISSING) {
            v->present[v->n_present++] = (struct header_check){.path = path, .n_records = -1};
        }
    }
    for (size_t idx = 0; idx < differences->n; idx++) {
        if (differences->items[idx].fault == TREE_EXTRA &&
            !is_ours(v, differences->items[idx].path)) {
            v->present[v->n_present++] =
                (struct header_check){.path = differences->items[idx].path, .n_records = -1};
        }
    }
    qsort(v->present, v->n_present, sizeof(v->present[0]), compare);
    for (size_t idx = 0; idx < v->n_present; idx++) {
        v->present[idx].group = dataset_group_of(&v->here->dataset, str_of(v->present[idx].path));
    }
    v->is_paired = arena_array(v->arena, bool, v->n_present + 1);
}

/* ---- faults ---- */

static int check_headers(struct dataset_verifying *v, struct err *err)
{
    const struct pool_many many = {.pool = v->opts->pool,
                                   .n_threads = v->opts->n_threads ? v->opts->n_threads : 1,
                                   .n = v->n_present,
                                   .each = check_nth,
                                   .on_tick = show_headers,
                                   .ctx = v};
    if (v->opts->depth == DEPTH_QUICK) {
        verify_note(v,
                    "headers of images and records, and the numbers of samples in them (--quick)");
        return 0;
    }
    progress_start(&v->progress, v->opts->clock, "headers", "files", v->n_present);
    int result = pool_many(&many, err);
    progress_end(&v->progress);
    return result < 0 ? err_wrap(err, "verify") : 0;
}

/* Paths of the missing files by digest. */
static void map_missing(const struct tree_differences *differences, struct map *ret)
{
    for (size_t idx = 0; idx < differences->n; idx++) {
        const struct tree_difference *difference = &differences->items[idx];
        if (difference->fault == TREE_MISSING && difference->expected) {
            struct str digest = {(const char *)difference->expected, SHA256_BYTES};
            /* Two missing files of equal contents: the first is named. */
            (void)map_add(ret, digest, (void *)(uintptr_t)difference->path);
        }
    }
}

/* NULL: not a file of the list under another name. */
static const char *renamed_from(const struct dataset_verifying *v, const struct map *missing,
                                const char *path)
{
    struct digest_value value;
    if (missing->n == 0 || digest_file(fs_join(v->arena, v->out->tree_path, path), DIGEST_SHA256,
                                       &value, ERR_IGNORED) < 0) {
        return NULL;
    }
    const char *was = map_get(missing, (struct str){(const char *)value.sha256, SHA256_BYTES});
    return was ? arena_printf(v->arena, "it is the missing %s under another name", was) : NULL;
}

/* One fault a file: a corrupt one says what its header says, where that is wrong too. */
static void add_differences(struct dataset_verifying *v, const struct tree_differences *differences)
{
    CLEANUP(map) struct map missing = {0};
    map_missing(differences, &missing);
    for (size_t idx = 0; idx < differences->n; idx++) {
        const struct tree_difference *difference = &differences->items[idx];
        struct header_check *check = find(v, difference->path);
        const char *why = NULL;
        if (difference->fault == TREE_EXTRA && (v->lacks_list || is_ours(v, difference->path))) {
            continue;
        }
        if (difference->fault == TREE_CORRUPT) {
            why = check && check->why ? arena_printf(v->arena, "its digest differs; %s", check->why)
                                      : "its digest differs";
        } else if (difference->fault == TREE_EXTRA) {
            why = renamed_from(v, &missing, difference->path);
        }
        if (!why && check && check->why) {
            why = arena_printf(v->arena, "%s", check->why);
        }
        if (check) {
            free(check->why);
            check->why = NULL;
        }
        verify_add_fault(v, KINDS[difference->fault], difference->path, why);
        v->faults.items[v->faults.n - 1].found = difference->found;
        v->faults.items[v->faults.n - 1].expected = difference->expected;
    }
    for (size_t idx = 0; idx < v->n_present; idx++) {
        v->out->n_headers += v->present[idx].is_seen;
        if (v->present[idx].why) {
            verify_add_fault(v, FAULT_HEADER, v->present[idx].path,
                             arena_printf(v->arena, "%s", v->present[idx].why));
            free(v->present[idx].why);
            v->present[idx].why = NULL;
        }
    }
}

static int compare_faults(const void *a, const void *b)
{
    const struct dataset_fault *one = a;
    const struct dataset_fault *other = b;
    return one->kind != other->kind ? (int)one->kind - (int)other->kind
                                    : strcmp(one->path, other->path);
}

/* A partner that is missing is also missing from the list: named once, with both reasons. */
static void settle_faults(struct dataset_verifying *v)
{
    struct dataset_verified *out = v->out;
    if (v->faults.n) {
        qsort(v->faults.items, v->faults.n, sizeof(v->faults.items[0]), compare_faults);
    }
    out->faults = arena_array(v->arena, struct dataset_fault, v->faults.n + 1);
    for (size_t idx = 0; idx < v->faults.n; idx++) {
        const struct dataset_fault *fault = &v->faults.items[idx];
        struct dataset_fault *last = out->n_faults ? &out->faults[out->n_faults - 1] : NULL;
        if (last && fault->kind != FAULT_COUNT && compare_faults(last, fault) == 0) {
            last->why = last->why ? last->why : fault->why;
            continue;
        }
        out->faults[out->n_faults++] = *fault;
        out->n_of[fault->kind]++;
    }
    out->verdict = out->n_faults        ? VERDICT_WRONG
                   : out->n_not_checked ? VERDICT_PARTLY
                                        : VERDICT_HOLDS;
}

static int verify_tree(struct dataset_verifying *v, struct err *err)
{
    struct tree_verify_result result = {0};
    if (check_digests(v, &result, err) < 0) {
        return -1;
    }
    collect_present(v, &result.differences);
    if (check_headers(v, err) < 0) {
        return -1;
    }
    v->out->n_files = v->n_present;
    check_counts(v);
    add_differences(v, &result.differences);
    return 0;
}

static int verify_all(struct dataset_verifying *v, bool is_folder, struct err *err)
{
    bool has_tree = true;
    if (v->here->dataset.is_synthetic) {
        return err_set(err, ERR_USAGE, "%s is generated on the device: there is nothing to verify",
                       v->here->name);
    }
    if (is_folder ? verify_open_folder(v, &has_tree, err) < 0
                  : read_list(v, err) < 0 || verify_archives(v, err) < 0) {
        return -1;
    }
    if (!is_folder) {
        note_archives(v);
    }
    if (has_tree && verify_tree(v, err) < 0) {
        return -1;
    }
    settle_faults(v);
    return 0;
}

static int verify(struct dataset_verifying *v, bool is_folder,
                  struct dataset_verified *ret_verified, struct err *err)
{
    v->out->not_checked = arena_array(v->arena, const char *, NOTES_MAX + 1);
    int result = verify_all(v, is_folder, err);
    for (size_t idx = 0; idx < v->n_present; idx++) {
        free(v->present[idx].why);
    }
    VEC_RELEASE(&v->faults);
    if (result == 0) {
        v->out->list = v->list;
        *ret_verified = *v->out;
    }
    return result;
}

int dataset_verify(struct arena *arena, const struct store *store, const struct dataset_here *here,
                   const struct dataset_verify_opts *opts, struct dataset_verified *ret_verified,
                   struct err *err)
{
    struct dataset_verified out = {
        .tree_path = opts->folder ? opts->folder : dataset_tree_path(store, here->name)};
    struct dataset_verifying v = {
        .arena = arena, .store = store, .here = here, .opts = opts, .out = &out};
    return verify(&v, opts->folder != NULL, ret_verified, err);
}
