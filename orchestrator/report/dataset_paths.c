/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a tree belong to which group, and which belong together. */
#include "base/base.h"

#include "report/dataset.h"

/* Matches one `*`, `?` or byte after another within a path component; the last `*` is widened if the rest does not fit. */
static bool component_matches(struct str glob, struct str name)
{
    size_t g = 0;
    size_t n = 0;
    size_t star = SIZE_MAX;
    size_t star_name = 0;
    while (n < name.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            star_name = n;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == name.ptr[n])) {
            g++;
            n++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            n = ++star_name;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') {
        g++;
    }
    return g == glob.len;
}

/* The same over components: `**` is their `*`. */
bool dataset_glob_matches(struct str glob, struct str path)
{
    struct str wild_glob = STR_EMPTY;
    struct str wild_path = STR_EMPTY;
    for (;;) {
        struct str glob_rest = glob;
        struct str path_rest = path;
        struct str glob_part;
        struct str path_part;
        bool has_glob = str_next(&glob_rest, '/', &glob_part);
        bool has_path = str_next(&path_rest, '/', &path_part);
        if (has_glob && str_eq_z(glob_part, "**")) {
            wild_glob = glob = glob_rest;
            wild_path = path;
            continue;
        }
        if (!has_glob && !has_path) {
            return true;
        }
        if (has_glob && has_path && component_matches(glob_part, path_part)) {
            glob = glob_rest;
            path = path_rest;
            continue;
        }
        if (!wild_glob.ptr || !str_next(&wild_path, '/', &path_part)) {
            return false;
        }
        glob = wild_glob;
        path = wild_path;
    }
}

const struct dataset_group *dataset_group_of(const struct dataset *dataset, struct str path)
{
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        if (dataset_glob_matches(dataset->groups[idx].glob, path)) {
            return &dataset->groups[idx];
        }
    }
    return NULL;
}

const struct dataset_group *dataset_group_find(const struct dataset *dataset, struct str split,
                                               enum file_role role)
{
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        const struct dataset_group *group = &dataset->groups[idx];
        if (group->role == role && (!split.ptr || str_eq(group->split, split))) {
            return group;
        }
    }
    return NULL;
}

struct str dataset_partner(struct arena *arena, const struct dataset_group *group, struct str path)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    struct str rest = path;
    strbuf_init(&text, 1u << 16);
    for (int64_t at = 0; rest.len && (at = str_find(rest, group->pair_from)) >= 0;) {
        strbuf_add(&text, rest.ptr, (size_t)at);
        strbuf_add_str(&text, group->pair_to);
        rest = str_sub(rest, (size_t)at + group->pair_from.len, SIZE_MAX);
    }
    strbuf_add_str(&text, rest);
    if (text.is_full || !str_ends(strbuf_str(&text), group->pair_from_end)) {
        return STR_EMPTY;
    }
    return str_of(arena_printf(arena, "%.*s%s", (int)(text.len - group->pair_from_end.len),
                               text.ptr, group->pair_to_end.ptr));
}

char *dataset_tree_name(struct arena *arena, const struct dataset *dataset, bool is_synthetic)
{
    return arena_printf(arena, "%s%s", dataset->id.ptr,
                        is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
}
