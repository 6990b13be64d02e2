/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/run_view.h"

#include <math.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/temp.h"
#include "codec/json.h"
#include "evidence/derive.h"
#include "evidence/rundir.h"
#include "evidence/verify_archive.h"
#include "run/journal_check.h"

#define SCALAR_MAX 64 /* of a number or a truth */

static bool has_result(struct arena *arena, const char *folder)
{
    return fs_exists(fs_join(arena, folder, "result.json"));
}

/* Unpacks into a new folder below $TMPDIR. */
static int open_archive(struct arena *arena, struct clock_src clock, const char *path,
                        struct run_view *view, struct err *err)
{
    struct verify_info info;
    struct verify_opts opts = {.path = path,
                               .allows_unsigned = true,
                               .is_bytes_only = true, /* derived when it is opened */
                               .wants_progress = true,
                               .clock = clock};
    if (temp_scratch(&view->scratch, err) < 0) {
        return -1;
    }
    view->is_archive = true;
    opts.unpack_to = fs_join(arena, view->scratch->path, "run");
    view->folder = opts.unpack_to;
    return verify_archive(arena, &opts, &info, err);
}

static int find_folder(struct arena *arena, struct clock_src clock, const char *state,
                       const char *name, struct run_view *view, struct err *err)
{
    struct rundir dir;
    if (fs_is_dir(name)) {
        const char *inner = fs_join(arena, name, "evidence");
        view->folder = has_result(arena, name) ? name : inner;
    } else if (fs_exists(name)) {
        return open_archive(arena, clock, name, view, err);
    } else {
        if (rundir_find(arena, state, name, &dir, err) < 0) {
            return -1;
        }
        view->folder = dir.evidence;
    }
    if (!has_result(arena, view->folder)) {
        return err_set(err, ERR_NOT_FOUND,
                       "%s: no result.json; the run is not over (reperf status says how far it is)",
                       view->folder);
    }
    return 0;
}

bool run_view_is_run(struct arena *arena, const char *state, const char *name)
{
    struct rundir dir;
    struct err ignored = {0};
    if (str_ends(str_of(name), STR_LIT(".tar.zst"))) {
        return true;
    }
    if (fs_is_dir(name)) {
        return has_result(arena, name) || has_result(arena, fs_join(arena, name, "evidence"));
    }
    /* An ambiguous prefix is reported when it is opened. */
    return strcmp(name, "last") == 0 || rundir_find(arena, state, name, &dir, &ignored) == 0 ||
           ignored.code == ERR_USAGE;
}

/* ---- the machine ---- */

/* Empty where it is null. */
static struct str scalar_text(const struct json *at, struct arena *arena)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SCALAR_MAX);
    struct json_out out;
    struct str said = STR_EMPTY;
    if (json_is_null(at) || json_is_str(at)) {
        return json_is_str(at) && json_str(at, arena, &said, ERR_IGNORED) < 0 ? STR_EMPTY : said;
    }
    jw_begin(&out, &text, true);
    jw_json(&out, NULL, at);
    return str_dup(arena, str_trim(strbuf_str(&text)));
}

/* An array's element is named by its own "name", else by its place. */
static struct str element_name(const struct json *item, struct arena *arena, size_t idx)
{
    struct json name;
    if (json_is_object(item) && json_find(item, "name", &name) && json_is_str(&name)) {
        return scalar_text(&name, arena);
    }
    return str_printf(arena, "%zu", idx);
}

int setting_cmp(const void *a, const void *b)
{
    const struct setting *one = a, *other = b;
    int order = str_cmp(one->node, other->node);
    return order ? order : str_cmp(one->name, other->name);
}

struct place { /* a cursor must live as long as those reached from it: they all lie in the arena */
    struct json at;
    struct str name;
};

struct setting_list { /* a VEC */
    struct setting *items;
    size_t n, n_max;
};

/* Every scalar of the document under its path; depth is bounded by the reader, the number of values by SETTINGS_MAX. */
static int flatten(struct arena *arena, const struct json *root, struct str node,
                   struct setting_list *out, struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct place *stack = arena_array(&scratch, struct place, SETTINGS_MAX);
    size_t n = 0;
    size_t n_left = SETTINGS_MAX;
    stack[n++] = (struct place){*root, STR_LIT("")};
    while (n > 0) {
        struct place *place = arena_new(&scratch, struct place);
        struct json item;
        size_t idx = 0;
        *place = stack[--n];
        bool is_array = json_is_array(&place->at);
        if (!is_array && !json_is_object(&place->at)) {
            VEC_PUSH(out, (struct setting){node, place->name, scalar_text(&place->at, arena)});
            n_left--;
            continue;
        }
        for (bool more = json_first(&place->at, &item); more; more = json_next(&item), idx++) {
            struct str key = is_array ? element_name(&item, arena, idx) : str_of(item.key);
            if (!is_array && str_eq_z(key, "name") && json_is_str(&item)) {
                continue; /* stands in the path already */
            }
            if (n + 1 >= n_left) {
                return json_fail(root, err, "expected at most %d values", SETTINGS_MAX);
            }
            stack[n++] = (struct place){
                item, place->name.len
                          ? str_printf(arena, "%.*s.%.*s", STR_ARG(place->name), STR_ARG(key))
                          : str_dup(arena, key)};
        }
    }
    return 0;
}

void run_view_sort(struct run_view *view)
{
    qsort(view->settings, view->n_settings, sizeof(view->settings[0]), setting_cmp);
}

/* A node that could never be asked has no file. */
static int load_node(struct arena *arena, const struct run_view *view, struct str node,
                     struct setting_list *out, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = arena_printf(arena, "%s/environment/%.*s.json", view->folder, STR_ARG(node));
    if (!str_eq_z(node, "local") && !fs_exists(path)) {
        return 0;
    }
    return json_read_file(path, &doc, err) < 0 ? -1 : flatten(arena, &doc.root, node, out, err);
}

int run_view_settings(struct arena *arena, struct run_view *view, struct err *err)
{
    const struct inventory *inventory = &view->frozen.inventory;
    struct setting_list all = {0};
    int rc = load_node(arena, view, STR_LIT("local"), &all, err);
    for (size_t idx = 0; rc == 0 && !inventory->is_local && idx < inventory->n_nodes; idx++) {
        rc = load_node(arena, view, inventory->nodes[idx].name, &all, err);
    }
    arena_adopt(arena, all.items);
    view->settings = all.items;
    view->n_settings = all.n;
    if (all.n > 0) {
        run_view_sort(view);
    }
    return rc;
}

/* ---- all of it ---- */

int run_view_open(struct arena *arena, struct clock_src clock, const char *state, const char *name,
                  struct run_view *ret_view, struct err *err)
{
    CLEANUP(run_view) struct run_view view = {0};
    struct derived derived;
    if (find_folder(arena, clock, state, name, &view, err) < 0 ||
        run_derive(arena, view.folder, &derived, err) < 0) {
        return -1;
    }
    view.frozen = derived.frozen; /* given away */
    if (derived.discrepancies.n_values) {
        log_line(LOG_WARN,
                 "%s: %zu values differ from what today's rules derive, which is shown; verify "
                 "lists them",
                 name, derived.discrepancies.n_values);
    }
    if (run_check(fs_exists(name) ? name : view.folder,
                  &(struct run_claim){.run_id = view.frozen.run_id}, err) < 0) {
        return err_wrap(err, "%s", name);
    }
    view.result = derived.result;
    if (run_view_settings(arena, &view, err) < 0) {
        return -1;
    }
    *ret_view = view;
    view = (struct run_view){0};
    return 0;
}

void run_view_close(struct run_view *view)
{
    frozen_release(&view->frozen);
    temp_free(view->scratch);
    *view = (struct run_view){0};
}
