/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/derive.h"

#include "base/fs.h"
#include "base/map.h"
#include "base/temp.h"
#include "codec/json_table.h"
#include "evidence/rundir.h"
#include "evidence/seal.h"
#include "sys/tree.h"

struct contents_found {
    struct fs_names files, folders; /* below the folder */
};

struct contents {
    struct arena *arena;
    const struct frozen *frozen;
    struct map names; /* name below the folder: whether it may be missing */
};

static void expect_name(struct contents *c, enum rundir_kind kind, const char *name)
{
    bool *is_optional = arena_new(c->arena, bool);
    *is_optional = RUNDIR_FILES[kind].is_optional;
    (void)map_add(&c->names, str_of(name), is_optional); /* a format is named by many steps */
}

static void expect(struct contents *c, enum rundir_kind kind, struct rundir_of of)
{
    expect_name(c, kind, rundir_name(c->arena, kind, of));
}

static const char *path_of(const struct contents *c, const char *name)
{
    return fs_join(c->arena, c->frozen->folder, name);
}

static int wrong(const char *name, const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "%s: %s", name, what);
}

/* ---- what a run freezes ---- */

/* One of each job's node; the local node has no name. */
static void expect_of_nodes(struct contents *c, enum rundir_kind kind, struct rundir_of of)
{
    const struct inventory *inventory = &c->frozen->inventory;
    for (size_t idx = 0; !inventory->is_local && idx < inventory->n_nodes; idx++) {
        of.name = inventory->nodes[idx].name;
        expect(c, kind, of);
    }
}

static void expect_frozen(struct contents *c)
{
    const struct frozen *frozen = c->frozen;
    for (size_t kind = 0; kind < RUNDIR_FILES_N; kind++) {
        if (!strchr(RUNDIR_FILES[kind].name, '%')) {
            expect_name(c, kind, RUNDIR_FILES[kind].name);
        }
    }
    for (size_t idx = 0; idx < frozen->plan.n_steps; idx++) {
        const struct plan_step *step = &frozen->plan.steps[idx];
        if (step->format.ptr) {
            expect(c, RUNDIR_FORMAT, (struct rundir_of){.name = step->format});
        }
        /* Without one its log was read by what fits of all that were there. */
        for (size_t at = 0; !step->format.ptr && step->cause == ERR_NONE && at < frozen->formats.n;
             at++) {
            expect(c, RUNDIR_FORMAT, (struct rundir_of){.name = frozen->formats.items[at]->id});
        }
    }
    expect_of_nodes(c, RUNDIR_NODE, (struct rundir_of){0});
}

/* The files that a container of the run saw, by the digest that the plan has of them. */
static int expect_overlay(struct contents *c, const struct plan_mount *mount, struct err *err)
{
    const char *name = rundir_of_name(c->arena, RUNDIR_OVERLAY, mount->name);
    struct tree_list list;
    struct str version;
    if (tree_hash_folder(c->arena, path_of(c, name), &list, &version, err) < 0) {
        return -1;
    }
    if (!str_eq(version, mount->version)) {
        return wrong(name, "not the files that were planned with", err);
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        expect_name(c, RUNDIR_OVERLAY, fs_join(c->arena, name, list.files[idx].path));
    }
    return 0;
}

static int expect_overlays(struct contents *c, struct err *err)
{
    CLEANUP(map) struct map seen = {0};
    for (size_t idx = 0; idx < c->frozen->plan.n_steps; idx++) {
        const struct plan_step *step = &c->frozen->plan.steps[idx];
        for (size_t at = 0; at < step->n_mounts && step->cause == ERR_NONE; at++) {
            struct plan_mount *mount = &step->mounts[at];
            if (mount->kind == MOUNT_OVERLAY && map_add(&seen, mount->name, mount) &&
                expect_overlay(c, mount, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* ---- what a repeat leaves ---- */

/* The commands on the nodes must be those of the attempt that counts. */
static int expect_commands(struct contents *c, struct rundir_of of, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *name = rundir_name(c->arena, RUNDIR_COMMANDS, of);
    struct commands_record said = {0};
    if (c->frozen->inventory.is_local) {
        return 0;
    }
    expect_name(c, RUNDIR_COMMANDS, name);
    if (json_read_file(path_of(c, name), &doc, err) < 0 ||
        json_decode(&doc.root, c->arena, COMMANDS_ROWS, COMMANDS_N, &said, err) < 0) {
        return -1;
    }
    return str_eq(said.case_id, of.case_id) && said.repeat == of.repeat &&
                   said.attempt == of.attempt
               ? 0
               : wrong(name, "not of the attempt that counts", err);
}

static int expect_repeat(struct contents *c, const struct repeat_result *repeat, struct err *err)
{
    const struct outcome_record *outcome = &repeat->outcome;
    struct rundir_of of = {.case_id = outcome->case_id, .repeat = repeat->repeat, .attempt = 1};
    for (; of.attempt < outcome->attempt; of.attempt++) {
        expect(c, RUNDIR_LOST, of);
        expect(c, RUNDIR_LOST_OUTCOME, of);
        expect_of_nodes(c, RUNDIR_LOST_NODE, of);
    }
    expect(c, RUNDIR_OUTCOME, of);
    expect(c, RUNDIR_SERIES, of);
    expect(c, RUNDIR_LOG, of);
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        expect_name(c, RUNDIR_NODE_LOG, outcome->nodes[idx].log.ptr);
        if (outcome->nodes[idx].monitor.ptr) {
            expect_name(c, RUNDIR_MONITOR, outcome->nodes[idx].monitor.ptr);
        }
    }
    return expect_commands(c, of, err);
}

static int expect_repeats(struct contents *c, const struct run_result *result, struct err *err)
{
    for (size_t cell = 0; cell < result->n_cells; cell++) {
        for (size_t idx = 0; idx < result->cells[cell].n_repeats; idx++) {
            if (expect_repeat(c, &result->cells[cell].repeats[idx], err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* ---- what is there ---- */

/* Before anything is read: files only, neither links nor devices. ERR_INTEGRITY. */
static int contents_regular(struct arena *arena, const char *folder,
                            struct contents_found *ret_found, struct err *err)
{
    struct fs_names others;
    if (fs_walk_all(arena, folder, &ret_found->files, &ret_found->folders, &others, err) < 0) {
        return -1;
    }
    return others.n ? wrong(fs_join(arena, folder, others.items[0]), "expected a regular file", err)
                    : 0;
}

static void note_way(const struct contents *c, const char *name, struct map *ways)
{
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        struct str way = {name, (size_t)(slash - name)};
        (void)map_add(ways, way, c->arena);
    }
}

static int check_file(const struct contents *c, const char *name, struct map *known,
                      struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (!map_get(&c->names, str_of(name))) {
        return seal_makes(temp_of(str_of(name)))
                   ? 0
                   : wrong(name, "added: no run leaves such a file", err);
    }
    (void)map_add(known, str_of(name), c->arena);
    return str_starts(str_of(name), STR_LIT("environment/"))
               ? json_read_file(path_of(c, name), &doc, err)
               : 0;
}

/* known: both files and the folders on the way to them. */
static int check_there(const struct contents *c, const struct contents_found *found,
                       struct map *known, struct err *err)
{
    const struct fs_names *files = &found->files, *folders = &found->folders;
    for (size_t idx = 0; idx < files->n; idx++) {
        note_way(c, files->items[idx], known);
        if (check_file(c, files->items[idx], known, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < folders->n; idx++) {
        if (!map_get(known, str_of(folders->items[idx]))) {
            return wrong(folders->items[idx], "added: a folder without a file", err);
        }
    }
    for (size_t idx = 0; idx < c->names.n; idx++) {
        const struct map_entry *at = &c->names.entries[idx];
        const bool *is_optional = at->value;
        if (!*is_optional && !map_get(known, at->key)) {
            return wrong(at->key.ptr, "missing", err);
        }
    }
    return 0;
}

/* found: by contents_regular; the rest is what frozen_load and result_derive gave of the same folder. What sealing adds is
   optional; its bytes, and those of result.json and series/, are checked elsewhere. Parses what nothing else does:
   environment/, logs/commands/. ERR_INTEGRITY naming the first file that is too much, missing or not what a run writes. */
static int contents_check(struct arena *arena, const struct contents_found *found,
                          const struct frozen *frozen, const struct run_result *result,
                          struct err *err)
{
    struct contents c = {.arena = arena, .frozen = frozen};
    CLEANUP(map) struct map known = {0};
    expect_frozen(&c);
    int rc = expect_overlays(&c, err) < 0 || expect_repeats(&c, result, err) < 0
                 ? -1
                 : check_there(&c, found, &known, err);
    map_release(&c.names);
    return rc;
}

#define DERIVED_MAX (1u << 30)
#define FORMER_KIND "manifest/nodes-bench.json" /* of programs before November 2026 */

struct comparison {
    struct arena *arena;
    const char *folder;
    struct discrepancies *discrepancies;
    size_t n;
};

static int compare(void *ctx, const char *name, struct str text, struct err *err)
{
    struct comparison *comparison = ctx;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str kept;
    comparison->n++;
    return fs_read(&arena, fs_join(&arena, comparison->folder, name), DERIVED_MAX, &kept, err) < 0
               ? -1
               : discrepancies_find(comparison->arena, name, kept, text, comparison->discrepancies,
                                    err);
}

static int derive(struct arena *arena, const char *folder, struct derived *derived, struct err *err)
{
    struct comparison comparison = {arena, folder, &derived->discrepancies, 0};
    struct contents_found found = {0};
    if (contents_regular(arena, folder, &found, err) < 0 ||
        frozen_load(arena, folder, &derived->frozen, err) < 0 ||
        frozen_check(arena, &derived->frozen, &derived->discrepancies, err) < 0 ||
        result_derive(arena, &derived->frozen, (struct derived_to){compare, &comparison},
                      &derived->result, err) < 0 ||
        contents_check(arena, &found, &derived->frozen, &derived->result, err) < 0) {
        return -1;
    }
    derived->n_logs = comparison.n - 1;
    return 0;
}

int derive_folder(struct arena *arena, const char *folder, struct derived *ret_derived,
                  struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (fs_exists(fs_join(arena, folder, FORMER_KIND))) {
        return err_set(err, ERR_USAGE,
                       "evidence of kind %s, which is no run and is no longer derived; "
                       "verify --bytes-only checks its bytes",
                       FORMER_KIND);
    }
    if (derive(arena, folder, &derived, err) < 0) {
        if (err->code == ERR_NOT_FOUND || err->code == ERR_MANIFEST) {
            /* A part of the evidence is missing, or is not what a run writes. */
            err->code = ERR_INTEGRITY;
        }
        return -1;
    }
    *ret_derived = derived;
    derived = (struct derived){0};
    return 0;
}
