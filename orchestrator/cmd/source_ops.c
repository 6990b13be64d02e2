/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"

#include "codec/json_table.h"
#include "report/source.h"
#include "store/lock_file.h"
#include "store/source_store.h"

struct pinned { /* what a name stands for, once its lock is read */
    struct source_name name;
    const char *id;
    const char *commit; /* NULL: a branch or tag that no lock has pinned */
    const char *text;   /* commit and paths; NULL where commit is */
    struct lock lock;   /* its id is NULL where there is none */
};

static void set_commit(struct arena *arena, struct pinned *pin, const char *commit)
{
    pin->commit = commit;
    pin->text =
        commit && pin->name.paths ? arena_printf(arena, "%s:%s", commit, pin->name.paths) : commit;
}

static int find_pin(struct artifact_job *job, const struct artifact *artifact,
                    struct pinned *ret_pin, struct err *err)
{
    struct pinned pin = {.id = str_z(job->arena, artifact->name)};
    const char *locks = lock_folder(job->arena, job->ctx->root, job->locks, LOCK_SOURCE, pin.id);
    if (source_parse_name(job->arena, artifact->name, &pin.name, err) < 0 ||
        lock_read(job->arena, locks, LOCK_SOURCE, pin.id, &pin.lock, err) < 0) {
        return -1;
    }
    const char *commit = pin.name.commit;
    if (pin.lock.id.ptr) {
        const struct lock_item *top = lock_find(&pin.lock, STR_LIT("."));
        if (!top || !source_is_commit(top->commit)) {
            return err_set(err, ERR_MANIFEST, "the lock of %s names no commit", pin.id);
        }
        if (commit && !str_eq_z(top->commit, commit)) {
            return err_set(err, ERR_INTEGRITY, "the lock of %s has commit %.*s", pin.id,
                           STR_ARG(top->commit));
        }
        commit = str_z(job->arena, top->commit);
    }
    set_commit(job->arena, &pin, commit);
    *ret_pin = pin;
    return 0;
}

/* Its commit is known. sources: to be used. */
static int open_pin(struct artifact_job *job, const struct artifact *artifact, struct pinned *pin,
                    struct sources *sources, struct err *err)
{
    if (find_pin(job, artifact, pin, err) < 0) {
        return -1;
    }
    return !pin->commit ? err_set(err, ERR_MANIFEST,
                                  "%s is a branch or tag, which may move: reperf data lock "
                                  "source:%s records the commit that it is at",
                                  pin->id, pin->id)
                        : sources_init(sources, job->arena, job->store, job->net_opts, err);
}

struct shown_tree {
    const struct source_part *top, *submodules;
    size_t n_submodules, n_new;
    bool is_locked;
};
#define PART_ROWS                                                                                  \
    ROW("url", struct source_part, url, JSON_NULLABLE),                                            \
        ROW("commit", struct source_part, commit, 0),                                              \
        ROW("tree", struct source_part, tree, JSON_NULLABLE)
static const struct json_field TOP_ROWS[] = {PART_ROWS};
static const struct json_field SUBMODULE_ROWS[] = {ROW("path", struct source_part, path, 0),
                                                   PART_ROWS};
static const struct json_field TREE_ROWS[] = {
    ROW_THERE(struct shown_tree, top, TOP_ROWS),
    ROW_LIST("submodules", struct shown_tree, submodules, n_submodules, SUBMODULE_ROWS, 0),
    ROW("fetched", struct shown_tree, n_new, 0),
    ROW("locked", struct shown_tree, is_locked, 0),
};

/* is_new: of its lock; NULL: nothing is locked. */
static void put_tree(struct json_out *out, const struct source_tree *tree, bool is_locked,
                     const bool *is_new)
{
    const struct source_part *top = &tree->parts[0];
    struct shown_tree shown = {top, top + 1, tree->n - 1, 0, is_locked};
    for (size_t idx = 0; idx < tree->n; idx++) {
        shown.n_new += tree->parts[idx].is_new;
    }
    json_encode(out, TREE_ROWS, ARRAY_LEN(TREE_ROWS), &shown);
    if (top->paths) { /* what it is, and how much is left out */
        struct str rest = str_of(top->paths), path;
        jw_object(out, "selection");
        jw_array(out, "paths");
        while (str_next(&rest, ',', &path)) {
            jw_str(out, NULL, path);
        }
        jw_end_array(out);
        jw_z(out, "tree", top->selection);
        jw_i64(out, "files", (int64_t)top->n_files);
        jw_i64(out, "left_out", (int64_t)(top->n_all - top->n_files));
        jw_end_object(out);
    }
    if (is_new) {
        jw_bool(out, "new", *is_new);
    }
}

/* Against the lock, where there is one. */
static int check_lock(struct artifact_job *job, const struct pinned *pin,
                      const struct source_tree *tree, struct err *err)
{
    struct lock found;
    if (!pin->lock.id.ptr) {
        return 0;
    }
    source_lock_of(job->arena, tree, pin->id, pin->name.ref, NULL, &found);
    return lock_check(&pin->lock, &found, err);
}

static int op_fetch(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                    struct err *err)
{
    struct sources sources;
    struct source_tree tree;
    struct pinned pin;
    if (open_pin(job, artifact, &pin, &sources, err) < 0 ||
        source_fetch(&sources, pin.name.url, pin.text, &tree, err) < 0 ||
        check_lock(job, &pin, &tree, err) < 0) {
        return -1;
    }
    put_tree(out, &tree, pin.lock.id.ptr, NULL);
    return 0;
}

/* A commit's size is unknown before git fetches it. */
static void put_foreseen(struct json_out *out, const struct pinned *pin, bool is_there)
{
    jw_z(out, "url", pin->name.url);
    jw_z(out, "commit", pin->commit);
    jw_bool(out, "there", is_there);
    jw_null(out, "bytes");
}

static int op_foresee(struct artifact_job *job, const struct artifact *artifact,
                      struct json_out *out, struct err *err)
{
    struct sources sources;
    struct source_tree tree;
    struct pinned pin;
    if (open_pin(job, artifact, &pin, &sources, err) < 0) {
        return -1;
    }
    put_foreseen(out, &pin,
                 source_verify(&sources, pin.name.url, pin.text, false, &tree, ERR_IGNORED) == 0);
    return 0;
}

static int op_verify(struct artifact_job *job, const struct artifact *artifact,
                     struct json_out *out, struct err *err)
{
    struct sources sources;
    struct source_tree tree;
    struct pinned pin;
    if (open_pin(job, artifact, &pin, &sources, err) < 0 ||
        source_verify(&sources, pin.name.url, pin.text, job->depth != DEPTH_QUICK, &tree, err) <
            0 ||
        check_lock(job, &pin, &tree, err) < 0) {
        return -1;
    }
    put_tree(out, &tree, pin.lock.id.ptr, NULL);
    return 0;
}

static int op_lock(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                   struct err *err)
{
    struct sources sources;
    struct source_tree tree;
    struct pinned pin;
    struct lock lock;
    bool is_new;
    if (find_pin(job, artifact, &pin, err) < 0 ||
        sources_init(&sources, job->arena, job->store, job->net_opts, err) < 0) {
        return -1;
    }
    /* A branch is resolved again although it is locked: lock reports whether it has moved. */
    if (pin.name.ref &&
        source_resolve(&sources, pin.name.url, pin.name.ref, &pin.commit, err) < 0) {
        return -1;
    }
    set_commit(job->arena, &pin, pin.commit);
    if (source_fetch(&sources, pin.name.url, pin.text, &tree, err) < 0) {
        return -1;
    }
    source_lock_of(job->arena, &tree, pin.id, pin.name.ref,
                   clock_text(job->arena, job->ctx->clock).ptr, &lock);
    if (lock_settle(job->arena,
                    lock_folder(job->arena, job->ctx->root, job->locks, LOCK_SOURCE, pin.id), &lock,
                    &is_new, err) < 0) {
        return -1;
    }
    put_tree(out, &tree, true, &is_new);
    return 0;
}

const artifact_fn SOURCE_OPS[VERBS_N] = {[VERB_FETCH] = op_fetch,
                                         [VERB_VERIFY] = op_verify,
                                         [VERB_LOCK] = op_lock,
                                         [VERB_FORESEE] = op_foresee};
