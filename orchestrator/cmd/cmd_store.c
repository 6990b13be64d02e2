/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the store as a whole: `data ls, gc, add, drop`, and `data verify` without a name. Each verb fills a document, from
   which its text comes, too. */
#include "base/base.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/temp.h"
#include "cmd/artifact_ops.h"
#include "codec/document_text.h"
#include "codec/json_document.h"
#include "codec/json_table.h"
#include "evidence/rundir.h"
#include "store/store_gc.h"
#include "store/store_verify.h"
#include "sys/digest_cache.h"
#include "sys/pool.h"

#define GRACE_S_MAX   (3650 * INT64_C(86400))
#define FILE_KIND     "file" /* references of files that the user added */
#define REF_BYTES_MAX 8192

struct args {
    bool want_json;
    bool is_dry_run; /* gc */
    bool is_quick;   /* verify */
    int64_t grace_s; /* gc; -1: the defaults */
};

struct store_cmd { /* one call */
    const struct cmd_ctx *ctx;
    const struct args *args;
    struct arena *arena;
    struct store *store;
    const char *const *operands; /* after the verb */
    size_t n_operands;
    struct json_out *out; /* in the top object */
};

/* ---- ls ---- */

struct listed {
    const char *kind, *name, *since;
    uint64_t n_blobs, n_missing, size_bytes;
};

struct blob_extent {
    uint64_t n, bytes;
};

struct store_listing {
    struct store_cmd *cmd;
    VEC(struct listed) refs;
    struct blob_extent kept,
        of[STORE_GC_KINDS]; /* what a gc without grace periods would drop, by kind */
    uint64_t n_busy;
};

static const struct json_field LISTED_ROWS[] = {
    ROW("kind", struct listed, kind, 0),
    ROW("name", struct listed, name, 0),
    ROW("blobs", struct listed, n_blobs, 0),
    ROW("missing", struct listed, n_missing, 0),
    ROW("size_bytes", struct listed, size_bytes, 0),
    ROW("since", struct listed, since, 0),
};
static const struct json_field EXTENT_ROWS[] = {
    ROW("blobs", struct blob_extent, n, 0),
    ROW("size_bytes", struct blob_extent, bytes, 0),
};
static const struct json_field PARTIAL_ROWS[] = {
    ROW("idle", struct store_listing, of[GC_PARTIAL].n, 0),
    ROW("busy", struct store_listing, n_busy, 0),
    ROW("size_bytes", struct store_listing, of[GC_PARTIAL].bytes, 0),
};
static const struct json_field LISTING_ROWS[] = {
    ROW_LIST("references", struct store_listing, refs.items, refs.n, LISTED_ROWS, 0),
    ROW_OBJECT("referenced", struct store_listing, kept, EXTENT_ROWS, 0),
    ROW_OBJECT("unreferenced", struct store_listing, of[GC_BLOB], EXTENT_ROWS, 0),
    ROW_INSIDE("partial", PARTIAL_ROWS, 0),
    ROW("quarantined", struct store_listing, of[GC_QUARANTINE].n, 0),
};

static int list_ref(void *ctx, const struct store_ref *ref, struct err *err)
{
    struct store_listing *listing = ctx;
    struct arena *arena = listing->cmd->arena;
    const struct store *store = listing->cmd->store;
    struct listed item = {.kind = arena_printf(arena, "%s", ref->kind),
                          .name = arena_printf(arena, "%s", ref->name),
                          .n_blobs = ref->n_blobs};
    char time[RFC3339_MAX];
    char *component;
    struct stat info;
    if (store_escape(arena, ref->name, &component, err) < 0) {
        return -1;
    }
    const char *path =
        store_path(store, arena_printf(arena, "refs/%s/%s.json", ref->kind, component));
    if (stat(path, &info) < 0) {
        return err_set(err, ERR_IO, "stat %s: it is gone", path);
    }
    int64_t since_ns = (int64_t)info.st_mtim.tv_sec * NS_PER_S + info.st_mtim.tv_nsec;
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        uint64_t size_bytes = 0;
        item.n_missing += !store_has(store, ref->blobs[idx], &size_bytes);
        item.size_bytes += size_bytes;
    }
    clock_rfc3339(since_ns, time);
    item.since = arena_printf(arena, "%s", time);
    VEC_PUSH(&listing->refs, item);
    return 0;
}

static int sum_up(struct store_listing *listing, struct err *err)
{
    struct store_cmd *cmd = listing->cmd;
    const struct store_gc_opts opts = {.is_dry_run = true,
                                       .now_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx)};
    struct store_gc_result result;
    if (store_gc(cmd->arena, cmd->store, &opts, &result, err) < 0) {
        return -1;
    }
    listing->kept = (struct blob_extent){result.n_kept, result.kept_bytes};
    listing->n_busy = result.n_busy;
    for (size_t idx = 0; idx < result.n; idx++) {
        listing->of[result.items[idx].kind].n++;
        listing->of[result.items[idx].kind].bytes += result.items[idx].size_bytes;
    }
    return 0;
}

static int store_ls(struct store_cmd *cmd, struct err *err)
{
    struct store_listing listing = {.cmd = cmd};
    int result = store_each_ref(cmd->store, list_ref, &listing, err);
    result = result < 0 ? -1 : sum_up(&listing, err);
    if (result == 0) {
        json_encode(cmd->out, LISTING_ROWS, ARRAY_LEN(LISTING_ROWS), &listing);
    }
    VEC_RELEASE(&listing.refs);
    return result;
}

/* ---- drop ---- */

/* The reference that NAME or KIND/NAME is; they are listed and not read, so that a damaged one can be dropped. */
static int find_ref(struct store_cmd *cmd, const char *wanted, struct store_ref *ret_ref,
                    struct err *err)
{
    struct fs_names kinds, names;
    *ret_ref = (struct store_ref){.kind = NULL};
    if (store_ref_kinds(cmd->store, &kinds, err) < 0) {
        return -1;
    }
    for (size_t kind = 0; kind < kinds.n; kind++) {
        if (store_ref_list(cmd->store, kinds.items[kind], &names, err) < 0) {
            return -1;
        }
        for (size_t idx = 0; idx < names.n; idx++) {
            const struct store_ref ref = {.kind = kinds.items[kind], .name = names.items[idx]};
            if (strcmp(wanted, ref.name) != 0 &&
                strcmp(wanted, fs_join(cmd->arena, ref.kind, ref.name)) != 0) {
                continue;
            }
            if (ret_ref->kind) {
                return err_set(err, ERR_USAGE,
                               "%.200s: %s and %s have a reference of that name: KIND/NAME", wanted,
                               ret_ref->kind, ref.kind);
            }
            *ret_ref = ref;
        }
    }
    return ret_ref->kind ? 0
                         : err_set(err, ERR_NOT_FOUND,
                                   "%.200s: no such reference; reperf data ls lists them", wanted);
}

static int store_drop(struct store_cmd *cmd, struct err *err)
{
    static const struct json_field ROWS[] = {ROW("kind", struct store_ref, kind, 0),
                                             ROW("name", struct store_ref, name, 0)};
    struct store_ref ref;
    if (find_ref(cmd, cmd->operands[0], &ref, err) < 0 ||
        store_ref_drop(cmd->store, ref.kind, ref.name, err) < 0) {
        return -1;
    }
    json_encode(cmd->out, ROWS, ARRAY_LEN(ROWS), &ref);
    return 0;
}

/* ---- add ---- */

struct added {
    const char *file, *kind, *name, *md5, *sha256, *path;
    const char *const *blobs; /* of the reference */
    int64_t size_bytes;
};
static const struct json_field ADDED_ROWS[] = {
    ROW("file", struct added, file, 0), ROW("kind", struct added, kind, 0),
    ROW("name", struct added, name, 0), ROW("size_bytes", struct added, size_bytes, 0),
    ROW("md5", struct added, md5, 0),   ROW("sha256", struct added, sha256, 0),
    ROW("path", struct added, path, 0),
};
static const struct json_field REFERENCE_ROWS[] = {
    ROW("file", struct added, name, 0),   ROW("size_bytes", struct added, size_bytes, 0),
    ROW("md5", struct added, md5, 0),     ROW("sha256", struct added, sha256, 0),
    ROW("blobs", struct added, blobs, 0),
};

/* NAME, or NAME@ and the digest's beginning where another file has that name already. */
static int refer(struct store_cmd *cmd, struct added *added, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(REF_BYTES_MAX);
    const char *blobs[] = {arena_printf(cmd->arena, "sha256:%s", added->sha256), NULL};
    struct str known;
    added->blobs = blobs;
    json_encode_document(&buf, REFERENCE_ROWS, ARRAY_LEN(REFERENCE_ROWS), added);
    if (store_ref_get(cmd->store, FILE_KIND, added->name, &known, ERR_IGNORED) == 0 &&
        str_find(known, str_of(blobs[0])) < 0) {
        added->name = arena_printf(cmd->arena, "%s@%.12s", added->name, added->sha256);
    }
    added->blobs = NULL;
    return store_ref_put(cmd->store, FILE_KIND, added->name, strbuf_str(&buf), err);
}

static int add_one(struct store_cmd *cmd, const char *path, struct err *err)
{
    struct progress progress;
    struct store_hooks hooks = {progress_show, &progress};
    struct digest_value value;
    progress_start(&progress, cmd->ctx->clock, "add", "bytes", 0);
    int result = store_add_file(cmd->store, path, &hooks, &value, err);
    progress_end(&progress);
    if (result < 0) {
        return -1;
    }
    struct added added = {.file = path,
                          .kind = FILE_KIND,
                          .name = basename(path),
                          .md5 = hex_dup(cmd->arena, value.md5, MD5_BYTES).ptr,
                          .sha256 = hex_dup(cmd->arena, value.sha256, SHA256_BYTES).ptr,
                          .path = store_blob_path(cmd->store, value.sha256),
                          .size_bytes = (int64_t)value.size_bytes};
    if (refer(cmd, &added, err) < 0) {
        return -1;
    }
    json_encode_object(cmd->out, NULL, ADDED_ROWS, ARRAY_LEN(ADDED_ROWS), &added);
    return 0;
}

static int store_add(struct store_cmd *cmd, struct err *err)
{
    jw_array(cmd->out, "files");
    for (size_t idx = 0; idx < cmd->n_operands; idx++) {
        if (add_one(cmd, cmd->operands[idx], err) < 0) {
            return -1;
        }
    }
    jw_end_array(cmd->out);
    return 0;
}

/* ---- gc ---- */

struct dropped {
    const struct store_gc_result *result;
    bool is_dry_run;
};
static const struct json_field DROPPED_ITEM_ROWS[] = {
    ROW_WORD("kind", struct store_gc_item, kind, STORE_GC_KIND_NAMES, 0),
    ROW("name", struct store_gc_item, name, 0),
    ROW("size_bytes", struct store_gc_item, size_bytes, 0),
};
static const struct json_field GC_ROWS[] = {
    ROW_LIST("dropped", struct store_gc_result, items, n, DROPPED_ITEM_ROWS, 0),
    ROW("size_bytes", struct store_gc_result, bytes, 0),
    ROW("kept", struct store_gc_result, n_kept, 0),
    ROW("young", struct store_gc_result, n_young, 0),
    ROW("busy", struct store_gc_result, n_busy, 0),
};
static const struct json_field DROPPED_ROWS[] = {
    ROW("dry_run", struct dropped, is_dry_run, 0),
    ROW_THERE(struct dropped, result, GC_ROWS),
};

static int store_gc_now(struct store_cmd *cmd, struct err *err)
{
    int64_t grace_s = cmd->args->grace_s;
    const struct store_gc_opts opts = {
        .is_dry_run = cmd->args->is_dry_run,
        .now_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx),
        .grace_s = grace_s >= 0 ? grace_s : STORE_GRACE_S,
        .partial_grace_s = grace_s >= 0 ? grace_s : STORE_PARTIAL_GRACE_S,
    };
    struct store_gc_result result;
    const struct dropped dropped = {&result, opts.is_dry_run};
    struct fs_names runs = {0};
    if (rundir_list(cmd->arena, cmd->ctx->state, &runs, err) < 0) {
        return -1;
    }
    temp_sweep_root(TEMP_STATE, cmd->ctx->state);
    for (size_t idx = 0; idx < runs.n; idx++) {
        temp_sweep(arena_printf(cmd->arena, "%s/runs/%s", cmd->ctx->state, runs.items[idx]), NULL);
    }
    if (store_gc(cmd->arena, cmd->store, &opts, &result, err) < 0) {
        return -1;
    }
    json_encode(cmd->out, DROPPED_ROWS, ARRAY_LEN(DROPPED_ROWS), &dropped);
    return 0;
}

/* ---- verify ---- */

struct store_checked {
    const struct store_verify_result *result;
    bool is_quick, holds;
};
static const struct json_field FINDING_ROWS[] = {
    ROW_WORD("fault", struct store_finding, fault, STORE_FAULT_NAMES, 0),
    ROW("name", struct store_finding, name, 0),
    ROW("where", struct store_finding, where, 0),
};
static const struct json_field RESULT_ROWS[] = {
    ROW("blobs", struct store_verify_result, n_blobs, 0),
    ROW("size_bytes", struct store_verify_result, blob_bytes, 0),
    ROW("not_read_again", struct store_verify_result, n_cached, 0),
    ROW_LIST("findings", struct store_verify_result, findings, n, FINDING_ROWS, 0),
};
static const struct json_field CHECKED_ROWS[] = {
    ROW("quick", struct store_checked, is_quick, 0),
    ROW("holds", struct store_checked, holds, 0),
    ROW_THERE(struct store_checked, result, RESULT_ROWS),
};

/* 5 if something is corrupt or missing, 10 if only the disk is at fault. A foreign file is reported but harmless. */
static int judge(const struct store_verify_result *result)
{
    int status = 0;
    for (size_t idx = 0; idx < result->n; idx++) {
        enum store_fault fault = result->findings[idx].fault;
        if (fault == STORE_CORRUPT || fault == STORE_MISSING) {
            return err_exit_status(ERR_INTEGRITY);
        }
        if (fault == STORE_UNREADABLE) {
            status = err_exit_status(ERR_IO);
        }
    }
    return status;
}

static int store_check(struct store_cmd *cmd, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    struct progress progress;
    struct store_verify_opts opts = {.n_threads = pool_lanes().n,
                                     .is_quick = cmd->args->is_quick,
                                     .now_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx),
                                     .on_progress = progress_show,
                                     .progress_ctx = &progress};
    struct store_verify_result result;
    if (pool_new(opts.n_threads, &pool, err) < 0) {
        return -1;
    }
    cache = digest_cache_open(store_path(cmd->store, "cache/digests"), cmd->ctx->clock);
    opts.pool = pool;
    opts.cache = cache;
    progress_start(&progress, cmd->ctx->clock, "verify", "bytes", 0);
    int rc = store_verify(cmd->arena, cmd->store, &opts, &result, err);
    progress_end(&progress);
    digest_cache_save(cache); /* what was read before a ^C or a full disk is worth keeping */
    if (rc < 0) {
        return -1;
    }
    int status = judge(&result);
    const struct store_checked checked = {&result, opts.is_quick, status == 0};
    json_encode(cmd->out, CHECKED_ROWS, ARRAY_LEN(CHECKED_ROWS), &checked);
    return status;
}

/* ---- the verbs ---- */

/* From gc's on, those of gc; the last is everybody's. */
static const struct opt OPTS[] = {
    OPT(struct args, is_dry_run, "dry-run", "list what would be dropped, drop nothing",
        .letter = 'n'),
    OPT(struct args, grace_s, "grace",
        "keep what is younger (default a day; a week for interrupted fetches)", .value = "SECONDS",
        .min = 0, .max = GRACE_S_MAX),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};
#define JSON_OPTS (OPTS + 2)

static void put_head(struct json_out *out, struct strbuf *buf, const char *verb, const char *folder)
{
    jw_document(out, buf);
    jw_z(out, "command", verb);
    jw_z(out, "store", folder);
}

typedef int (*store_verb)(struct store_cmd *cmd, struct err *err);

static int carry_out(const struct cmd_ctx *ctx, const char *name, store_verb verb,
                     struct cmd_call *call, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct json_out out;
    const struct args *args = call->args;
    struct store_cmd cmd = {.ctx = ctx,
                            .args = args,
                            .arena = call->arena,
                            .store = &store,
                            .operands = call->operands.items,
                            .n_operands = call->operands.n,
                            .out = &out};
    stop_hold();
    if (store_open(call->arena, ctx->store, &store, err) < 0) {
        return -1;
    }
    put_head(&out, call->out, name, store.folder);
    int status = verb(&cmd, err);
    jw_end_object(&out);
    if (!args->want_json) {
        document_to_text(call->out, SIZE_MAX);
    }
    return status;
}

int store_verify_all(const struct cmd_ctx *ctx, const struct cmd_call *call, bool is_quick,
                     bool want_json, struct err *err)
{
    struct args args = {want_json, false, is_quick, -1};
    struct cmd_call of_all = *call;
    of_all.args = &args;
    return carry_out(ctx, "verify", store_check, &of_all, err);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    store_verb verb = call->cmd == &DATA_LS    ? store_ls
                      : call->cmd == &DATA_GC  ? store_gc_now
                      : call->cmd == &DATA_ADD ? store_add
                                               : store_drop;
    return carry_out(ctx, call->cmd->name, verb, call, err);
}

static const struct args DEFAULTS = {.grace_s = -1};
#define STORE_ARGS CMD_ARGS(struct args), .defaults = &DEFAULTS
const struct cmd DATA_LS = CMD("ls", "", "what the store holds, for what, and its size", JSON_OPTS,
                               run, STORE_ARGS, CMD_OPERANDS(0, 0, "ls: expected no operand"));
const struct cmd DATA_GC = CMD("gc", "", "drop what nothing references", OPTS, run, STORE_ARGS,
                               CMD_OPERANDS(0, 0, "gc: expected no operand"));
const struct cmd DATA_ADD =
    CMD("add", "FILE...", "put files that were downloaded by hand into the store", JSON_OPTS, run,
        STORE_ARGS, CMD_OPERANDS(1, SIZE_MAX, "add: expected FILE..."));
const struct cmd DATA_DROP =
    CMD("drop", "NAME|KIND/NAME", "remove a reference; gc then drops its bytes", JSON_OPTS, run,
        STORE_ARGS, CMD_OPERANDS(1, 1, "drop: expected NAME or KIND/NAME"));
