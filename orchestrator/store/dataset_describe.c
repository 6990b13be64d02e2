/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_describe.h"

#include "base/arena.h"

static const struct ending {
    const char *end;
    enum file_format format;
} IMAGES[] = {{".jpg", FILE_JPEG},  {".jpeg", FILE_JPEG}, {".JPG", FILE_JPEG},
              {".JPEG", FILE_JPEG}, {".png", FILE_PNG},   {".PNG", FILE_PNG}};

static const struct dataset_group GROUP_EMPTY = {.n_files = -1,
                                                 .n_folders = -1,
                                                 .folder_min = -1,
                                                 .folder_max = -1,
                                                 .width = -1,
                                                 .height = -1,
                                                 .channels = -1,
                                                 .n_lines = -1};

static size_t slashes_in(struct str path)
{
    size_t n = 0;
    for (size_t idx = 0; idx < path.len; idx++) {
        n += path.ptr[idx] == '/';
    }
    return n;
}

/* The ending that all files have, of images by class, with or without a folder of the split above; NULL where they are not
   that. */
static const struct ending *find_classes(const struct tree_list *list)
{
    const struct ending *ending = NULL;
    const size_t depth = list->n ? slashes_in(str_of(list->files[0].path)) : 0;
    for (size_t idx = 0; idx < ARRAY_LEN(IMAGES) && list->n; idx++) {
        if (str_ends(str_of(list->files[0].path), str_of(IMAGES[idx].end))) {
            ending = &IMAGES[idx];
        }
    }
    for (size_t idx = 0; idx < list->n && ending; idx++) {
        struct str path = str_of(list->files[idx].path);
        if (slashes_in(path) != depth || !str_ends(path, str_of(ending->end))) {
            return NULL;
        }
    }
    return depth == 1 || depth == 2 ? ending : NULL;
}

static char *slug(struct arena *arena, struct str name)
{
    char *text = arena_strndup(arena, name.ptr, name.len);
    for (char *at = text; *at; at++) {
        bool is_good = (*at >= 'a' && *at <= 'z') || is_digit(*at) || *at == '-' || *at == '.';
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : is_good ? *at : '-';
    }
    return text;
}

static void add_split(struct arena *arena, struct str folder, const struct ending *ending,
                      struct dataset *dataset)
{
    struct dataset_group *group = &dataset->groups[dataset->n_groups++];
    *group = GROUP_EMPTY;
    group->split = folder.len ? str_of(slug(arena, folder)) : STR_LIT("train");
    group->name = str_printf(arena, "%s-images", group->split.ptr);
    group->role = ROLE_IMAGE;
    group->format = ending->format;
    group->glob =
        str_printf(arena, "%.*s%s*/*%s", STR_ARG(folder), folder.len ? "/" : "", ending->end);
    group->n_files = group->n_folders = 0;
}

/* The list is sorted: the files of a split stand together, and in it those of a class. False for too many splits. */
static bool add_classes(struct arena *arena, const struct tree_list *list,
                        const struct ending *ending, struct dataset *dataset)
{
    struct str last_split = {"", 0}, last_class = STR_EMPTY;
    for (size_t idx = 0; idx < list->n; idx++) {
        struct str class = str_rcut(str_of(list->files[idx].path), 0, "/");
        struct str split = str_sub(class, 0, class.len - 1);
        split = str_sub(split, 0, str_rcut(split, 0, "/").len);
        split.len -= split.len > 0;
        if (idx == 0 || !str_eq(split, last_split)) {
            if (dataset->n_groups == DATASET_SPLITS_MAX) {
                return false;
            }
            add_split(arena, split, ending, dataset);
        }
        struct dataset_group *group = &dataset->groups[dataset->n_groups - 1];
        group->n_folders += idx == 0 || !str_eq(class, last_class);
        group->n_files++;
        last_split = split;
        last_class = class;
    }
    return true;
}

void dataset_describe(struct arena *arena, const struct tree_list *list, struct dataset *dataset)
{
    const struct ending *ending = find_classes(list);
    bool is_even = true;
    dataset->groups = arena_array(arena, struct dataset_group, DATASET_SPLITS_MAX);
    dataset->splits = arena_array(arena, struct dataset_split, DATASET_SPLITS_MAX);
    if (!ending || !add_classes(arena, list, ending, dataset)) {
        dataset->groups[0] = GROUP_EMPTY;
        dataset->groups[0].name = STR_LIT("files");
        dataset->groups[0].role = ROLE_OTHER;
        dataset->groups[0].format = FILE_ANY;
        dataset->groups[0].glob = STR_LIT("**/*");
        dataset->groups[0].n_files = (int64_t)list->n;
        dataset->n_groups = 1;
        return;
    }
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        const struct dataset_group *group = &dataset->groups[idx];
        is_even = is_even && group->n_folders == dataset->groups[0].n_folders;
        dataset->splits[dataset->n_splits++] =
            (struct dataset_split){group->split, group->n_files, group->n_folders};
    }
    if (is_even) {
        dataset->pack.kind = PACK_CLASSES;
        dataset->pack.n_classes = dataset->groups[0].n_folders;
    }
}
