/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/load.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/library.h"
#include "base/strbuf.h"

#define TRIED_MAX   360 /* bytes of the list of places tried, so that the rest of the message fits */
#define WHEELS_MAX  64
#define PREFIX_LIST "/lib/python3*/*-packages/nvidia/*/lib"

struct search {
    const struct load_want *want;
    struct load *load;
    struct strbuf tried; /* "PLACE: why not; PLACE: why not" */
    bool is_cut;
};

void load_version_text(int version, char *text)
{
    (void)snprintf(text, LOAD_VERSION_MAX, "%d.%d.%d", version / 10000, version / 100 % 100,
                   version % 100);
}

void load_close(struct load *load)
{
    if (load->handle) {
        (void)dlclose(load->handle);
    }
    *load = (struct load){0};
}

static void say(struct search *search, const char *place, const char *why)
{
    if (search->is_cut) {
        return;
    }
    if (search->tried.len + strlen(place) + strlen(why) + 8 > TRIED_MAX) {
        search->is_cut = true;
        strbuf_add_z(&search->tried, "; ...");
        return;
    }
    strbuf_printf(&search->tried, "%s%s: %s", search->tried.len > 0 ? "; " : "", place, why);
}

/* Every symbol present and the version right, or the reason in why. */
static bool fits(struct search *search, void *handle, char *why, size_t why_bytes)
{
    const struct load_want *want = search->want;
    char found[LOAD_VERSION_MAX];
    char min[LOAD_VERSION_MAX];
    char end[LOAD_VERSION_MAX];
    load_fn version_fn;
    if (library_find(handle, &want->version_symbol, 1, &version_fn)) {
        (void)snprintf(why, why_bytes, "has no %s", want->version_symbol);
        return false;
    }
    int version = want->version(version_fn);
    load_version_text(version, found);
    load_version_text(want->version_min, min);
    load_version_text(want->version_end, end);
    if (version < 0) {
        (void)snprintf(why, why_bytes, "does not say its version");
        return false;
    }
    if (version < want->version_min || version >= want->version_end) {
        (void)snprintf(why, why_bytes, "is version %s", found);
        return false;
    }
    const char *lacks = library_find(handle, want->symbols, want->n_symbols, want->table);
    if (lacks) {
        (void)snprintf(why, why_bytes, "version %s has no %s", found, lacks);
        return false;
    }
    search->load->version = version;
    return true;
}

/* A name without a slash is looked for by the loader. */
static bool try_name(struct search *search, const char *name)
{
    char why[256];
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *text = dlerror();
        const char *colon = text && strchr(name, '/') ? strstr(text, ": ") : NULL;
        say(search, name,
            colon  ? colon + 2
            : text ? "not on the loader's path"
                   : "cannot be loaded");
        return false;
    }
    if (!fits(search, handle, why, sizeof(why))) {
        (void)dlclose(handle);
        say(search, name, why);
        return false;
    }
    /* It stays loaded until the process ends: these libraries register code with the driver and start threads. */
    void *again = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    if (again) {
        (void)dlclose(again);
    }
    struct link_map *map = NULL;
    (void)snprintf(search->load->path, LOAD_PATH_MAX, "%s",
                   dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : name);
    search->load->handle = handle;
    return true;
}

/* Mentions another major version of the library in the folder. */
static void say_others(struct search *search, const char *folder)
{
    char pattern[PATH_MAX];
    const char *so = strstr(search->want->soname, ".so.");
    glob_t found = {0};
    (void)snprintf(pattern, sizeof(pattern), "%s/%.*s.so.[0-9]*", folder,
                   (int)(so ? so - search->want->soname : 0), search->want->soname);
    if (so && glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0) {
        say(search, found.gl_pathv[0], "another major version");
    }
    globfree(&found);
}

static bool try_folder(struct search *search, const char *folder, bool is_named)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s/%s", folder, search->want->soname);
    if (len >= (int)sizeof(path)) {
        return false;
    }
    if (access(path, F_OK) == 0) {
        return try_name(search, path);
    }
    if (is_named) {
        say(search, path, "no such file");
    }
    say_others(search, folder);
    return false;
}

static bool try_home(struct search *search, const char *home)
{
    static const char *const BELOW[] = {"lib64", "lib"};
    char folder[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(BELOW); i++) {
        int len = snprintf(folder, sizeof(folder), "%s/%s", home, BELOW[i]);
        if (len < (int)sizeof(folder) && try_folder(search, folder, false)) {
            return true;
        }
    }
    return false;
}

static bool try_wheels(struct search *search, const char *prefix)
{
    char pattern[PATH_MAX];
    glob_t found = {0};
    bool is_found = false;
    if (snprintf(pattern, sizeof(pattern), "%s" PREFIX_LIST, prefix) < (int)sizeof(pattern) &&
        glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && i < WHEELS_MAX && !is_found; i++) {
            is_found = try_folder(search, found.gl_pathv[i], false);
        }
    }
    globfree(&found);
    return is_found;
}

/* The folder above bin of the python3 on PATH: also that of a virtual environment. */
static bool try_python(struct search *search)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = getenv("PATH");
    struct str rest = str_of(path ? path : "");
    struct str folder;
    while (str_next(&rest, ':', &folder)) {
        char *program = arena_printf(&arena, "%.*s/python3", STR_ARG(folder));
        if (folder.len > 0 && access(program, X_OK) == 0) {
            return str_ends(folder, STR_LIT("/bin")) &&
                   try_wheels(search, str_z(&arena, str_sub(folder, 0, folder.len - 4)));
        }
    }
    return false;
}

static bool try_all(struct search *search)
{
    const char *home = getenv("CUDA_HOME");
    const char *venv = getenv("VIRTUAL_ENV");
    const char *user = getenv("HOME");
    char local[PATH_MAX];
    bool has_local = user && snprintf(local, sizeof(local), "%s/.local", user) < (int)sizeof(local);
    return try_name(search, search->want->soname) || (home && *home && try_home(search, home)) ||
           try_home(search, "/usr/local/cuda") || (venv && *venv && try_wheels(search, venv)) ||
           try_python(search) || (has_local && try_wheels(search, local)) ||
           try_wheels(search, "/usr/local") || try_wheels(search, "/usr");
}

int load_open(const struct load_want *want, struct load *ret_load, struct err *err)
{
    struct load load = {0};
    struct search search = {.want = want, .load = &load};
    const char *only = getenv(want->folder_variable);
    bool is_named = only && *only;
    strbuf_init(&search.tried, 2 * (size_t)TRIED_MAX);
    if (is_named ? try_folder(&search, only, true) || try_home(&search, only) : try_all(&search)) {
        *ret_load = load;
        strbuf_release(&search.tried);
        return 0;
    }
    char min[LOAD_VERSION_MAX];
    char end[LOAD_VERSION_MAX];
    load_version_text(want->version_min, min);
    load_version_text(want->version_end, end);
    int status =
        err_set(err, ERR_USAGE, "%s from %s to below %s is needed; %s: %s%s", want->what, min, end,
                is_named ? want->folder_variable : "looked at", search.tried.ptr,
                is_named ? "" : "; $CUDA_HOME, /usr/local/cuda and Python's wheels have no other");
    strbuf_release(&search.tried);
    return status;
}
