/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/places.h"

#include <pwd.h>
#include <unistd.h>

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
    const struct passwd *user = home && home[0] ? NULL : getpwuid(getuid());
    home = user ? user->pw_dir : home;
    if (xdg && xdg[0] == '/') {
        return fs_join(arena, xdg, name);
    }
    return home && home[0] ? arena_printf(arena, "%s/%s/%s", home, in_home, name) : NULL;
}

const char *places_program(struct arena *arena, const char *named, const char *self,
                           const char *name)
{
    const struct str folder = str_rcut(str_of(self), 0, "/");
    return named && named[0] ? named : arena_printf(arena, "%.*s%s", STR_ARG(folder), name);
}

int places_find(struct arena *arena, const char *root, struct places *ret, struct err *err)
{
    struct str rest = str_of(getenv(PLACES_LIST));
    struct str part;
    struct places places = {0};
    const char *own = fs_join(arena, root, "manifests");
    while (rest.len && str_next(&rest, '\n', &part)) {
        const char *path = str_z(arena, part);
        if (part.len == 0 || is_known(&places, own, path)) {
            continue;
        }
        if (!fs_is_dir(path)) {
            return err_set(err, ERR_USAGE,
                           "%s: no such folder of manifests (--manifests, REPERF_MANIFESTS)", path);
        }
        if (places.n + 1 == PLACES_MAX) {
            return err_set(err, ERR_USAGE, "REPERF_MANIFESTS: more than %d folders",
                           PLACES_MAX - 1);
        }
        places.items[places.n++] = path;
    }
    places.items[places.n++] = own;
    *ret = places;
    return 0;
}

void places_prefer(struct arena *arena, const char *folder)
{
    const char *before = getenv(PLACES_LIST);
    (void)setenv(PLACES_LIST, arena_printf(arena, "%s\n%s", folder, before ? before : ""), 1);
}

int places_to_write(struct arena *arena, const struct cmd_ctx *ctx, const char **ret,
                    struct err *err)
{
    const char *own = fs_join(arena, ctx->root, "manifests");
    const char *folder =
        !is_same("manifests", own)
            ? "manifests"
            : places_user(arena, getenv("XDG_DATA_HOME"), ".local/share", "reperf/manifests");
    struct places places;
    if (places_find(arena, ctx->root, &places, err) < 0) {
        return -1;
    }
    if (ctx->manifests && places.n > 1) {
        *ret = places.items[0];
        return 0;
    }
    if (!folder) {
        return err_set(err, ERR_USAGE,
                       "neither XDG_DATA_HOME nor HOME: --manifests DIR says where");
    }
    if (fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    places_prefer(arena, folder);
    *ret = folder;
    return 0;
}

const struct placed *placed_find(const struct placed_list *list, struct str stem)
{
    return Z_NAMED(list->items, list->n, stem, stem);
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

/* What the program comes with lies outside its manifests for the kinds that are folders themselves. */
static const char *own_folder(struct arena *arena, const char *root, const char *kind)
{
    static const char *const OUTSIDE[][2] = {
        {"datasets", "datasets"}, {"images", "images"}, {"overlays", "workloads/competitors"}};
    for (size_t idx = 0; idx < ARRAY_LEN(OUTSIDE); idx++) {
        if (strcmp(kind, OUTSIDE[idx][0]) == 0) {
            return fs_join(arena, root, OUTSIDE[idx][1]);
        }
    }
    return arena_printf(arena, "%s/manifests/%s", root, kind);
}

/* Folders of the kind, the user's first; one that is not a folder has no names. */
static size_t folders_of(struct arena *arena, const char *root, const char *kind,
                         const char *folders[PLACES_MAX])
{
    struct places places;
    size_t n = 0;
    /* Who loads a manifest says what is wrong with the places. */
    if (places_find(arena, root, &places, ERR_IGNORED) == 0) {
        for (; n + 1 < places.n; n++) {
            folders[n] = fs_join(arena, places.items[n], kind);
        }
    }
    folders[n] = own_folder(arena, root, kind);
    return n + 1;
}

const char *places_path(struct arena *arena, const char *root, const char *kind, const char *name)
{
    const char *folders[PLACES_MAX];
    size_t n = folders_of(arena, root, kind, folders);
    size_t idx = 0;
    while (idx + 1 < n && !fs_exists(fs_join(arena, folders[idx], name))) {
        idx++;
    }
    return fs_join(arena, folders[idx], name);
}

const char *places_beside(struct arena *arena, const char *root, const char *kind, const char *name,
                          const char *beside)
{
    const char *folders[PLACES_MAX];
    size_t n = folders_of(arena, root, kind, folders);
    for (size_t idx = 0; idx + 1 < n; idx++) {
        if (fs_exists(fs_join(arena, folders[idx], name))) {
            return arena_printf(arena, "%s/../%s", folders[idx], beside);
        }
    }
    return own_folder(arena, root, beside);
}

int places_names(struct arena *arena, const char *root, const char *kind, struct fs_names *ret,
                 struct err *err)
{
    const char *folders[PLACES_MAX];
    size_t n_folders = folders_of(arena, root, kind, folders);
    struct fs_names all = {0};
    for (size_t idx = 0; idx < n_folders; idx++) {
        struct fs_names more = {0};
        if (idx + 1 < n_folders && !fs_is_dir(folders[idx])) {
            continue;
        }
        if (fs_list(arena, folders[idx], &more, err) < 0) {
            return -1;
        }
        char **items = arena_array(arena, char *, all.n + more.n + 1);
        size_t n = 0;
        for (size_t at = 0; at < all.n + more.n; at++) {
            char *name = at < all.n ? all.items[at] : more.items[at - all.n];
            if (at < all.n || !all.n ||
                !bsearch(&name, all.items, all.n, sizeof(name), str_cmp_z)) {
                items[n++] = name;
            }
        }
        qsort(items, n, sizeof(*items), str_cmp_z);
        all = (struct fs_names){items, n};
    }
    *ret = all;
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
