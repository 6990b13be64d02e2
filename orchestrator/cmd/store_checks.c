/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf store` gc and verify. */
#include "base/base.h"

#include <unistd.h>

#include "base/log.h"
#include "base/progress.h"
#include "cmd/store_args.h"
#include "store/store_gc.h"
#include "store/store_verify.h"
#include "sys/digest_cache.h"
#include "sys/stop.h"

/* ---- gc ---- */

static void print_dropped(struct store_cmd *cmd, const struct store_gc_result *result)
{
    if (cmd->args->want_json) {
        jw_bool(cmd->out, "dry_run", cmd->args->is_dry_run);
        jw_array(cmd->out, "dropped");
    }
    for (size_t idx = 0; idx < result->n; idx++) {
        const struct store_gc_item *item = &result->items[idx];
        if (cmd->args->want_json) {
            jw_object(cmd->out, NULL);
            jw_z(cmd->out, "kind", store_gc_kind_name(item->kind));
            jw_z(cmd->out, "name", item->name);
            jw_i64(cmd->out, "size_bytes", (int64_t)item->size_bytes);
            jw_end_object(cmd->out);
        } else {
            strbuf_printf(cmd->buf, "%s %s, %llu bytes\n",
                          cmd->args->is_dry_run ? "would drop" : "dropped", item->name,
                          (unsigned long long)item->size_bytes);
        }
    }
    if (cmd->args->want_json) {
        jw_end_array(cmd->out);
        jw_i64(cmd->out, "size_bytes", (int64_t)result->bytes);
        jw_i64(cmd->out, "kept", (int64_t)result->n_kept);
        jw_i64(cmd->out, "young", (int64_t)result->n_young);
        jw_i64(cmd->out, "busy", (int64_t)result->n_busy);
        return;
    }
    strbuf_printf(cmd->buf, "%s %zu, %llu bytes; kept %llu blobs that are referenced",
                  cmd->args->is_dry_run ? "would drop" : "dropped", result->n,
                  (unsigned long long)result->bytes, (unsigned long long)result->n_kept);
    if (result->n_young) {
        strbuf_printf(cmd->buf, ", %llu (%s) that are younger than their grace",
                      (unsigned long long)result->n_young,
                      store_size_text(cmd->arena, result->young_bytes));
    }
    if (result->n_busy) {
        strbuf_printf(cmd->buf, ", %llu fetches that are running",
                      (unsigned long long)result->n_busy);
    }
    strbuf_add_z(cmd->buf, "\n");
}

int store_gc_now(struct store_cmd *cmd, struct err *err)
{
    int64_t grace_s = cmd->args->grace_s;
    const struct store_gc_opts opts = {
        .is_dry_run = cmd->args->is_dry_run,
        .now_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx),
        .grace_s = grace_s >= 0 ? grace_s : STORE_GRACE_S,
        .partial_grace_s = grace_s >= 0 ? grace_s : STORE_PARTIAL_GRACE_S,
    };
    struct store_gc_result result;
    if (store_gc(cmd->arena, cmd->store, &opts, &result, err) < 0) {
        return -1;
    }
    print_dropped(cmd, &result);
    return 0;
}

/* ---- verify ---- */

static void print_finding(struct store_cmd *cmd, const struct store_finding *finding)
{
    if (cmd->args->want_json) {
        jw_object(cmd->out, NULL);
        jw_z(cmd->out, "fault", store_fault_name(finding->fault));
        jw_z(cmd->out, "name", finding->name);
        jw_z(cmd->out, "where", finding->where);
        jw_end_object(cmd->out);
        return;
    }
    strbuf_printf(cmd->buf, "%s %s", store_fault_name(finding->fault), finding->name);
    if (finding->where) {
        strbuf_printf(cmd->buf, "%s%s", finding->fault == STORE_CORRUPT ? ", now " : ", named by ",
                      finding->where);
    }
    strbuf_add_z(cmd->buf, "\n");
}

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

static void print_checked(struct store_cmd *cmd, const struct store_verify_result *result)
{
    if (cmd->args->want_json) {
        jw_bool(cmd->out, "quick", cmd->args->is_quick);
        jw_bool(cmd->out, "holds", judge(result) == 0);
        jw_i64(cmd->out, "blobs", (int64_t)result->n_blobs);
        jw_i64(cmd->out, "size_bytes", (int64_t)result->blob_bytes);
        jw_i64(cmd->out, "not_read_again", (int64_t)result->n_cached);
        jw_array(cmd->out, "findings");
    }
    for (size_t idx = 0; idx < result->n; idx++) {
        print_finding(cmd, &result->findings[idx]);
    }
    if (cmd->args->want_json) {
        jw_end_array(cmd->out);
        return;
    }
    strbuf_printf(cmd->buf, "%llu blobs, %s: %zu findings", (unsigned long long)result->n_blobs,
                  store_size_text(cmd->arena, result->blob_bytes), result->n);
    if (result->n_cached) {
        strbuf_printf(cmd->buf, "; %llu unchanged since they were read, and not read again",
                      (unsigned long long)result->n_cached);
    }
    strbuf_add_z(cmd->buf, "\n");
}

static void show_bytes(void *ctx, uint64_t bytes_done)
{
    progress_set(ctx, bytes_done);
}

static size_t count_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < POOL_THREADS_MIN   ? POOL_THREADS_MIN
           : n > POOL_THREADS_MAX ? POOL_THREADS_MAX
                                  : (size_t)n;
}

int store_check(struct store_cmd *cmd, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    struct progress progress;
    struct store_verify_opts opts = {.n_threads = count_threads(),
                                     .is_quick = cmd->args->is_quick,
                                     .now_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx),
                                     .should_stop = stop_is_asked,
                                     .on_bytes = show_bytes,
                                     .progress_ctx = &progress};
    struct store_verify_result result;
    struct err cache_err = {0};
    uint64_t n_blobs, bytes;
    int rc;
    if (store_extent(cmd->store, &n_blobs, &bytes, err) < 0 ||
        pool_new(opts.n_threads, &pool, err) < 0) {
        return -1;
    }
    cache = digest_cache_open(store_path(cmd->store, "cache/digests"), cmd->ctx->clock);
    opts.pool = pool;
    opts.cache = cache;
    progress_start(&progress, cmd->ctx->clock, "verify", "bytes", bytes);
    rc = store_verify(cmd->arena, cmd->store, &opts, &result, err);
    progress_end(&progress);
    /* What was read before a ^C or a full disk is worth keeping; a cache that cannot be written only costs time. */
    if (digest_cache_save(cache, &cache_err) < 0) {
        log_line(LOG_WARN, "%s", cache_err.msg);
    }
    if (rc < 0) {
        return -1;
    }
    print_checked(cmd, &result);
    return judge(&result);
}
