/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <unistd.h>

#include "base/progress.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "codec/document_text.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "store/store.h"
#include "sys/digest_cache.h"
#include "sys/pool.h"
#include "sys/tree.h"

struct args {
    const char *list;
    bool wants_md5, is_quick, want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, list, "list",
        "compare with a list that sha256sum, md5sum or this command wrote", .value = "FILE"),
    OPT(struct args, wants_md5, "md5",
        "write MD5, as md5sum does (a list that is given says itself what it has)"),
    OPT(struct args, is_quick, "quick",
        "do not read files again that have not changed since they were read"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

struct treeing { /* one call */
    struct strbuf *out;
    const struct cmd_ctx *ctx;
    const struct args *args;
    struct arena arena;
    struct progress progress;
    struct tree_opts opts;
    struct tree_list list; /* expected with --list, else found */
    struct tree_verify_result result;
    const char *list_sha256; /* hex, of the list's text */
};

static int work(struct treeing *t, struct err *err)
{
    struct tree_hash_stats stats = {0};
    int result;
    if (t->args->list && tree_sums_read(&t->arena, t->args->list, &t->list, err) < 0) {
        return -1;
    }
    progress_start(&t->progress, t->ctx->clock, "tree", "files", 0);
    if (t->args->list) {
        result = tree_verify(&t->arena, &t->opts, &t->list, &t->result, err);
    } else {
        t->opts.kinds = t->args->wants_md5 ? DIGEST_MD5 : DIGEST_SHA256;
        t->opts.ret_stats = &stats;
        result = tree_hash(&t->arena, &t->opts, &t->list, err);
        t->result.n_checked = t->list.n;
        t->result.n_cached = stats.n_cached;
        t->result.n_bytes_read = stats.n_bytes_read;
    }
    progress_end(&t->progress);
    return result;
}

static int with_cache(struct treeing *t, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    if (store_open(&t->arena, t->ctx->store, &store, err) < 0) {
        return -1;
    }
    cache = digest_cache_open(store_path(&store, "cache/digests"), t->ctx->clock);
    t->opts.cache = cache;
    int result = work(t, err);
    t->opts.cache = NULL;
    digest_cache_save(cache);
    return result;
}

static void put_holds(struct json_out *out, const char *key, const void *of)
{
    const struct treeing *t = of;
    jw_bool_if(out, key, t->args->list, t->result.differences.n == 0);
}

static const char *const KINDS[] = {"sha256", "md5"};

static const struct json_field TREE_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("folder", struct treeing, opts.folder, 0),
    ROW_WORD("kind", struct treeing, list.lacks_sha256, KINDS, 0),
    ROW("files", struct treeing, list.n, 0),
    ROW("read_bytes", struct treeing, result.n_bytes_read, 0),
    ROW("not_read_again", struct treeing, result.n_cached, 0),
    ROW_VIA("list", struct treeing, args, list, JSON_NULLABLE),
    ROW("list_sha256", struct treeing, list_sha256, 0),
    ROW_OUT("holds", JSON_BOOL, put_holds, JSON_NULLABLE),
    ROW_LIST("differences", struct treeing, result.differences.items, result.differences.n,
             TREE_DIFFERENCE_ROWS, 0),
};

static void print(struct treeing *t)
{
    uint8_t sha256[SHA256_BYTES];
    tree_list_sha256(&t->list, sha256);
    t->list_sha256 = arena_printf(&t->arena, "%s", sha256_hex_of(sha256).text);
    json_encode_document(t->out, TREE_ROWS, ARRAY_LEN(TREE_ROWS), t);
    if (!t->args->want_json) {
        document_to_text(t->out, SIZE_MAX);
    }
}

/* 5 if a file differs from the list, 10 if the only problem is that some cannot be read. */
static int judge(const struct treeing *t)
{
    int status = 0;
    for (size_t idx = 0; idx < t->result.differences.n; idx++) {
        if (t->result.differences.items[idx].fault != TREE_UNREADABLE) {
            return err_exit_status(ERR_INTEGRITY);
        }
        status = err_exit_status(ERR_IO);
    }
    return status;
}

static int report(struct treeing *t, int result, struct err *err)
{
    if (result == 0 && (t->args->want_json || t->args->list)) {
        print(t);
    } else if (result == 0) {
        result = tree_list_print(&t->list, STDOUT_FILENO, "standard output", err);
    }
    return result < 0 ? -1 : judge(t);
}

static int run_tree(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct args *args = call->args;
    struct treeing t = {.ctx = ctx, .args = args, .out = call->out};
    if (args->list && args->wants_md5) {
        return err_set(err, ERR_USAGE, "tree: the list says which digests it has: no --md5");
    }
    stop_hold();
    if (pool_new(pool_lanes().n, &pool, err) < 0) {
        return -1;
    }
    t.opts = (struct tree_opts){.folder = call->operands.items[0],
                                .pool = pool,
                                .n_threads = pool_lanes().n,
                                .on_progress = progress_show,
                                .progress_ctx = &t.progress};
    int result = report(&t, args->is_quick ? with_cache(&t, err) : work(&t, err), err);
    arena_release(&t.arena);
    return result;
}

const struct cmd CMD_TREE =
    CMD("tree", "FOLDER", "digests of all files of a folder, or the differences from a list", OPTS,
        run_tree, CMD_ARGS(struct args), CMD_OPERANDS(1, 1, "tree: expected one FOLDER"));
