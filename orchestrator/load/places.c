/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/places.h"

#define SUFFIX ".json"

static bool is_same(const char *a, const char *b)
{
    char *x = realpath(a, NULL);
    char *y = realpath(b, NULL);
    bool is_equal = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return is_equal;
}

static bool is_known(const struct places *places, const char *own, const char *path)
{
    bool is_there = is_same(own, path);
    for (size_t idx = 0; idx < places->n; idx++) {
        is_there = is_there || is_same(places->items[idx], path);
    }
    return is_there;
}

const char *places_user(struct arena *arena, const char *xdg, const char *in_home, const char *name)
{
    const char *home = getenv("HOME");
    if (xdg && xdg[0] == '/') {
        return fs_join(arena, xdg, name);
    }
    return home && home[0] ? arena_printf(arena, "%s/%s/%s", home, in_home, name) : NULL;
}

int places_find(struct arena *arena, const char *root, struct places *ret, struct err *err)
{
    struct str rest = str_of(getenv("REPERF_MANIFESTS"));
    struct str part;
    struct places places = {0};
    const char *own = fs_join(arena, root, "manifests");
    while (rest.len && str_next(&rest, ':', &part)) {
        const char *path = str_z(arena, part);
        if (part.len == 0 || is_known(&places, own, path)) {
            continue;
        }
        if (!fs_is_dir(path)) {
            return err_set(err, ERR_USAGE, "%s: no such folder of manifests (--manifests, %s)",
                           path, PLACES_ENV);
        }
        if (places.n + 1 == PLACES_MAX) {
            return err_set(err, ERR_USAGE, "%s: more than %d folders", PLACES_ENV, PLACES_MAX - 1);
        }
        places.items[places.n++] = path;
    }
    places.items[places.n++] = own;
    *ret = places;
    return 0;
}

int places_folder(struct arena *arena, const char *root, const char *kind, const char *name,
                  const char **ret_path, struct err *err)
{
    const char *own = strcmp(kind, "overlays") == 0 ? "workloads/competitors" : kind;
    struct places places;
    if (places_find(arena, root, &places, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx + 1 < places.n; idx++) {
        const char *path = arena_printf(arena, "%s/%s/%s", places.items[idx], kind, name);
        if (fs_is_dir(path)) {
            *ret_path = path;
            return 0;
        }
    }
    *ret_path = arena_printf(arena, "%s/%s/%s", root, own, name);
    return 0;
}

const struct placed *placed_find(const struct placed_list *list, struct str stem)
{
    for (size_t idx = 0; idx < list->n; idx++) {
        if (str_eq_z(stem, list->items[idx].stem)) {
            return &list->items[idx];
        }
    }
    return NULL;
}

static int compare_stems(const void *a, const void *b)
{
    return strcmp(((const struct placed *)a)->stem, ((const struct placed *)b)->stem);
}

struct adding {
    struct arena *arena;
    const char *kind, *own;
    size_t max;
    struct placed_list *list;
};

static int add_place(const struct adding *to, const char *place, struct err *err)
{
    const char *folder = fs_join(to->arena, place, to->kind);
    bool is_own = strcmp(place, to->own) != 0;
    struct fs_names names;
    /* The program comes with reports and formats; inventories are a site's own. */
    if ((is_own || strcmp(to->kind, "inventories") == 0) && !fs_is_dir(folder)) {
        return 0;
    }
    if (fs_list(to->arena, folder, &names, err) < 0) {
        err->code = ERR_MANIFEST;
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct str name = str_of(names.items[idx]);
        struct str stem = str_sub(name, 0, name.len - strlen(SUFFIX));
        if (!str_ends(name, STR_LIT(SUFFIX)) || name.ptr[0] == '.' || placed_find(to->list, stem)) {
            continue;
        }
        if (to->list->n == to->max) {
            return err_set(err, ERR_MANIFEST, "%s: more than %zu %s", folder, to->max, to->kind);
        }
        to->list->items[to->list->n++] = (struct placed){
            place, fs_join(to->arena, folder, name.ptr), str_z(to->arena, stem), is_own};
    }
    return 0;
}

int places_list(struct arena *arena, const char *root, const char *kind, size_t max,
                struct placed_list *ret, struct err *err)
{
    struct placed_list list = {arena_array(arena, struct placed, max + 1), 0};
    const struct adding to = {arena, kind, fs_join(arena, root, "manifests"), max, &list};
    struct places places;
    if (places_find(arena, root, &places, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < places.n; idx++) {
        if (add_place(&to, places.items[idx], err) < 0) {
            return -1;
        }
    }
    qsort(list.items, list.n, sizeof(list.items[0]), compare_stems);
    *ret = list;
    return 0;
}

const char *places_said(struct arena *arena, const struct places *places, const char *kind)
{
    const char *text = "";
    for (size_t idx = 0; idx < places->n; idx++) {
        text = arena_printf(arena, "%s%s%s/%s", text, idx ? ", " : "", places->items[idx], kind);
    }
    return text;
}
