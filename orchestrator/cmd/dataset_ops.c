/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/dataset_ops.h"

#include <unistd.h>

#include "base/log.h"
#include "cmd/store_args.h"
#include "codec/json_document.h"
#include "store/dataset_lock.h"
#include "store/dataset_repair.h"
#include "store/dataset_verify.h"
#include "sys/digest_cache.h"
#include "sys/pool_lanes.h"
#include "sys/stop.h"

static int load(struct artifact_job *job, const struct artifact *artifact,
                struct dataset_here *ret_here, struct err *err)
{
    return dataset_load(job->arena,
                        &(struct dataset_which){job->ctx->root, job->locks, artifact->name.ptr,
                                                artifact->is_synthetic},
                        ret_here, err);
}

static void put_digest(struct json_out *out, const char *key, const uint8_t *bytes, size_t n,
                       bool has)
{
    char hex[SHA256_HEX_SIZE];
    if (has) {
        hex_encode(bytes, n, hex);
    }
    jw_z(out, key, has ? hex : NULL);
}

/* ---- fetch ---- */

static void put_file(struct json_out *out, const struct dataset_got *got)
{
    jw_object(out, NULL);
    jw_str(out, "name", got->item.name);
    jw_i64(out, "bytes", got->item.size_bytes);
    put_digest(out, "md5", got->item.md5, MD5_BYTES, got->item.has_md5);
    put_digest(out, "sha256", got->item.sha256, SHA256_BYTES, true);
    jw_z(out, "from", dataset_origin_name(got->origin));
    jw_bool(out, "digest_was_known", got->is_checked);
    jw_str(out, "url", got->item.url);
    jw_i64(out, "received_bytes", (int64_t)got->received_bytes);
    jw_i64(out, "kept_bytes", (int64_t)got->kept_bytes);
    jw_i64(out, "again_bytes", (int64_t)got->again_bytes);
    jw_i64(out, "bad_pieces", (int64_t)got->n_bad_pieces);
    jw_end_object(out);
}

static void put_wanted(struct json_out *out, const struct dataset_wanted *wanted)
{
    const struct dataset_file *file = wanted->file;
    jw_object(out, NULL);
    jw_str(out, "name", file->name);
    jw_known(out, "bytes", file->size_bytes);
    put_digest(out, "md5", file->md5, MD5_BYTES, file->has_md5);
    put_digest(out, "sha256", file->sha256, SHA256_BYTES, file->has_sha256);
    jw_array(out, "urls");
    for (size_t idx = 0; idx < file->n_urls; idx++) {
        jw_str(out, NULL, file->urls[idx]);
    }
    jw_end_array(out);
    jw_z(out, "put", wanted->put_path);
    jw_end_object(out);
}

static void put_fetched(struct json_out *out, const struct dataset_here *here,
                        const struct dataset_fetched *fetched)
{
    jw_bool(out, "synthetic", here->is_synthetic || here->dataset.is_synthetic);
    jw_array(out, "files");
    for (size_t idx = 0; idx < fetched->n_files; idx++) {
        put_file(out, &fetched->files[idx]);
    }
    jw_end_array(out);
    jw_array(out, "wanted");
    for (size_t idx = 0; idx < fetched->n_wanted; idx++) {
        put_wanted(out, &fetched->wanted[idx]);
    }
    jw_end_array(out);
    jw_z(out, "tree", fetched->has_tree ? fetched->tree_path : NULL);
    jw_known(out, "tree_files", fetched->has_tree ? fetched->tree.seen.n_files : -1);
    jw_known(out, "tree_bytes", fetched->has_tree ? fetched->tree.seen.file_bytes : -1);
    put_digest(out, "list_sha256", fetched->tree.seen.list_sha256, SHA256_BYTES, fetched->has_tree);
}

static void print_wanted(struct strbuf *text, struct arena *arena,
                         const struct dataset_wanted *wanted)
{
    char hex[SHA256_HEX_SIZE];
    const struct dataset_file *file = wanted->file;
    strbuf_printf(text, "  wanted    %s\n", file->name.ptr);
    if (file->size_bytes >= 0) {
        strbuf_printf(text, "    size    %lld bytes (%s)\n", (long long)file->size_bytes,
                      store_size_text(arena, (uint64_t)file->size_bytes));
    } else {
        strbuf_add_z(text, "    size    not known\n");
    }
    hex_encode(file->md5, MD5_BYTES, hex);
    strbuf_printf(text, "    MD5     %s\n", file->has_md5 ? hex : "not known");
    hex_encode(file->sha256, SHA256_BYTES, hex);
    strbuf_printf(text, "    SHA-256 %s\n", file->has_sha256 ? hex : "not known");
    for (size_t idx = 0; idx < file->n_urls; idx++) {
        strbuf_printf(text, "    from    %s\n", file->urls[idx].ptr);
    }
    strbuf_printf(text, "    put it  %s\n", wanted->put_path);
    if (file->has_md5 || file->has_sha256) {
        strbuf_add_z(text, "            or from anywhere: reperf data add FILE\n");
    }
}

static void print_fetched(struct strbuf *text, struct arena *arena, const struct dataset_here *here,
                          const struct dataset_fetched *fetched)
{
    strbuf_printf(text, "%s%s\n", here->dataset.id.ptr,
                  here->is_synthetic ? " (synthetic: reproduces no published number)" : "");
    for (size_t idx = 0; idx < fetched->n_files; idx++) {
        const struct dataset_got *got = &fetched->files[idx];
        strbuf_printf(text, "  %-9s %s, %lld bytes%s\n", dataset_origin_name(got->origin),
                      got->item.name.ptr, (long long)got->item.size_bytes,
                      here->is_synthetic ? ""
                      : got->is_checked  ? ", digest as known"
                                         : ", no digest was known: not checked");
        if (got->origin == FROM_NET) {
            strbuf_printf(
                text, "            %llu bytes received, %llu kept from before, %llu again\n",
                (unsigned long long)got->received_bytes, (unsigned long long)got->kept_bytes,
                (unsigned long long)got->again_bytes);
        }
    }
    for (size_t idx = 0; idx < fetched->n_wanted; idx++) {
        print_wanted(text, arena, &fetched->wanted[idx]);
    }
    if (fetched->has_tree) {
        strbuf_printf(text, "  tree      %s: %lld files, %lld bytes%s\n", fetched->tree_path,
                      (long long)fetched->tree.seen.n_files,
                      (long long)fetched->tree.seen.file_bytes,
                      fetched->was_there ? ", was there" : "");
    }
}

static int fetch(struct artifact_job *job, const struct dataset_here *here, bool wants_tree,
                 struct dataset_fetched *fetched, struct err *err)
{
    const struct dataset_fetch_opts opts = {
        .net = job->net,
        .self = job->ctx->self,
        .samples = job->samples ? job->samples->items : NULL,
        .n_samples = job->samples ? job->samples->n : 0,
        .wants_tree = wants_tree,
    };
    return dataset_fetch(job->arena, job->store, here, &opts, fetched, err);
}

/* A tree that existed before is reported only after its files were checked. */
static int check_there(struct artifact_job *job, const struct dataset_here *here, struct err *err);

int dataset_op_fetch(struct artifact_job *job, const struct artifact *artifact,
                     struct artifact_sink *sink, struct err *err)
{
    struct dataset_here here;
    struct dataset_fetched fetched = {0};
    if (load(job, artifact, &here, err) < 0) {
        return -1;
    }
    int result = fetch(job, &here, job->wants_tree, &fetched, err);
    if (result == 0 && fetched.was_there) {
        result = check_there(job, &here, err);
        fetched.was_there = result == 0;
    }
    put_fetched(sink->out, &here, &fetched);
    print_fetched(sink->text, job->arena, &here, &fetched);
    return result;
}

/* ---- lock ---- */

int dataset_op_lock(struct artifact_job *job, const struct artifact *artifact,
                    struct artifact_sink *sink, struct err *err)
{
    struct dataset_here here;
    struct dataset_fetched fetched = {0};
    struct dataset_locked locked;
    if (load(job, artifact, &here, err) < 0) {
        return -1;
    }
    if (here.is_synthetic) {
        return err_set(err, ERR_USAGE,
                       "%s: a synthetic dataset is not published: there is nothing to lock",
                       here.name);
    }
    int result = fetch(job, &here, true, &fetched, err);
    put_fetched(sink->out, &here, &fetched);
    if (result < 0) {
        print_fetched(sink->text, job->arena, &here, &fetched);
        return -1;
    }
    const struct dataset_lock_from from = {job->store, &here, job->net_opts, &fetched};
    if (dataset_lock(job->arena, &from, &locked, err) < 0) {
        return -1;
    }
    jw_z(sink->out, "lock", locked.path);
    jw_bool(sink->out, "lock_changed", locked.is_new);
    strbuf_printf(sink->text, "%s\n  %s %s: %zu files, a tree of %lld\n", here.name,
                  locked.is_new ? "locked in" : "is as locked in", locked.path, locked.lock.n_items,
                  (long long)locked.lock.n_files);
    return 0;
}

/* ---- verify ---- */

static void put_fault(struct json_out *out, const struct dataset_fault *fault)
{
    static const uint8_t NONE[SHA256_BYTES];
    const struct digest_value *found = fault->found;
    jw_object(out, NULL);
    jw_z(out, "kind", dataset_fault_name(fault->kind));
    jw_z(out, "path", fault->path);
    jw_z(out, "why", fault->why);
    put_digest(out, "expected_sha256", fault->expected ? fault->expected : NONE, SHA256_BYTES,
               fault->expected);
    put_digest(out, "found_sha256", found ? found->sha256 : NONE, SHA256_BYTES, found);
    jw_known(out, "found_bytes", found ? (int64_t)found->size_bytes : -1);
    jw_end_object(out);
}

/* Of archives next to a tree, or without one: what each should be, and is. */
static void put_archive(struct json_out *out, const struct dataset_archive *archive)
{
    const struct dataset_file *file = archive->file;
    jw_object(out, NULL);
    jw_str(out, "name", file->name);
    jw_bool(out, "there", archive->is_there);
    jw_bool(out, "holds", archive->is_right);
    jw_known(out, "expected_bytes", file->size_bytes);
    put_digest(out, "expected_md5", file->md5, MD5_BYTES, file->has_md5);
    put_digest(out, "expected_sha256", file->sha256, SHA256_BYTES, file->has_sha256);
    jw_known(out, "found_bytes", archive->is_there ? (int64_t)archive->found.size_bytes : -1);
    put_digest(out, "found_md5", archive->found.md5, MD5_BYTES, archive->is_there);
    put_digest(out, "found_sha256", archive->found.sha256, SHA256_BYTES, archive->is_there);
    jw_end_object(out);
}

static void put_verified(struct json_out *out, const struct dataset_here *here,
                         const struct dataset_verified *v)
{
    jw_bool(out, "synthetic", here->is_synthetic);
    jw_z(out, "verdict", dataset_verdict_name(v->verdict));
    jw_z(out, "tree", v->tree_path);
    put_digest(out, "list_sha256", v->tree.seen.list_sha256, SHA256_BYTES, v->tree.seen.has_list);
    jw_i64(out, "files", (int64_t)v->n_files);
    jw_i64(out, "files_from_cache", (int64_t)v->n_from_cache);
    jw_i64(out, "bytes_read", (int64_t)v->n_bytes_read);
    jw_i64(out, "headers", (int64_t)v->n_headers);
    jw_array(out, "groups");
    for (size_t idx = 0; idx < v->n_groups; idx++) {
        const struct dataset_group_count *group = &v->groups[idx];
        jw_object(out, NULL);
        jw_z(out, "name", group->name);
        jw_i64(out, "files", (int64_t)group->n_files);
        jw_known(out, "expected_files", group->wanted_files);
        jw_i64(out, "folders", (int64_t)group->n_folders);
        jw_known(out, "expected_folders", group->wanted_folders);
        jw_end_object(out);
    }
    jw_end_array(out);
    jw_array(out, "faults");
    for (size_t idx = 0; idx < v->n_faults; idx++) {
        put_fault(out, &v->faults[idx]);
    }
    jw_end_array(out);
    jw_array(out, "archives");
    for (size_t idx = 0; idx < v->n_archives; idx++) {
        put_archive(out, &v->archives[idx]);
    }
    jw_end_array(out);
    jw_array(out, "not_checked");
    for (size_t idx = 0; idx < v->n_not_checked; idx++) {
        jw_z(out, NULL, v->not_checked[idx]);
    }
    jw_end_array(out);
}

static void print_digests(struct strbuf *text, const struct dataset_fault *fault)
{
    char hex[SHA256_HEX_SIZE];
    if (fault->expected && fault->found) {
        hex_encode(fault->expected, SHA256_BYTES, hex);
        strbuf_printf(text, "      expected SHA-256 %s\n", hex);
        hex_encode(fault->found->sha256, SHA256_BYTES, hex);
        strbuf_printf(text, "      found    SHA-256 %s, %llu bytes\n", hex,
                      (unsigned long long)fault->found->size_bytes);
    }
}

static void print_archive(struct strbuf *text, const struct dataset_archive *archive)
{
    const struct dataset_file *file = archive->file;
    char expected[SHA256_HEX_SIZE] = "not known";
    char found[SHA256_HEX_SIZE];
    if (!archive->is_there) {
        strbuf_printf(text, "  archive %s: not there\n", file->name.ptr);
        return;
    }
    strbuf_printf(text, "  archive %s: %s\n", file->name.ptr,
                  !archive->is_right                  ? "does NOT hold"
                  : file->has_md5 || file->has_sha256 ? "holds"
                                                      : "no digest of it is known");
    if (file->has_sha256) {
        hex_encode(file->sha256, SHA256_BYTES, expected);
        hex_encode(archive->found.sha256, SHA256_BYTES, found);
    } else {
        if (file->has_md5) {
            hex_encode(file->md5, MD5_BYTES, expected);
        }
        hex_encode(archive->found.md5, MD5_BYTES, found);
    }
    strbuf_printf(text, "    expected %s %s, ", file->has_sha256 ? "SHA-256" : "MD5", expected);
    if (file->size_bytes < 0) {
        strbuf_add_z(text, "size not known\n");
    } else {
        strbuf_printf(text, "%lld bytes\n", (long long)file->size_bytes);
    }
    strbuf_printf(text, "    found    %s %s, %llu bytes\n", file->has_sha256 ? "SHA-256" : "MD5",
                  found, (unsigned long long)archive->found.size_bytes);
}

static void print_faults(struct strbuf *text, const struct dataset_verified *v)
{
    size_t shown = 0;
    for (size_t idx = 0; idx < v->n_faults; idx++) {
        const struct dataset_fault *fault = &v->faults[idx];
        bool is_first = idx == 0 || v->faults[idx - 1].kind != fault->kind;
        shown = is_first ? 0 : shown;
        if (is_first) {
            strbuf_printf(text, "  %s: %zu\n", dataset_fault_name(fault->kind),
                          v->n_of[fault->kind]);
        }
        if (shown < VERIFY_SHOWN_MAX) {
            strbuf_printf(text, "    %s%s%s\n", fault->path, fault->why ? ": " : "",
                          fault->why ? fault->why : "");
            print_digests(text, fault);
        } else if (shown == VERIFY_SHOWN_MAX) {
            strbuf_printf(text, "    and %zu more (--json has all)\n",
                          v->n_of[fault->kind] - VERIFY_SHOWN_MAX);
        }
        shown++;
    }
}

static void print_verified(struct strbuf *text, const struct dataset_here *here,
                           const struct dataset_verified *v)
{
    static const char *const SAYS[] = {
        [VERDICT_HOLDS] = "holds",
        [VERDICT_PARTLY] = "holds as far as it could be checked",
        [VERDICT_WRONG] = "does NOT hold",
    };
    strbuf_printf(text, "%s%s: %s\n", here->dataset.id.ptr,
                  here->is_synthetic ? " (synthetic)" : "", SAYS[v->verdict]);
    strbuf_printf(text, "  %llu files in %s; %llu from the cache, %.1f MB read, %llu headers\n",
                  (unsigned long long)v->n_files, v->tree_path, (unsigned long long)v->n_from_cache,
                  (double)v->n_bytes_read / 1e6, (unsigned long long)v->n_headers);
    for (size_t idx = 0; idx < v->n_groups; idx++) {
        const struct dataset_group_count *group = &v->groups[idx];
        strbuf_printf(text, "  %-16s %llu files in %llu folders\n", group->name,
                      (unsigned long long)group->n_files, (unsigned long long)group->n_folders);
    }
    for (size_t idx = 0; idx < v->n_archives; idx++) {
        print_archive(text, &v->archives[idx]);
    }
    print_faults(text, v);
    for (size_t idx = 0; idx < v->n_not_checked; idx++) {
        strbuf_printf(text, "  not checked: %s\n", v->not_checked[idx]);
    }
}

/* The cache is kept even if the tree is damaged. A cache that cannot be written only costs time. */
static void save_cache(struct digest_cache *cache)
{
    struct err err = {0};
    if (digest_cache_save(cache, &err) < 0) {
        log_line(LOG_WARN, "%s", err.msg);
    }
}

static struct dataset_verify_opts verify_opts(const struct artifact_job *job,
                                              enum dataset_depth depth, struct digest_cache *cache)
{
    return (struct dataset_verify_opts){.depth = depth,
                                        .pool = job->net->pool,
                                        .n_threads = pool_lanes().n,
                                        .cache = cache,
                                        .should_stop = stop_is_asked,
                                        .clock = job->ctx->clock};
}

/* -1 with the numbers of faults, and of what the store has with the command that repairs it. */
static int wrong(const struct artifact_job *job, const struct dataset_here *here,
                 const struct dataset_verified *v, struct err *err)
{
    const char *hint = arena_printf(job->arena, "; reperf data repair %s%s%s%s",
                                    job->folder ? job->folder : "", job->folder ? " --as " : "",
                                    here->dataset.id.ptr, here->is_synthetic ? " --synthetic" : "");
    return err_set(err, ERR_INTEGRITY, "%s does not hold: %s%s",
                   job->folder ? job->folder : here->name, dataset_faults_text(job->arena, v->n_of),
                   hint);
}

static int check_tree(struct artifact_job *job, const struct dataset_here *here,
                      enum dataset_depth depth, struct dataset_verified *ret_verified,
                      struct err *err)
{
    CLEANUP(digest_cache) struct digest_cache *cache = NULL;
    if (net_open(job->net, err) < 0) {
        return -1;
    }
    cache = digest_cache_open(store_path(job->store, "cache/digests"), job->ctx->clock);
    struct dataset_verify_opts opts = verify_opts(job, depth, cache);
    opts.folder = job->folder;
    int result = dataset_verify(job->arena, job->store, here, &opts, ret_verified, err);
    save_cache(cache);
    return result;
}

static int check_there(struct artifact_job *job, const struct dataset_here *here, struct err *err)
{
    struct dataset_verified verified;
    if (check_tree(job, here, DEPTH_QUICK, &verified, err) < 0) {
        return -1;
    }
    return verified.verdict != VERDICT_WRONG ? 0 : wrong(job, here, &verified, err);
}

int dataset_op_verify(struct artifact_job *job, const struct artifact *artifact,
                      struct artifact_sink *sink, struct err *err)
{
    static const enum dataset_depth DEPTHS[] = {[ARTIFACT_QUICK] = DEPTH_QUICK,
                                                [ARTIFACT_NORMAL] = DEPTH_NORMAL,
                                                [ARTIFACT_DEEP] = DEPTH_DEEP};
    struct dataset_here here;
    struct dataset_verified verified;
    if (load(job, artifact, &here, err) < 0 ||
        check_tree(job, &here, DEPTHS[job->depth], &verified, err) < 0) {
        return -1;
    }
    put_verified(sink->out, &here, &verified);
    print_verified(sink->text, &here, &verified);
    return verified.verdict != VERDICT_WRONG ? 0 : wrong(job, &here, &verified, err);
}

/* ---- repair ---- */

static void put_repaired(struct json_out *out, const struct dataset_here *here,
                         const struct dataset_repaired *done)
{
    jw_bool(out, "synthetic", here->is_synthetic);
    jw_bool(out, "was_whole", done->was_whole);
    jw_bool(out, "made_anew", done->is_anew);
    jw_i64(out, "bad_archives", (int64_t)done->n_bad_archives);
    jw_i64(out, "removed", (int64_t)done->n_removed);
    jw_array(out, "files");
    for (size_t idx = 0; idx < done->n_files; idx++) {
        jw_z(out, NULL, done->files[idx]);
    }
    jw_end_array(out);
    jw_array(out, "archives");
    for (size_t idx = 0; idx < done->fetched.n_files; idx++) {
        put_file(out, &done->fetched.files[idx]);
    }
    jw_end_array(out);
}

static void print_repaired(struct artifact_job *job, struct strbuf *text,
                           const struct dataset_here *here, const struct dataset_repaired *done)
{
    strbuf_printf(
        text, "%s%s: %s\n", here->dataset.id.ptr, here->is_synthetic ? " (synthetic)" : "",
        done->was_whole ? "nothing to repair"
        : done->is_anew
            ? "its tree was made again"
            : arena_printf(job->arena, "%zu files unpacked again%s", done->n_files - done->n_copied,
                           done->n_copied ? arena_printf(job->arena, ", %zu copied from %s",
                                                         done->n_copied, job->from)
                                          : ""));
    if (done->n_bad_archives) {
        strbuf_printf(text, "  %zu archives were corrupt in the store\n", done->n_bad_archives);
    }
    if (done->n_removed) {
        strbuf_printf(text, "  %zu files that no archive has were removed\n", done->n_removed);
    }
    for (size_t idx = 0; idx < done->fetched.n_files; idx++) {
        const struct dataset_got *got = &done->fetched.files[idx];
        if (got->origin != FROM_STORE) {
            strbuf_printf(text, "  %-9s %s, %lld bytes\n", dataset_origin_name(got->origin),
                          got->item.name.ptr, (long long)got->item.size_bytes);
        }
    }
    for (size_t idx = 0; idx < done->fetched.n_wanted; idx++) {
        print_wanted(text, job->arena, &done->fetched.wanted[idx]);
    }
    for (size_t idx = 0; idx < done->n_files && idx < VERIFY_SHOWN_MAX; idx++) {
        strbuf_printf(text, "  again     %s\n", done->files[idx]);
    }
    if (done->n_files > VERIFY_SHOWN_MAX) {
        strbuf_printf(text, "  and %zu more (--json has all)\n", done->n_files - VERIFY_SHOWN_MAX);
    }
}

int dataset_op_repair(struct artifact_job *job, const struct artifact *artifact,
                      struct artifact_sink *sink, struct err *err)
{
    struct dataset_here here;
    struct dataset_repaired done;
    if (load(job, artifact, &here, err) < 0 || net_open(job->net, err) < 0) {
        return -1;
    }
    /* Without the cache: bit rot is only noticed by reading. */
    struct dataset_verify_opts verify = verify_opts(job, DEPTH_NORMAL, NULL);
    verify.folder = job->folder;
    const struct dataset_fetch_opts fetch = {.net = job->net, .self = job->ctx->self};
    const struct dataset_repair_opts opts = {
        .fetch = &fetch, .verify = &verify, .from = job->from, .removes_extra = job->removes_extra};
    int result = dataset_repair(job->arena, job->store, &here, &opts, &done, err);
    put_repaired(sink->out, &here, &done);
    print_repaired(job, sink->text, &here, &done);
    return result;
}
