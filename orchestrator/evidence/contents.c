/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/contents.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/map.h"
#include "codec/json_table.h"
#include "codec/ustar.h"
#include "evidence/evidence.h"
#include "evidence/rundir.h"
#include "evidence/seal.h"
#include "sys/tree.h"

enum presence { PRESENT_MAYBE, PRESENT_ALWAYS };

struct contents {
    struct arena *arena;
    const struct frozen *frozen;
    struct map names; /* name below the folder: an enum presence */
};

static void expect(struct contents *c, const char *name, enum presence presence)
{
    enum presence *value = arena_new(c->arena, enum presence);
    *value = presence;
    (void)map_add(&c->names, str_of(name), value); /* a format is named by many steps */
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

static void expect_format(struct contents *c, struct str id)
{
    expect(c, arena_printf(c->arena, "manifest/formats/%.*s.json", STR_ARG(id)), PRESENT_ALWAYS);
}

static void expect_frozen(struct contents *c)
{
    static const char *const MAYBE[] = {"manifest/inventory.json",
                                        "manifest/vocabulary.json",
                                        EVIDENCE_CRATE,
                                        USTAR_SUMS,
                                        USTAR_PROVENANCE,
                                        USTAR_STATEMENT};
    static const char *const ALWAYS[] = {"manifest/report.json", "manifest/plan.json",
                                         "lock/lock.json", "environment/local.json",
                                         EVIDENCE_RESULT};
    const struct frozen *frozen = c->frozen;
    for (size_t idx = 0; idx < ARRAY_LEN(MAYBE); idx++) {
        expect(c, MAYBE[idx], PRESENT_MAYBE);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(ALWAYS); idx++) {
        expect(c, ALWAYS[idx], PRESENT_ALWAYS);
    }
    for (size_t idx = 0; idx < frozen->plan.n_steps; idx++) {
        const struct plan_step *step = &frozen->plan.steps[idx];
        if (step->format.ptr) {
            expect_format(c, step->format);
        }
        /* Without one its log was read by what fits of all that were there. */
        for (size_t at = 0; !step->format.ptr && step->cause == ERR_NONE && at < frozen->formats.n;
             at++) {
            expect_format(c, format_id(frozen->formats.items[at]));
        }
    }
    /* There is none for a node that could never be asked. */
    for (size_t idx = 0; !frozen->inventory.is_local && idx < frozen->inventory.n_nodes; idx++) {
        expect(c,
               arena_printf(c->arena, "environment/%.*s.json",
                            STR_ARG(frozen->inventory.nodes[idx].name)),
               PRESENT_MAYBE);
    }
}

/* The files that a container of the run saw, by the digest that the plan has of them. */
static int expect_overlay(struct contents *c, const struct plan_mount *mount, struct err *err)
{
    const char *name = rundir_overlay_name(c->arena, mount->name);
    struct tree_list list;
    struct str version;
    if (tree_hash_folder(c->arena, path_of(c, name), &list, &version, err) < 0) {
        return -1;
    }
    if (!str_eq(version, mount->version)) {
        return wrong(name, "not the files that were planned with", err);
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        expect(c, fs_join(c->arena, name, list.files[idx].path), PRESENT_ALWAYS);
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

static void expect_lost(struct contents *c, const struct repeat_result *repeat, int64_t attempt)
{
    const struct inventory *inventory = &c->frozen->inventory;
    struct str case_id = repeat->outcome.case_id;
    expect(c, rundir_lost_log_name(c->arena, case_id, repeat->repeat, attempt, STR_EMPTY),
           PRESENT_MAYBE);
    for (size_t idx = 0; !inventory->is_local && idx < inventory->n_nodes; idx++) {
        expect(c,
               rundir_lost_log_name(c->arena, case_id, repeat->repeat, attempt,
                                    inventory->nodes[idx].name),
               PRESENT_MAYBE);
    }
}

/* The commands on the nodes must be those of the attempt that counts. */
static int expect_commands(struct contents *c, const struct repeat_result *repeat, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const struct outcome_record *outcome = &repeat->outcome;
    const char *name = rundir_commands_name(c->arena, outcome->case_id, repeat->repeat);
    struct outcome_record said = {0};
    static const struct json_field FIELDS[] = {
        ROW_ANY("schema_version", JSON_REQUIRED),
        ROW("case", struct outcome_record, case_id, JSON_REQUIRED),
        ROW("repeat", struct outcome_record, repeat, JSON_REQUIRED, .min = 1, .max = INT32_MAX),
        ROW("attempt", struct outcome_record, attempt, JSON_REQUIRED, .min = 1, .max = INT32_MAX),
        ROW_ANY("jobs", JSON_REQUIRED),
    };
    struct json root;
    if (c->frozen->inventory.is_local) {
        return 0;
    }
    expect(c, name, PRESENT_ALWAYS);
    if (json_read_file(path_of(c, name), &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (json_decode(&root, c->arena, FIELDS, ARRAY_LEN(FIELDS), &said, err) < 0) {
        return -1;
    }
    return str_eq(said.case_id, outcome->case_id) && said.repeat == repeat->repeat &&
                   said.attempt == outcome->attempt
               ? 0
               : wrong(name, "not of the attempt that counts", err);
}

/* Byte for byte as it was written, and nothing else. */
static int check_outcome_text(const struct contents *c, const struct repeat_result *repeat,
                              struct err *err)
{
    CLEANUP(strbuf) struct strbuf wanted = {0};
    const char *name =
        rundir_outcome_name(c->arena, repeat->outcome.case_id, repeat->outcome.repeat);
    struct str found;
    strbuf_init(&wanted, JSON_TEXT_MAX);
    outcome_encode(&repeat->outcome, &wanted);
    return fs_read(c->arena, path_of(c, name), JSON_TEXT_MAX, &found, err) < 0
               ? -1
               : evidence_same_text(found, strbuf_str(&wanted), name, err);
}

static int expect_repeat(struct contents *c, const struct repeat_result *repeat, struct err *err)
{
    const struct outcome_record *outcome = &repeat->outcome;
    struct str case_id = outcome->case_id;
    expect(c, rundir_outcome_name(c->arena, case_id, repeat->repeat), PRESENT_ALWAYS);
    expect(c, rundir_series_name(c->arena, case_id, repeat->repeat), PRESENT_ALWAYS);
    expect(c, rundir_log_name(c->arena, case_id, repeat->repeat), PRESENT_ALWAYS);
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        expect(c, outcome->nodes[idx].log.ptr, PRESENT_ALWAYS);
        if (outcome->nodes[idx].monitor.ptr) {
            expect(c, outcome->nodes[idx].monitor.ptr, PRESENT_ALWAYS);
        }
    }
    for (int64_t attempt = 1; attempt < outcome->attempt; attempt++) {
        expect_lost(c, repeat, attempt);
    }
    return check_outcome_text(c, repeat, err) < 0 ? -1 : expect_commands(c, repeat, err);
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

int contents_regular(struct arena *arena, const char *folder, struct contents_found *ret_found,
                     struct err *err)
{
    struct contents_found found;
    struct fs_names others;
    struct stat info;
    if (fs_walk_all(arena, folder, &found.files, &found.folders, &others, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < found.files.n; idx++) {
        const char *path = fs_join(arena, folder, found.files.items[idx]);
        if (lstat(path, &info) < 0) {
            return err_set(err, err_code_of_errno(errno), "stat %s: %s", path,
                           err_errno_text(errno));
        }
        if (!S_ISREG(info.st_mode)) {
            return wrong(path, "expected a regular file", err);
        }
    }
    *ret_found = found;
    return 0;
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
    bool is_half;
    if (!map_get(&c->names, str_of(name))) {
        return seal_makes(str_of(name), &is_half) && is_half
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
        if (*(const enum presence *)at->value == PRESENT_ALWAYS && !map_get(known, at->key)) {
            return wrong(at->key.ptr, "missing", err);
        }
    }
    return 0;
}

static int expect_all(struct contents *c, const struct run_result *result, struct err *err)
{
    expect_frozen(c);
    return expect_overlays(c, err) < 0 ? -1 : expect_repeats(c, result, err);
}

int contents_check(struct arena *arena, const struct contents_found *found,
                   const struct frozen *frozen, const struct run_result *result, struct err *err)
{
    struct contents c = {.arena = arena, .frozen = frozen};
    CLEANUP(map) struct map known = {0};
    int rc = expect_all(&c, result, err) < 0 ? -1 : check_there(&c, found, &known, err);
    map_release(&c.names);
    return rc;
}
