/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/doctor_needs.h"

#include <fnmatch.h>

#include "store/dataset_store.h"
#include "store/image_spec.h"

struct room { /* on a node, for everything once */
    int64_t bytes;
    struct str *names; /* counted already; room for two of each case */
    size_t n;
    struct strbuf unknown; /* whose size is not stated */
};

static bool is_new(struct room *room, struct str name)
{
    for (size_t idx = 0; idx < room->n; idx++) {
        if (str_eq(room->names[idx], name)) {
            return false;
        }
    }
    room->names[room->n++] = name;
    return true;
}

static void add_bytes(struct room *room, const char *kind, struct str name, int64_t bytes)
{
    if (bytes < 0) {
        strbuf_printf(&room->unknown, "%s%s %.*s", room->unknown.len ? ", " : "", kind,
                      STR_ARG(name));
    } else {
        room->bytes += bytes;
    }
}

/* Its archives, and its tree. */
static int add_dataset(struct arena *arena, const char *root, struct str id, struct room *room,
                       struct err *err)
{
    struct dataset_here here;
    bool is_whole = true;
    size_t n = 0;
    if (!id.ptr || !is_new(room, id)) {
        return 0;
    }
    if (dataset_load(arena, &(struct dataset_which){root, NULL, str_z(arena, id), false}, &here,
                     err) < 0) {
        return -1;
    }
    if (here.dataset.is_synthetic) {
        return 0;
    }
    const struct dataset_file *files = dataset_files_of(&here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        int64_t tree = dataset_unpacked_bytes(&files[idx]);
        room->bytes += files[idx].size_bytes > 0 ? files[idx].size_bytes : 0;
        room->bytes += tree > 0 ? tree : 0;
        is_whole = is_whole && files[idx].size_bytes >= 0 && tree >= 0;
    }
    if (n == 0 || !is_whole) {
        add_bytes(room, "dataset", id, -1);
    }
    return 0;
}

/* The image that a plan takes, by the driver that the inventory states, and the CUDA that it brings. */
static int add_image(struct arena *arena, const struct doctor_opts *opts,
                     const struct report_case *c, struct wants *wants, struct room *room,
                     struct err *err)
{
    struct image_spec spec;
    struct str name = c->stack->image;
    struct str cuda = STR_EMPTY;
    if (!name.ptr) {
        return 0;
    }
    if (image_spec_for_driver(arena, opts->root, str_z(arena, name),
                              inventory_driver(opts->inventory), &spec, err) < 0) {
        return -1;
    }
    if (is_new(room, str_of(spec.name))) {
        add_bytes(room, "image", str_of(spec.name), spec.bytes);
    }
    struct want want = {
        .kind = WANT_CUDA, .text = spec.cuda, .image = str_of(spec.name), .of = c->id};
    bool is_stated = case_condition(c, "cuda", &cuda) && cuda.ptr;
    return is_stated || !spec.cuda.ptr || c->gpus == 0 ? 0 : wants_add(wants, want, err);
}

static bool is_asked(struct arena *arena, const struct doctor_opts *opts, struct str case_id)
{
    for (size_t idx = 0; idx < opts->n_globs; idx++) {
        if (fnmatch(opts->globs[idx], str_z(arena, case_id), 0) == 0) {
            return true;
        }
    }
    return opts->n_globs == 0;
}

/* The smoke profile runs cases of the bundled workload, on the CPU, on synthetic data. */
static int add_case(struct arena *arena, const struct doctor_opts *opts,
                    const struct report_case *c, struct wants *wants, struct room *room,
                    struct err *err)
{
    if (opts->profile == PROFILE_SMOKE) {
        struct want nodes = {.kind = WANT_NODES, .number = c->nodes, .of = c->id};
        return wants_add(wants, nodes, err);
    }
    return wants_of_case(arena, opts->inventory, wants, c, err) < 0 ||
                   add_dataset(arena, opts->root, c->stack->dataset, room, err) < 0 ||
                   add_image(arena, opts, c, wants, room, err) < 0
               ? -1
               : 0;
}

/* Counts the case in the group that asks for the same, or in a new one. */
static void add_to_group(struct doctor_result *result, const struct report_case *c,
                         const struct wants *wants)
{
    struct wants_groups *groups = &result->groups;
    struct wants_group *group = groups->items;
    while (group < groups->items + groups->n && !wants_eq(&group->wants, wants)) {
        group++;
    }
    if (group == groups->items + groups->n) {
        *group = (struct wants_group){.wants = *wants, .first = c->id};
        groups->n++;
    }
    group->n_cases++;
}

static int join(struct wants *wants, const struct wants *more, struct err *err)
{
    for (size_t idx = 0; idx < more->n; idx++) {
        if (wants_add(wants, more->items[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int doctor_wants(struct arena *arena, const struct doctor_opts *opts, struct wants *wants,
                 struct doctor_result *result, bool *ret_is_training, struct err *err)
{
    struct room *room = arena_new(arena, struct room);
    bool is_training = false;
    result->cases = arena_array(arena, struct str, opts->report->n_cases + 1);
    result->groups.items = arena_array(arena, struct wants_group, opts->report->n_cases + 1);
    room->names = arena_array(arena, struct str, 2 * opts->report->n_cases + 1);
    strbuf_init(&room->unknown, 1u << 16);
    for (size_t idx = 0; idx < opts->report->n_cases; idx++) {
        const struct report_case *c = &opts->report->cases[idx];
        if (!is_asked(arena, opts, c->id)) {
            continue;
        }
        struct wants *own = arena_new(arena, struct wants);
        if (add_case(arena, opts, c, own, room, err) < 0 || join(wants, own, err) < 0) {
            strbuf_release(&room->unknown);
            return -1;
        }
        add_to_group(result, c, own);
        is_training = is_training || (opts->profile == PROFILE_FULL && c->nodes > 1);
        result->cases[result->n_cases++] = c->id;
    }
    struct str missing = str_dup(arena, strbuf_str(&room->unknown));
    strbuf_release(&room->unknown);
    if (result->n_cases == 0) {
        return err_set(err, ERR_USAGE, "%.*s: no case matches", STR_ARG(opts->report->id));
    }
    *ret_is_training = is_training;
    if (room->bytes == 0 && missing.len == 0) {
        return 0;
    }
    struct want disk = {
        .kind = WANT_DISK, .number = room->bytes, .of = STR_LIT("images and data of the report")};
    if (missing.len) {
        disk.text =
            str_of(arena_printf(arena, "room for what states no size: %.*s", STR_ARG(missing)));
    }
    return wants_add(wants, disk, err);
}
