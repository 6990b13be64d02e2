/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a description's groups of files with the files that exist: numbers, folders, partners, samples. */
#include "base/base.h"

#include "store/dataset_verify_impl.h"

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

int verify_compare(const void *a, const void *b)
{
    return strcmp(((const struct header_check *)a)->path, ((const struct header_check *)b)->path);
}

struct header_check *verify_find(struct dataset_verifying *v, const char *path)
{
    struct header_check wanted = {.path = path};
    return v->n_present ? bsearch(&wanted, v->present, v->n_present, sizeof(wanted), verify_compare)
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
            other = verify_find(v, path.ptr);
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

void verify_counts(struct dataset_verifying *v)
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
