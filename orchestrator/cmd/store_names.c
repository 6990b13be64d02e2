/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf store` ls, path, drop, add: what has a name. */
#include "base/base.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "base/progress.h"
#include "base/table.h"
#include "cmd/store_args.h"
#include "store/image_store.h"
#include "store/store_gc.h"
#include "sys/stop.h"

#define FILE_KIND     "file" /* references of files that the user added */
#define REF_BYTES_MAX 8192
#define HOUR_S        INT64_C(3600)
#define DAY_S         (24 * HOUR_S)

/* ---- ls ---- */

struct name_listing {
    struct store_cmd *cmd;
    struct table table;
};

static char *age_text(struct arena *arena, int64_t age_s)
{
    if (age_s < 2 * HOUR_S) {
        return arena_printf(arena, "%lld min", (long long)(age_s / 60));
    }
    if (age_s < 2 * DAY_S) {
        return arena_printf(arena, "%lld h", (long long)(age_s / HOUR_S));
    }
    return arena_printf(arena, "%lld d", (long long)(age_s / DAY_S));
}

static int changed_ns(const struct store_cmd *cmd, const struct store_ref *ref, int64_t *ret_ns,
                      struct err *err)
{
    struct stat info;
    char *component;
    const char *path;
    if (store_escape(cmd->arena, ref->name, &component, err) < 0) {
        return -1;
    }
    path =
        store_path(cmd->store, arena_printf(cmd->arena, "refs/%s/%s.json", ref->kind, component));
    if (stat(path, &info) < 0) {
        return err_set(err, ERR_IO, "stat %s: it is gone", path);
    }
    *ret_ns = (int64_t)info.st_mtim.tv_sec * NS_PER_S + info.st_mtim.tv_nsec;
    return 0;
}

static int list_ref(void *ctx, const struct store_ref *ref, struct err *err)
{
    struct name_listing *listing = ctx;
    struct store_cmd *cmd = listing->cmd;
    uint64_t bytes = 0;
    int64_t since_ns = 0, age_ns;
    int64_t n_missing = 0;
    char time[RFC3339_MAX];
    if (changed_ns(cmd, ref, &since_ns, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        uint64_t size_bytes = 0;
        n_missing += !store_has(cmd->store, ref->blobs[idx], &size_bytes);
        bytes += size_bytes;
    }
    age_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx) - since_ns;
    if (cmd->args->want_json) {
        clock_rfc3339(since_ns, time);
        jw_object(cmd->out, NULL);
        jw_z(cmd->out, "kind", ref->kind);
        jw_z(cmd->out, "name", ref->name);
        jw_i64(cmd->out, "blobs", (int64_t)ref->n_blobs);
        jw_i64(cmd->out, "missing", n_missing);
        jw_i64(cmd->out, "size_bytes", (int64_t)bytes);
        jw_z(cmd->out, "since", time);
        jw_end_object(cmd->out);
        return 0;
    }
    table_add(&listing->table, str_of(ref->kind));
    table_add(&listing->table, str_of(ref->name));
    table_addf(&listing->table, "%zu", ref->n_blobs);
    table_add(&listing->table, str_of(store_size_text(cmd->arena, bytes)));
    table_add(&listing->table, str_of(age_text(cmd->arena, age_ns / NS_PER_S)));
    table_add(&listing->table, n_missing ? str_of(arena_printf(cmd->arena, "%lld blobs are missing",
                                                               (long long)n_missing))
                                         : STR_LIT(""));
    return 0;
}

/* Unreferenced is what a gc without grace periods would drop. */
static int sum_up(struct store_cmd *cmd, struct err *err)
{
    const struct store_gc_opts opts = {.is_dry_run = true,
                                       .now_ns = cmd->ctx->clock.wall_ns(cmd->ctx->clock.ctx)};
    struct store_gc_result result;
    uint64_t n[STORE_GC_KINDS] = {0}, bytes[STORE_GC_KINDS] = {0};
    if (store_gc(cmd->arena, cmd->store, &opts, &result, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < result.n; idx++) {
        n[result.items[idx].kind]++;
        bytes[result.items[idx].kind] += result.items[idx].size_bytes;
    }
    if (cmd->args->want_json) {
        jw_object(cmd->out, "referenced");
        jw_i64(cmd->out, "blobs", (int64_t)result.n_kept);
        jw_i64(cmd->out, "size_bytes", (int64_t)result.kept_bytes);
        jw_end_object(cmd->out);
        jw_object(cmd->out, "unreferenced");
        jw_i64(cmd->out, "blobs", (int64_t)n[GC_BLOB]);
        jw_i64(cmd->out, "size_bytes", (int64_t)bytes[GC_BLOB]);
        jw_end_object(cmd->out);
        jw_object(cmd->out, "partial");
        jw_i64(cmd->out, "idle", (int64_t)n[GC_PARTIAL]);
        jw_i64(cmd->out, "busy", (int64_t)result.n_busy);
        jw_i64(cmd->out, "size_bytes", (int64_t)bytes[GC_PARTIAL]);
        jw_end_object(cmd->out);
        jw_i64(cmd->out, "quarantined", (int64_t)n[GC_QUARANTINE]);
        return 0;
    }
    strbuf_printf(cmd->buf, "\n%s: %llu blobs, %s, are referenced; %llu, %s, are not\n",
                  cmd->store->folder, (unsigned long long)result.n_kept,
                  store_size_text(cmd->arena, result.kept_bytes), (unsigned long long)n[GC_BLOB],
                  store_size_text(cmd->arena, bytes[GC_BLOB]));
    if (fs_exists(store_path(cmd->store, "trees")) || fs_exists(store_path(cmd->store, "packed"))) {
        strbuf_add_z(cmd->buf, "unpacked trees and packed shards, in trees/ and packed/ there, are "
                               "not counted\n");
    }
    if (n[GC_PARTIAL] || result.n_busy) {
        strbuf_printf(cmd->buf, "fetches: %llu are running, %llu were broken off, %s\n",
                      (unsigned long long)result.n_busy, (unsigned long long)n[GC_PARTIAL],
                      store_size_text(cmd->arena, bytes[GC_PARTIAL]));
    }
    if (n[GC_QUARANTINE]) {
        strbuf_printf(cmd->buf, "in quarantine: %llu corrupt blobs, %s\n",
                      (unsigned long long)n[GC_QUARANTINE],
                      store_size_text(cmd->arena, bytes[GC_QUARANTINE]));
    }
    return 0;
}

int store_ls(struct store_cmd *cmd, struct err *err)
{
    static const struct table_column COLUMNS[] = {{"kind", false}, {"name", false},
                                                  {"blobs", true}, {"size", true},
                                                  {"age", true},   {"note", false}};
    struct name_listing listing = {.cmd = cmd};
    int result;
    table_init(&listing.table, COLUMNS, ARRAY_LEN(COLUMNS));
    if (cmd->args->want_json) {
        jw_array(cmd->out, "references");
    }
    result = store_each_ref(cmd->store, list_ref, &listing, err);
    if (cmd->args->want_json) {
        jw_end_array(cmd->out);
    } else if (listing.table.n_cells) {
        table_render(&listing.table, cmd->buf);
    } else {
        strbuf_add_z(cmd->buf, "no references\n");
    }
    table_release(&listing.table);
    return result < 0 ? -1 : sum_up(cmd, err);
}

/* ---- path ---- */

struct name_finding {
    struct store_cmd *cmd;
    const char *wanted; /* NAME or KIND/NAME */
    size_t n;           /* references of that name */
    const char *kind;
    uint8_t (*blobs)[SHA256_BYTES];
    size_t n_blobs;
};

static int match_ref(void *ctx, const struct store_ref *ref, struct err *err)
{
    struct name_finding *finding = ctx;
    size_t kind_len = strlen(ref->kind);
    bool is_whole = strncmp(finding->wanted, ref->kind, kind_len) == 0 &&
                    finding->wanted[kind_len] == '/' &&
                    strcmp(finding->wanted + kind_len + 1, ref->name) == 0;
    if (!is_whole && strcmp(finding->wanted, ref->name) != 0) {
        return 0;
    }
    if (finding->n++) {
        return err_set(err, ERR_USAGE, "%.200s: %s and %s have a reference of that name: KIND/NAME",
                       finding->wanted, finding->kind, ref->kind);
    }
    finding->kind = arena_strndup(finding->cmd->arena, ref->kind, kind_len);
    finding->n_blobs = ref->n_blobs;
    finding->blobs =
        arena_alloc_array(finding->cmd->arena, SHA256_BYTES, ref->n_blobs ? ref->n_blobs : 1, 1);
    memcpy(finding->blobs, ref->blobs, ref->n_blobs * SHA256_BYTES);
    return 0;
}

static int find_blobs(struct store_cmd *cmd, const char *name, struct name_finding *finding,
                      struct err *err)
{
    struct str text = str_of(name);
    uint8_t md5[MD5_BYTES];
    *finding = (struct name_finding){.cmd = cmd, .wanted = name};
    if (!str_starts(text, STR_LIT("sha256:")) && !str_starts(text, STR_LIT("md5:"))) {
        if (store_each_ref(cmd->store, match_ref, finding, err) < 0) {
            return -1;
        }
        return finding->n ? 0
                          : err_set(err, ERR_NOT_FOUND,
                                    "%.200s: no such reference; reperf data ls lists them", name);
    }
    finding->n_blobs = 1;
    finding->blobs = arena_alloc(cmd->arena, SHA256_BYTES, 1);
    if (str_starts(text, STR_LIT("sha256:"))) {
        if (hex_decode(str_sub(text, 7, text.len), SHA256_BYTES, finding->blobs[0], err) < 0) {
            err->code = ERR_USAGE;
            return err_wrap(err, "%.100s", name);
        }
        return 0;
    }
    if (hex_decode(str_sub(text, 4, text.len), MD5_BYTES, md5, err) < 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "%.100s", name);
    }
    return store_find_md5(cmd->store, md5, finding->blobs[0], err);
}

int store_path_of(struct store_cmd *cmd, struct err *err)
{
    struct name_finding finding;
    if (find_blobs(cmd, cmd->operands[0], &finding, err) < 0) {
        return -1;
    }
    if (cmd->args->want_json) {
        jw_array(cmd->out, "paths");
    }
    for (size_t idx = 0; idx < finding.n_blobs; idx++) {
        const char *path = store_blob_path(cmd->store, finding.blobs[idx]);
        if (!store_has(cmd->store, finding.blobs[idx], NULL)) {
            return err_set(err, ERR_NOT_FOUND, "%.200s: %s is not in the store", cmd->operands[0],
                           path);
        }
        if (cmd->args->want_json) {
            jw_z(cmd->out, NULL, path);
        } else {
            strbuf_printf(cmd->buf, "%s\n", path);
        }
    }
    if (cmd->args->want_json) {
        jw_end_array(cmd->out);
    }
    return 0;
}

/* ---- drop ---- */

int store_drop(struct store_cmd *cmd, struct err *err)
{
    const char *operand = cmd->operands[0];
    const char *slash = strchr(operand, '/');
    const char *kind = slash ? arena_strndup(cmd->arena, operand, (size_t)(slash - operand)) : "";
    struct fs_names kinds;
    bool is_known = false;
    if (store_ref_kinds(cmd->store, &kinds, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < kinds.n; idx++) {
        is_known = is_known || strcmp(kinds.items[idx], kind) == 0;
    }
    if (!is_known) {
        return err_set(err, ERR_NOT_FOUND, "%.200s: no such reference; expected KIND/NAME",
                       operand);
    }
    /* An image has an entry in index.json, too, that leads to its blobs. */
    if ((strcmp(kind, "image") == 0 ? image_remove(cmd->store, slash + 1, err)
                                    : store_ref_drop(cmd->store, kind, slash + 1, err)) < 0) {
        return -1;
    }
    if (cmd->args->want_json) {
        jw_z(cmd->out, "kind", kind);
        jw_z(cmd->out, "name", slash + 1);
    } else {
        strbuf_printf(cmd->buf, "%s is dropped; the next gc drops blobs that nothing else names\n",
                      operand);
    }
    return 0;
}

/* ---- add ---- */

static void show_progress(void *ctx, uint64_t bytes_done, uint64_t bytes_total)
{
    struct progress *progress = ctx;
    progress->total = bytes_total;
    progress_set(progress, bytes_done);
}

/* NAME, or NAME@ and the digest's beginning where another file has that name already. */
static int refer(struct store_cmd *cmd, const char *base, const struct digest_value *value,
                 const char **ret_name, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = {0};
    char sha256[SHA256_HEX_SIZE], md5[MD5_HEX_SIZE];
    const char *blob;
    struct json_out out;
    struct str known;
    struct err why = {0};
    hex_encode(value->sha256, SHA256_BYTES, sha256);
    hex_encode(value->md5, MD5_BYTES, md5);
    blob = arena_printf(cmd->arena, "sha256:%s", sha256);
    strbuf_init(&buf, REF_BYTES_MAX);
    jw_begin(&out, &buf, false);
    jw_object(&out, NULL);
    jw_z(&out, "file", base);
    jw_i64(&out, "size_bytes", (int64_t)value->size_bytes);
    jw_z(&out, "md5", md5);
    jw_z(&out, "sha256", sha256);
    jw_array(&out, "blobs");
    jw_z(&out, NULL, blob);
    jw_end_array(&out);
    jw_end_object(&out);
    *ret_name = base;
    if (store_ref_get(cmd->store, FILE_KIND, base, &known, &why) == 0 &&
        str_find(known, str_of(blob)) < 0) {
        *ret_name = arena_printf(cmd->arena, "%s@%.12s", base, sha256);
    }
    return store_ref_put(cmd->store, FILE_KIND, *ret_name, strbuf_str(&buf), err);
}

static void print_added(struct store_cmd *cmd, const char *path, const char *name,
                        const struct digest_value *value)
{
    char sha256[SHA256_HEX_SIZE], md5[MD5_HEX_SIZE];
    hex_encode(value->sha256, SHA256_BYTES, sha256);
    hex_encode(value->md5, MD5_BYTES, md5);
    if (!cmd->args->want_json) {
        strbuf_printf(cmd->buf, "%s\n  name    " FILE_KIND "/%s\n  size    %llu bytes\n", path,
                      name, (unsigned long long)value->size_bytes);
        strbuf_printf(cmd->buf, "  MD5     %s\n  SHA-256 %s\n", md5, sha256);
        return;
    }
    jw_object(cmd->out, NULL);
    jw_z(cmd->out, "file", path);
    jw_z(cmd->out, "kind", FILE_KIND);
    jw_z(cmd->out, "name", name);
    jw_i64(cmd->out, "size_bytes", (int64_t)value->size_bytes);
    jw_z(cmd->out, "md5", md5);
    jw_z(cmd->out, "sha256", sha256);
    jw_z(cmd->out, "path", store_blob_path(cmd->store, value->sha256));
    jw_end_object(cmd->out);
}

static int add_one(struct store_cmd *cmd, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct progress progress;
    struct store_hooks hooks = {stop_is_asked, show_progress, &progress};
    struct digest_value value;
    const char *name;
    int result;
    progress_start(&progress, cmd->ctx->clock, "add", "bytes", 0);
    result = store_add_file(cmd->store, path, &hooks, &value, err);
    progress_end(&progress);
    if (result < 0 || refer(cmd, slash ? slash + 1 : path, &value, &name, err) < 0) {
        return -1;
    }
    print_added(cmd, path, name, &value);
    return 0;
}

int store_add(struct store_cmd *cmd, struct err *err)
{
    if (cmd->args->want_json) {
        jw_array(cmd->out, "files");
    }
    for (size_t idx = 0; idx < cmd->n_operands; idx++) {
        if (add_one(cmd, cmd->operands[idx], err) < 0) {
            return -1;
        }
    }
    if (cmd->args->want_json) {
        jw_end_array(cmd->out);
    }
    return 0;
}
