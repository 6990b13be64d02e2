/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_describe.h"

#include "base/arena.h"

#define CLASS_DEPTH 2 /* slashes in SPLIT/CLASS/IMAGE */

static const struct ending {
    const char *end;
    enum file_format format;
    enum file_role role;
} ENDINGS[] = {
    {"jpg", FILE_JPEG, ROLE_IMAGE},
    {"jpeg", FILE_JPEG, ROLE_IMAGE},
    {"JPG", FILE_JPEG, ROLE_IMAGE},
    {"JPEG", FILE_JPEG, ROLE_IMAGE},
    {"png", FILE_PNG, ROLE_IMAGE},
    {"PNG", FILE_PNG, ROLE_IMAGE},
    {"hdf5", FILE_HDF5, ROLE_RECORDS},
    {"h5", FILE_HDF5, ROLE_RECORDS},
    {"tfrecord", FILE_TFRECORD, ROLE_RECORDS},
    {"txt", FILE_TEXT, ROLE_OTHER},
};

/* One group in the making: the files below `top` (NULL: at the root) whose names end with `end` (NULL: have no ending). */
struct kind {
    struct str top, end;
    struct str last_folder;
    int64_t n_files, n_folders;
};

struct kinds {
    struct kind items[DATASET_GROUPS_MAX];
    size_t n;
};

static const struct ending *ending_of(struct str end)
{
    for (size_t idx = 0; end.ptr && idx < ARRAY_LEN(ENDINGS); idx++) {
        if (str_eq_z(end, ENDINGS[idx].end)) {
            return &ENDINGS[idx];
        }
    }
    return NULL;
}

static int64_t slashes_in(struct str path)
{
    int64_t n = 0;
    for (size_t idx = 0; idx < path.len; idx++) {
        n += path.ptr[idx] == '/';
    }
    return n;
}

static struct str folder_of(struct str path)
{
    path = str_rcut(path, 0, "/");
    return str_sub(path, 0, path.len ? path.len - 1 : 0);
}

static struct str end_of(struct str path)
{
    const size_t at = str_rcut(path, 0, "./").len;
    return at > 1 && path.ptr[at - 1] == '.' && path.ptr[at - 2] != '/'
               ? str_sub(path, at, path.len)
               : STR_EMPTY;
}

static struct kind *kind_of(struct kinds *kinds, struct str top, struct str end)
{
    for (size_t idx = 0; idx < kinds->n; idx++) {
        struct kind *kind = &kinds->items[idx];
        if (str_eq(kind->top, top) && str_eq(kind->end, end)) {
            return kind;
        }
    }
    if (kinds->n == DATASET_GROUPS_MAX) {
        return NULL;
    }
    kinds->items[kinds->n] = (struct kind){.top = top, .end = end};
    return &kinds->items[kinds->n++];
}

/* Depth and ending that all files have; false where they differ. */
static bool are_alike(const struct tree_list *list, int64_t *ret_depth, struct str *ret_end)
{
    for (size_t idx = 0; idx < list->n; idx++) {
        struct str path = str_of(list->files[idx].path);
        if (idx == 0) {
            *ret_depth = slashes_in(path);
            *ret_end = end_of(path);
        } else if (slashes_in(path) != *ret_depth || !str_eq(end_of(path), *ret_end)) {
            return false;
        }
    }
    return list->n > 0;
}

/* Images by class, with or without a folder of the split above. */
static bool are_classes(const struct tree_list *list, bool *ret_has_splits)
{
    int64_t depth = 0;
    struct str end = STR_EMPTY;
    const struct ending *ending = are_alike(list, &depth, &end) ? ending_of(end) : NULL;
    *ret_has_splits = depth == CLASS_DEPTH;
    return ending && ending->role == ROLE_IMAGE &&
           (depth == CLASS_DEPTH || depth == CLASS_DEPTH - 1);
}

/* n_folders is right where all files lie equally deep: then those of one folder stand together in the list. */
static bool take_file(struct kinds *kinds, struct str path, bool has_tops)
{
    int64_t depth = has_tops ? slashes_in(path) : 0;
    struct str top = depth ? str_sub(path, 0, (size_t)str_find(path, STR_LIT("/"))) : STR_EMPTY;
    struct str folder = folder_of(path);
    struct kind *kind = kind_of(kinds, top, end_of(path));
    if (!kind) {
        return false;
    }
    kind->n_folders += kind->n_files == 0 || !str_eq(kind->last_folder, folder);
    kind->last_folder = folder;
    kind->n_files++;
    return true;
}

static const struct dataset_group GROUP_EMPTY = {.n_files = -1,
                                                 .n_folders = -1,
                                                 .folder_min = -1,
                                                 .folder_max = -1,
                                                 .width = -1,
                                                 .height = -1,
                                                 .channels = -1,
                                                 .n_lines = -1};

static char *slug(struct arena *arena, struct str name)
{
    char *text = arena_strndup(arena, name.ptr ? name.ptr : "top", name.ptr ? name.len : 3);
    for (char *at = text; *at; at++) {
        bool is_good = (*at >= 'a' && *at <= 'z') || is_digit(*at) || *at == '-' || *at == '.';
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : is_good ? *at : '-';
    }
    return text;
}

static void add_classes(struct arena *arena, const struct kinds *kinds, bool has_splits,
                        struct dataset *dataset)
{
    bool is_even = true;
    for (size_t idx = 0; idx < kinds->n; idx++) {
        const struct kind *kind = &kinds->items[idx];
        const struct ending *ending = ending_of(kind->end);
        struct dataset_group *group = &dataset->groups[dataset->n_groups++];
        const char *split = has_splits ? slug(arena, kind->top) : "train";
        *group = GROUP_EMPTY;
        group->name = str_printf(arena, "%s-images", split);
        group->split = str_of(split);
        group->role = ROLE_IMAGE;
        group->format = ending ? ending->format : FILE_ANY;
        group->glob = str_printf(arena, "%.*s%s*/*.%.*s", STR_ARG(kind->top), has_splits ? "/" : "",
                                 STR_ARG(kind->end));
        group->n_files = kind->n_files;
        group->n_folders = kind->n_folders;
        is_even = is_even && group->n_folders == dataset->groups[0].n_folders;
        dataset->splits[dataset->n_splits++] =
            (struct dataset_split){group->split, group->n_files, group->n_folders};
    }
    if (is_even) {
        dataset->pack.kind = PACK_CLASSES;
        dataset->pack.n_classes = dataset->groups[0].n_folders;
    }
}

/* A path is of the first group whose glob fits: files without an ending, whose glob fits others too, come last. */
static void add_kinds(struct arena *arena, const struct kinds *kinds, struct dataset *dataset)
{
    for (size_t idx = 0; idx < 2 * kinds->n; idx++) {
        const struct kind *kind = &kinds->items[idx % kinds->n];
        const struct ending *ending = ending_of(kind->end);
        if ((kind->end.ptr == NULL) != (idx >= kinds->n)) {
            continue;
        }
        struct dataset_group *group = &dataset->groups[dataset->n_groups++];
        *group = GROUP_EMPTY;
        group->name = str_printf(arena, "%s-%s", slug(arena, kind->top),
                                 kind->end.ptr ? slug(arena, kind->end) : "plain");
        group->role = ending ? ending->role : ROLE_OTHER;
        group->format = ending ? ending->format : FILE_ANY;
        group->glob =
            str_printf(arena, "%.*s%s*%s%.*s", STR_ARG(kind->top), kind->top.ptr ? "/**/" : "",
                       kind->end.ptr ? "." : "", STR_ARG(kind->end));
        group->n_files = kind->n_files;
    }
}

int dataset_describe(struct arena *arena, const struct tree_list *list, struct dataset *dataset,
                     struct err *err)
{
    struct kinds kinds = {.n = 0};
    bool has_splits = false;
    bool are = are_classes(list, &has_splits);
    for (size_t idx = 0; idx < list->n; idx++) {
        if (!take_file(&kinds, str_of(list->files[idx].path), !are || has_splits)) {
            return err_set(err, ERR_USAGE,
                           "more than %d kinds of files (by top folder and ending): describe it by "
                           "hand, or in parts",
                           DATASET_GROUPS_MAX);
        }
    }
    dataset->groups = arena_array(arena, struct dataset_group, DATASET_GROUPS_MAX);
    dataset->splits = arena_array(arena, struct dataset_split, DATASET_GROUPS_MAX);
    if (are && kinds.n <= DATASET_SPLITS_MAX) {
        add_classes(arena, &kinds, has_splits, dataset);
    } else {
        add_kinds(arena, &kinds, dataset);
    }
    return 0;
}
