/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_verify.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/progress.h"
#include "store/dataset_headers.h"

#define NOTES_MAX (8 + 4 * DATASET_GROUPS_MAX + DATASET_FILES_MAX)

struct verifying {
    struct arena *arena;
    const struct store *store;
    const struct dataset_here *here;
    const struct dataset_verify_opts *opts;
    struct dataset_verified *out;
    struct tree_list list;        /* expected */
    struct header_check *present; /* every file that is there, sorted by path */
    bool *is_paired;              /* beside present */
    size_t n_present;
    struct {
        struct dataset_fault *items;
        size_t n, n_max;
    } faults;
    struct progress progress;
};

const char *dataset_fault_name(enum dataset_fault_kind kind)
{
    static const char *const NAMES[FAULT_KINDS] = {"missing", "extra", "corrupt", "unreadable",
                                                   "count"};
    return NAMES[kind];
}

const char *dataset_verdict_name(enum dataset_verdict verdict)
{
    static const char *const NAMES[] = {"holds", "partly", "wrong"};
    return NAMES[verdict];
}

static void add_fault(struct verifying *v, enum dataset_fault_kind kind, const char *path,
                      const char *why)
{
    VEC_PUSH(&v->faults, (struct dataset_fault){kind, path, why});
}

static void note(struct verifying *v, const char *text)
{
    ASSERT(v->out->n_not_checked < NOTES_MAX);
    v->out->not_checked[v->out->n_not_checked++] = text;
}

static bool is_ours(const char *path)
{
    return strcmp(path, DATASET_TREE_JSON) == 0 || strcmp(path, DATASET_TREE_LIST) == 0;
}

/* ---- the list ---- */

static int read_list(struct verifying *v, struct err *err)
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
    if (tree_list_read(v->arena, path, &v->list, err) < 0 ||
        tree_list_sha256(&v->list, sha256, err) < 0) {
        err->code = err->code == ERR_DISK ? ERR_DISK : ERR_INTEGRITY;
        return -1;
    }
    if (memcmp(sha256, v->out->tree.seen.list_sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: not the list that %s names: it was changed", path,
                       DATASET_TREE_JSON);
    }
    if (!str_eq(v->out->tree.seen.id, dataset->id) ||
        v->out->tree.is_synthetic != v->here->is_twin) {
        return err_set(err, ERR_INTEGRITY, "%s: says that it is %s%s", folder,
                       v->out->tree.seen.id.ptr, v->out->tree.is_synthetic ? ", synthetic" : "");
    }
    if (!v->here->is_twin && dataset->has_list_sha256) {
        return memcmp(sha256, dataset->list_sha256, SHA256_BYTES) == 0
                   ? 0
                   : err_set(err, ERR_INTEGRITY,
                             "%s: not the list of files that is known of %s (%s)", path,
                             v->here->name, v->here->has_lock ? "its lock" : "its description");
    }
    note(v, arena_printf(v->arena,
                         "that the list of files is right: it was made here when the archives were "
                         "unpacked on %.10s, and no %s has its digest",
                         v->out->tree.date.ptr,
                         v->here->is_twin ? "description of a twin" : "lock or description"));
    return 0;
}

/* What the tree was unpacked from is what description and lock say that it must be. */
static int check_archives(struct verifying *v, struct err *err)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct lock_item *item = lock_find(&v->out->tree.seen, files[idx].name);
        struct lock_item known = {.size_bytes = files[idx].size_bytes,
                                  .has_md5 = files[idx].has_md5,
                                  .has_sha256 = files[idx].has_sha256};
        memcpy(known.md5, files[idx].md5, MD5_BYTES);
        memcpy(known.sha256, files[idx].sha256, SHA256_BYTES);
        known.date = STR_LIT("its publication");
        if (!item) {
            return err_set(err, ERR_INTEGRITY, "%s: it was not made of %s: reperf fetch %s%s again",
                           v->out->tree_path, files[idx].name.ptr, v->here->dataset.id.ptr,
                           v->here->is_twin ? " --synthetic" : "");
        }
        if (lock_check_item(&known, item, files[idx].name.ptr, err) < 0) {
            return err_wrap(err, "%s was made of another file", v->out->tree_path);
        }
    }
    return 0;
}

/* Archives whose digest nobody stated. Of a twin there is nobody who could. */
static void note_archives(struct verifying *v)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(v->here, &n);
    for (size_t idx = 0; idx < n && !v->here->is_twin; idx++) {
        if (!files[idx].has_md5 && !files[idx].has_sha256) {
            note(v, arena_printf(v->arena,
                                 "that %s is its authors' file: no digest of it is known (reperf "
                                 "lock records it at first sight)",
                                 files[idx].name.ptr));
        }
    }
}

/* ---- files by digest ---- */

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct verifying *v = ctx;
    v->progress.total = total;
    progress_set(&v->progress, done);
}

static int check_digests(struct verifying *v, struct tree_verify_result *ret, struct err *err)
{
    const struct tree_opts opts = {.folder = v->out->tree_path,
                                   .pool = v->opts->pool,
                                   .n_threads = v->opts->n_threads,
                                   .cache = v->opts->depth == DEPTH_DEEP ? NULL : v->opts->cache,
                                   .kinds = DIGEST_SHA256,
                                   .should_stop = v->opts->should_stop,
                                   .on_progress = show_progress,
                                   .progress_ctx = v};
    int result;
    progress_start(&v->progress, v->opts->clock, "verify", "files", v->list.n);
    result = tree_verify(v->arena, &opts, &v->list, ret, err);
    progress_end(&v->progress);
    v->out->n_from_cache = ret->n_cached;
    v->out->n_bytes_read = ret->n_bytes_read;
    return result;
}

static enum dataset_fault_kind kind_of(enum tree_fault fault)
{
    switch (fault) {
    case TREE_MISSING:
        return FAULT_MISSING;
    case TREE_EXTRA:
        return FAULT_EXTRA;
    case TREE_CORRUPT:
        return FAULT_CORRUPT;
    case TREE_UNREADABLE:
        break;
    }
    return FAULT_UNREADABLE;
}

static int compare_checks(const void *a, const void *b)
{
    return strcmp(((const struct header_check *)a)->path, ((const struct header_check *)b)->path);
}

static struct header_check *find_present(struct verifying *v, const char *path)
{
    struct header_check wanted = {.path = path};
    return v->n_present ? bsearch(&wanted, v->present, v->n_present, sizeof(wanted), compare_checks)
                        : NULL;
}

/* What is there: the list without what is missing, and what is extra. Both are sorted by path. */
static void collect_present(struct verifying *v, const struct tree_differences *differences)
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
        if (differences->items[idx].fault == TREE_EXTRA && !is_ours(differences->items[idx].path)) {
            v->present[v->n_present++] =
                (struct header_check){.path = differences->items[idx].path, .n_records = -1};
        }
    }
    qsort(v->present, v->n_present, sizeof(v->present[0]), compare_checks);
    for (size_t idx = 0; idx < v->n_present; idx++) {
        v->present[idx].group = dataset_group_of(&v->here->dataset, str_of(v->present[idx].path));
    }
    v->is_paired = arena_array(v->arena, bool, v->n_present + 1);
}

/* ---- groups ---- */

static const struct dataset_twin_split *twin_split(const struct verifying *v, struct str name)
{
    for (size_t idx = 0; idx < v->out->tree.n_splits && v->here->is_twin; idx++) {
        if (str_eq(v->out->tree.splits[idx].name, name)) {
            return &v->out->tree.splits[idx];
        }
    }
    return NULL;
}

static bool is_label_text(const struct dataset_group *group)
{
    return group->role == ROLE_LABEL && group->format == FILE_TEXT;
}

/* Of a twin: what was made. Else what is stated of the group, or of the split where its images are one file each. */
static void wanted_counts(const struct verifying *v, const struct dataset_group *group,
                          struct dataset_group_count *count)
{
    const struct dataset_twin_split *twin = twin_split(v, group->split);
    count->wanted_files = v->here->is_twin ? -1 : group->n_files;
    count->wanted_folders = v->here->is_twin ? -1 : group->n_folders;
    if (twin) {
        count->wanted_files = is_label_text(group)          ? 1
                              : group->role == ROLE_RECORDS ? twin->n_folders
                                                            : twin->n_samples;
        count->wanted_folders =
            is_label_text(group) || group->role == ROLE_RECORDS ? -1 : twin->n_folders;
        return;
    }
    for (size_t idx = 0; idx < v->here->dataset.n_splits && count->wanted_files < 0; idx++) {
        const struct dataset_split *split = &v->here->dataset.splits[idx];
        if (!v->here->is_twin && group->role == ROLE_IMAGE && str_eq(split->name, group->split)) {
            count->wanted_files = split->n_samples;
        }
    }
}

static struct str folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (struct str){path, slash ? (size_t)(slash - path) : 0};
}

static void check_folder_size(struct verifying *v, const struct dataset_group *group,
                              struct str folder, uint64_t n)
{
    if (v->here->is_twin) {
        return;
    }
    if ((group->folder_min >= 0 && n < (uint64_t)group->folder_min) ||
        (group->folder_max >= 0 && n > (uint64_t)group->folder_max)) {
        add_fault(v, FAULT_COUNT, arena_printf(v->arena, "%.*s", STR_ARG(folder)),
                  arena_printf(v->arena,
                               "%s: expected %lld to %lld files in the folder, found %llu",
                               group->name.ptr, (long long)group->folder_min,
                               (long long)group->folder_max, (unsigned long long)n));
    }
}

static void check_group(struct verifying *v, const struct dataset_group *group,
                        struct dataset_group_count *count)
{
    struct map folders = {0};
    struct {
        struct {
            struct str name;
            uint64_t n;
        } * items;
        size_t n, n_max;
    } list = {0};
    *count = (struct dataset_group_count){.name = group->name.ptr};
    wanted_counts(v, group, count);
    for (size_t idx = 0; idx < v->n_present; idx++) {
        struct str folder = folder_of(v->present[idx].path);
        if (v->present[idx].group != group) {
            continue;
        }
        count->n_files++;
        count->n_headers += v->present[idx].is_seen;
        uintptr_t at = (uintptr_t)map_get(&folders, folder);
        if (!at) {
            VEC_PUSH(&list, (typeof(list.items[0])){folder, 0});
            at = list.n;
            (void)map_add(&folders, folder, (void *)at);
        }
        list.items[at - 1].n++;
    }
    count->n_folders = list.n;
    for (size_t idx = 0; idx < list.n; idx++) {
        check_folder_size(v, group, list.items[idx].name, list.items[idx].n);
    }
    VEC_RELEASE(&list);
    map_release(&folders);
}

static void judge_count(struct verifying *v, const struct dataset_group_count *count)
{
    if (count->wanted_files < 0) {
        note(v, arena_printf(v->arena, "the number of files of group %s: not stated (%llu found)",
                             count->name, (unsigned long long)count->n_files));
    } else if ((uint64_t)count->wanted_files != count->n_files) {
        add_fault(v, FAULT_COUNT, count->name,
                  arena_printf(v->arena, "expected %lld files, found %llu",
                               (long long)count->wanted_files, (unsigned long long)count->n_files));
    }
    if (count->wanted_folders >= 0 && (uint64_t)count->wanted_folders != count->n_folders) {
        add_fault(v, FAULT_COUNT, count->name,
                  arena_printf(v->arena, "expected %lld folders, found %llu",
                               (long long)count->wanted_folders,
                               (unsigned long long)count->n_folders));
    }
}

/* Each file of the one group has its partner in the other, and the other way round. */
static void check_pairs(struct verifying *v, const struct dataset_group *group)
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
            other = find_present(v, path.ptr);
        }
        if (!other) {
            add_fault(v, FAULT_MISSING, path.ptr ? path.ptr : one->path,
                      arena_printf(v->arena, "the partner of %s", one->path));
        } else {
            v->is_paired[other - v->present] = true;
        }
    }
    for (size_t idx = 0; idx < v->n_present && group->pair_of.ptr; idx++) {
        if (v->present[idx].group == group && !v->is_paired[idx]) {
            add_fault(v, FAULT_EXTRA, v->present[idx].path,
                      arena_printf(v->arena, "it has no partner in group %s", group->pair_of.ptr));
        }
    }
}

static void check_strangers(struct verifying *v)
{
    for (size_t idx = 0; idx < v->n_present && !v->here->dataset.allows_others; idx++) {
        if (!v->present[idx].group) {
            add_fault(v, FAULT_EXTRA, v->present[idx].path, "no group of the description has it");
        }
    }
}

/* Samples that lie many in one file. */
static void check_records(struct verifying *v, const struct dataset_group *group)
{
    const struct dataset_twin_split *twin = twin_split(v, group->split);
    int64_t wanted = twin ? twin->n_samples : -1;
    int64_t found = 0;
    for (size_t idx = 0; idx < v->here->dataset.n_splits && !v->here->is_twin; idx++) {
        if (str_eq(v->here->dataset.splits[idx].name, group->split)) {
            wanted = v->here->dataset.splits[idx].n_samples;
        }
    }
    if (group->role != ROLE_RECORDS && !(twin && is_label_text(group))) {
        return;
    }
    if (group->format == FILE_HDF5) {
        note(v, arena_printf(v->arena,
                             "the datasets within the HDF5 files of group %s (reperf pack reads "
                             "them): only signature and length",
                             group->name.ptr));
        return;
    }
    if (wanted < 0) {
        note(v, arena_printf(v->arena, "the number of samples of group %s: not stated",
                             group->name.ptr));
        return;
    }
    for (size_t idx = 0; idx < v->n_present; idx++) {
        found += v->present[idx].group == group && v->present[idx].n_records > 0
                     ? v->present[idx].n_records
                     : 0;
    }
    if (found != wanted && v->opts->depth != DEPTH_QUICK) {
        add_fault(v, FAULT_COUNT, group->name.ptr,
                  arena_printf(v->arena, "expected %lld samples, found %lld", (long long)wanted,
                               (long long)found));
    }
}

/* ---- faults ---- */

static int check_headers(struct verifying *v, struct err *err)
{
    const struct headers_opts opts = {.folder = v->out->tree_path,
                                      .is_deep = v->opts->depth == DEPTH_DEEP,
                                      .ignores_lines = v->here->is_twin,
                                      .pool = v->opts->pool,
                                      .n_threads = v->opts->n_threads,
                                      .should_stop = v->opts->should_stop,
                                      .clock = v->opts->clock};
    if (v->opts->depth == DEPTH_QUICK) {
        note(v, "headers of images and records, and the numbers of samples in them (--quick)");
        return 0;
    }
    return dataset_headers(&opts, v->present, v->n_present, err);
}

/* One fault a file: a corrupt one says what its header says, where that is wrong too. */
static void add_differences(struct verifying *v, const struct tree_differences *differences)
{
    for (size_t idx = 0; idx < differences->n; idx++) {
        const struct tree_difference *difference = &differences->items[idx];
        struct header_check *check = find_present(v, difference->path);
        const char *why = NULL;
        if (difference->fault == TREE_EXTRA && is_ours(difference->path)) {
            continue;
        }
        if (difference->fault == TREE_CORRUPT) {
            why = check && check->why ? arena_printf(v->arena, "its digest differs; %s", check->why)
                                      : "its digest differs";
        } else if (check && check->why) {
            why = arena_printf(v->arena, "%s", check->why);
        }
        if (check) {
            free(check->why);
            check->why = NULL;
        }
        add_fault(v, kind_of(difference->fault), difference->path, why);
    }
    for (size_t idx = 0; idx < v->n_present; idx++) {
        v->out->n_headers += v->present[idx].is_seen;
        if (v->present[idx].why) {
            add_fault(v, FAULT_CORRUPT, v->present[idx].path,
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
static void settle_faults(struct verifying *v)
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

static int verify_tree(struct verifying *v, struct err *err)
{
    const struct dataset *dataset = &v->here->dataset;
    struct tree_verify_result result = {0};
    if (read_list(v, err) < 0 || check_archives(v, err) < 0 || check_digests(v, &result, err) < 0) {
        return -1;
    }
    note_archives(v);
    collect_present(v, &result.differences);
    if (check_headers(v, err) < 0) {
        return -1;
    }
    v->out->n_files = v->n_present;
    v->out->groups = arena_array(v->arena, struct dataset_group_count, dataset->n_groups + 1);
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        check_group(v, &dataset->groups[idx], &v->out->groups[v->out->n_groups]);
        judge_count(v, &v->out->groups[v->out->n_groups++]);
        check_pairs(v, &dataset->groups[idx]);
        check_records(v, &dataset->groups[idx]);
    }
    if (dataset->n_groups == 0) {
        note(v, "what must be in the tree: its description names no groups of files");
    }
    check_strangers(v);
    add_differences(v, &result.differences);
    settle_faults(v);
    return 0;
}

int dataset_verify(struct arena *arena, const struct store *store, const struct dataset_here *here,
                   const struct dataset_verify_opts *opts, struct dataset_verified *ret_verified,
                   struct err *err)
{
    struct dataset_verified out = {.tree_path = dataset_tree_path(store, here->name),
                                   .not_checked = arena_array(arena, const char *, NOTES_MAX)};
    struct verifying v = {.arena = arena, .store = store, .here = here, .opts = opts, .out = &out};
    int result;
    if (here->dataset.is_synthetic) {
        return err_set(err, ERR_USAGE, "%s is made up on the device: there is nothing to verify",
                       here->name);
    }
    result = verify_tree(&v, err);
    for (size_t idx = 0; idx < v.n_present; idx++) {
        free(v.present[idx].why);
    }
    VEC_RELEASE(&v.faults);
    if (result == 0) {
        *ret_verified = out;
    }
    return result;
}
