/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"

#include "codec/json_document.h"
#include "codec/json_table.h"
#include "store/dataset_lock.h"
#include "store/dataset_repair.h"
#include "store/dataset_store.h"
#include "store/dataset_verify.h"
#include "sys/digest_cache.h"
#include "sys/pool.h"

static int load(struct artifact_job *job, const struct artifact *artifact,
                struct dataset_here *ret_here, struct err *err)
{
    return dataset_load(job->arena,
                        &(struct dataset_which){job->ctx->root, job->locks, artifact->name.ptr,
                                                artifact->is_synthetic},
                        ret_here, err);
}

static struct dataset_job job_of(const struct artifact_job *job, const struct dataset_here *here)
{
    return (struct dataset_job){
        .arena = job->arena,
        .store = job->store,
        .here = here,
        .net = job->net,
        .self = job->ctx->self,
        .samples = job->samples ? job->samples->items : NULL,
        .n_samples = job->samples ? job->samples->n : 0,
        .wants_tree = job->wants_tree,
    };
}

/* ---- fetch --dry-run ---- */

static const struct json_field FORESEEN_ROWS[] = {
    ROW("name", struct dataset_got, item.name, 0),
    ROW("bytes", struct dataset_got, item.size_bytes, JSON_NULLABLE | JSON_MINUS),
    ROW_WORD("from", struct dataset_got, origin, DATASET_ORIGINS, 0),
    ROW("url", struct dataset_got, item.url, JSON_NULLABLE),
};
static const struct json_field FORESEEN_FILES[] = {
    ROW_LIST("files", struct dataset_fetched, files, n_files, FORESEEN_ROWS, 0)};

static void put_foreseen(struct json_out *out, const struct dataset_here *here,
                         const struct dataset_fetched *foreseen, bool has_tree)
{
    int64_t to_get = 0, n_open = 0, n_to_get = 0;
    for (size_t idx = 0; idx < foreseen->n_files; idx++) {
        int64_t bytes = foreseen->files[idx].item.size_bytes;
        if (foreseen->files[idx].origin != FROM_STORE) {
            n_to_get++;
            n_open += bytes < 0;
            to_get += bytes > 0 ? bytes : 0;
        }
    }
    jw_bool(out, "synthetic", here->is_synthetic || here->dataset.is_synthetic);
    json_encode(out, FORESEEN_FILES, ARRAY_LEN(FORESEEN_FILES), foreseen);
    jw_i64(out, "files_to_get", n_to_get);
    jw_i64(out, "bytes_to_get", to_get);
    jw_i64(out, "files_of_unknown_size", n_open);
    jw_bool(out, "unpacked", has_tree);
}

static int op_foresee(struct artifact_job *job, const struct artifact *artifact,
                      struct json_out *out, struct err *err)
{
    struct dataset_fetched foreseen;
    struct dataset_here here = {0};
    const struct dataset_job of = job_of(job, &here);
    if (load(job, artifact, &here, err) < 0 || dataset_foresee(&of, &foreseen, err) < 0) {
        return -1;
    }
    put_foreseen(out, &here, &foreseen,
                 dataset_state(job->arena, job->store, &here) == DATASET_TREE);
    return 0;
}

/* ---- the check of a tree ---- */

static struct dataset_verify_opts verify_opts(const struct artifact_job *job,
                                              enum verify_depth depth, struct digest_cache *cache)
{
    return (struct dataset_verify_opts){.depth = depth,
                                        .pool = job->net->pool,
                                        .n_threads = pool_lanes().n,
                                        .cache = cache,
                                        .clock = job->ctx->clock};
}

/* -1 with the numbers of faults and the command that repairs them. */
static int wrong(const struct artifact_job *job, const struct dataset_here *here,
                 const struct dataset_verified *v, struct err *err)
{
    const char *hint = arena_printf(job->arena, "; reperf data repair %s%s%s%s",
                                    job->folder ? job->folder : "", job->folder ? " --as " : "",
                                    here->dataset.id.ptr, here->is_synthetic ? " --synthetic" : "");
    if (v->n_of[FAULT_HEADER] == v->n_faults) { /* the bytes are the right ones */
        hint = "; the description says otherwise of their kind";
    }
    return err_set(err, ERR_INTEGRITY, "%s does not hold: %s%s",
                   job->folder ? job->folder : here->name, dataset_faults_text(job->arena, v->n_of),
                   hint);
}

static int check_tree(struct artifact_job *job, const struct dataset_here *here,
                      enum verify_depth depth, struct dataset_verified *ret_verified,
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
    digest_cache_save(cache); /* even if the tree is damaged */
    return result;
}

/* A tree that existed before is reported only after its files were checked. */
static int check_there(struct artifact_job *job, const struct dataset_here *here, struct err *err)
{
    struct dataset_verified verified;
    if (check_tree(job, here, DEPTH_QUICK, &verified, err) < 0) {
        return -1;
    }
    return verified.verdict != VERDICT_WRONG ? 0 : wrong(job, here, &verified, err);
}

/* ---- fetch ---- */

static const struct json_field FILE_ROWS[] = {
    ROW("name", struct dataset_got, item.name, 0),
    ROW("bytes", struct dataset_got, item.size_bytes, 0),
    ROW_HEX("md5", struct dataset_got, item.md5, item.has_md5, JSON_NULLABLE),
    ROW_HEX("sha256", struct dataset_got, item.sha256, item.has_sha256, 0),
    ROW_WORD("from", struct dataset_got, origin, DATASET_ORIGINS, 0),
    ROW("digest_was_known", struct dataset_got, is_checked, 0),
    ROW("url", struct dataset_got, item.url, JSON_NULLABLE),
    ROW("received_bytes", struct dataset_got, received_bytes, 0),
    ROW("kept_bytes", struct dataset_got, kept_bytes, 0),
    ROW("again_bytes", struct dataset_got, again_bytes, 0),
    ROW("bad_pieces", struct dataset_got, n_bad_pieces, 0),
};
static const struct json_field WANTED_FILE_ROWS[] = {
    ROW("name", struct dataset_file, name, 0),
    ROW("bytes", struct dataset_file, size_bytes, JSON_NULLABLE | JSON_MINUS),
    ROW_HEX("md5", struct dataset_file, md5, has_md5, JSON_NULLABLE),
    ROW_HEX("sha256", struct dataset_file, sha256, has_sha256, JSON_NULLABLE),
    ROW_STRS("urls", struct dataset_file, urls, n_urls, 0),
};
static const struct json_field WANTED_ROWS[] = {
    ROW_THERE(struct dataset_wanted, file, WANTED_FILE_ROWS),
    ROW("put", struct dataset_wanted, put_path, 0),
};
static const struct json_field FETCHED_ROWS[] = {
    ROW_LIST("files", struct dataset_fetched, files, n_files, FILE_ROWS, 0),
    ROW_LIST("wanted", struct dataset_fetched, wanted, n_wanted, WANTED_ROWS, 0),
};
static const struct json_field TREE_ROWS[] = {
    ROW("tree", struct dataset_fetched, tree_path, JSON_NULLABLE),
    ROW("tree_files", struct dataset_fetched, tree.seen.n_files, JSON_NULLABLE | JSON_MINUS),
    ROW("tree_bytes", struct dataset_fetched, tree.seen.file_bytes, JSON_NULLABLE | JSON_MINUS),
    ROW_HEX("list_sha256", struct dataset_fetched, tree.seen.list_sha256, has_tree, JSON_NULLABLE),
};

static void put_fetched(struct json_out *out, const struct dataset_here *here,
                        const struct dataset_fetched *fetched)
{
    static const struct dataset_fetched NO_TREE = {.tree.seen = {.n_files = -1, .file_bytes = -1}};
    jw_bool(out, "synthetic", here->is_synthetic || here->dataset.is_synthetic);
    json_encode(out, FETCHED_ROWS, ARRAY_LEN(FETCHED_ROWS), fetched);
    json_encode(out, TREE_ROWS, ARRAY_LEN(TREE_ROWS), fetched->has_tree ? fetched : &NO_TREE);
}

static int op_fetch(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                    struct err *err)
{
    struct dataset_here here = {0};
    struct dataset_fetched fetched = {0};
    const struct dataset_job of = job_of(job, &here);
    if (load(job, artifact, &here, err) < 0) {
        return -1;
    }
    int result = dataset_fetch(&of, &fetched, err);
    if (result == 0 && fetched.was_there) {
        result = check_there(job, &here, err);
    }
    put_fetched(out, &here, &fetched);
    return result;
}

/* ---- lock ---- */

static const struct json_field LOCKED_ROWS[] = {
    ROW("lock", struct dataset_locked, path, 0),
    ROW("lock_changed", struct dataset_locked, is_new, 0),
};

static int op_lock(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                   struct err *err)
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
    struct dataset_job of = job_of(job, &here);
    of.wants_tree = true;
    int result = dataset_fetch(&of, &fetched, err);
    put_fetched(out, &here, &fetched);
    if (result < 0 || dataset_lock(&of, &fetched, &locked, err) < 0) {
        return -1;
    }
    json_encode(out, LOCKED_ROWS, ARRAY_LEN(LOCKED_ROWS), &locked);
    return 0;
}

/* ---- verify ---- */

static void put_digest(struct json_out *out, const char *key, const uint8_t *sha256)
{
    jw_z(out, key, sha256 ? sha256_hex_of(sha256).text : NULL);
}

static void put_expected(struct json_out *out, const char *key, const void *fault)
{
    put_digest(out, key, ((const struct dataset_fault *)fault)->expected);
}

static void put_found(struct json_out *out, const char *key, const void *fault)
{
    const struct digest_value *found = ((const struct dataset_fault *)fault)->found;
    put_digest(out, key, found ? found->sha256 : NULL);
}

static void put_archive_bytes(struct json_out *out, const char *key, const void *of)
{
    const struct dataset_archive *archive = of;
    jw_known(out, key, archive->is_there ? (int64_t)archive->found.size_bytes : -1);
}

static const struct json_field FAULT_ROWS[] = {
    ROW_WORD("kind", struct dataset_fault, kind, DATASET_FAULTS, 0),
    ROW("path", struct dataset_fault, path, 0),
    ROW("why", struct dataset_fault, why, JSON_NULLABLE),
    ROW_OUT("expected_sha256", JSON_HEX, put_expected, 0),
    ROW_OUT("found_sha256", JSON_HEX, put_found, 0),
    ROW_VIA("found_bytes", struct dataset_fault, found, size_bytes, JSON_NULLABLE),
};
static const struct json_field EXPECTED_ROWS[] = {
    ROW("expected_bytes", struct dataset_file, size_bytes, JSON_NULLABLE | JSON_MINUS),
    ROW_HEX("expected_md5", struct dataset_file, md5, has_md5, JSON_NULLABLE),
    ROW_HEX("expected_sha256", struct dataset_file, sha256, has_sha256, JSON_NULLABLE),
};
/* Each archive next to a tree, or without one: what it should be, and what it is. */
static const struct json_field ARCHIVE_ROWS[] = {
    ROW_VIA("name", struct dataset_archive, file, name, 0),
    ROW("there", struct dataset_archive, is_there, 0),
    ROW("holds", struct dataset_archive, is_right, 0),
    ROW_THERE(struct dataset_archive, file, EXPECTED_ROWS),
    ROW_OUT("found_bytes", JSON_I64, put_archive_bytes, 0),
    ROW_HEX("found_md5", struct dataset_archive, found.md5, is_there, JSON_NULLABLE),
    ROW_HEX("found_sha256", struct dataset_archive, found.sha256, is_there, JSON_NULLABLE),
};
static const struct json_field GROUP_ROWS[] = {
    ROW("name", struct dataset_group_count, name, 0),
    ROW("files", struct dataset_group_count, n_files, 0),
    ROW("expected_files", struct dataset_group_count, wanted_files, JSON_NULLABLE | JSON_MINUS),
    ROW("folders", struct dataset_group_count, n_folders, 0),
    ROW("expected_folders", struct dataset_group_count, wanted_folders, JSON_NULLABLE | JSON_MINUS),
};
static const struct json_field VERIFIED_ROWS[] = {
    ROW_WORD("verdict", struct dataset_verified, verdict, DATASET_VERDICTS, 0),
    ROW("tree", struct dataset_verified, tree_path, JSON_NULLABLE),
    ROW_HEX("list_sha256", struct dataset_verified, tree.seen.list_sha256, tree.seen.has_list,
            JSON_NULLABLE),
    ROW("files", struct dataset_verified, n_files, 0),
    ROW("files_from_cache", struct dataset_verified, n_from_cache, 0),
    ROW("bytes_read", struct dataset_verified, n_bytes_read, 0),
    ROW("headers", struct dataset_verified, n_headers, 0),
    ROW_LIST("groups", struct dataset_verified, groups, n_groups, GROUP_ROWS, 0),
    ROW_LIST("faults", struct dataset_verified, faults, n_faults, FAULT_ROWS, 0),
    ROW_LIST("archives", struct dataset_verified, archives, n_archives, ARCHIVE_ROWS, 0),
    {ROW_AT("not_checked", JSON_ZS, struct dataset_verified, not_checked)},
};

static void put_verified(struct json_out *out, const struct dataset_here *here,
                         const struct dataset_verified *v)
{
    jw_bool(out, "synthetic", here->is_synthetic);
    json_encode(out, VERIFIED_ROWS, ARRAY_LEN(VERIFIED_ROWS), v);
}

static int op_verify(struct artifact_job *job, const struct artifact *artifact,
                     struct json_out *out, struct err *err)
{
    struct dataset_here here;
    struct dataset_verified verified;
    if (load(job, artifact, &here, err) < 0 ||
        check_tree(job, &here, job->depth, &verified, err) < 0) {
        return -1;
    }
    put_verified(out, &here, &verified);
    return verified.verdict != VERDICT_WRONG ? 0 : wrong(job, &here, &verified, err);
}

/* ---- repair ---- */

static const struct json_field REPAIRED_ROWS[] = {
    ROW("was_whole", struct dataset_repaired, was_whole, 0),
    ROW("made_anew", struct dataset_repaired, is_anew, 0),
    ROW("bad_archives", struct dataset_repaired, n_bad_archives, 0),
    ROW("removed", struct dataset_repaired, n_removed, 0),
    {ROW_AT("files", JSON_ZS, struct dataset_repaired, files)},
    ROW_LIST("archives", struct dataset_repaired, fetched.files, fetched.n_files, FILE_ROWS, 0),
};

static void put_repaired(struct json_out *out, const struct dataset_here *here,
                         const struct dataset_repaired *done)
{
    jw_bool(out, "synthetic", here->is_synthetic);
    json_encode(out, REPAIRED_ROWS, ARRAY_LEN(REPAIRED_ROWS), done);
}

static int op_repair(struct artifact_job *job, const struct artifact *artifact,
                     struct json_out *out, struct err *err)
{
    struct dataset_here here;
    struct dataset_repaired done;
    if (load(job, artifact, &here, err) < 0 || net_open(job->net, err) < 0) {
        return -1;
    }
    /* Without the cache: bit rot is only noticed by reading. */
    struct dataset_verify_opts verify = verify_opts(job, DEPTH_NORMAL, NULL);
    verify.folder = job->folder;
    const struct dataset_job of = job_of(job, &here);
    const struct dataset_repair_opts opts = {
        .verify = &verify, .from = job->from, .removes_extra = job->removes_extra};
    int result = dataset_repair(&of, &opts, &done, err);
    put_repaired(out, &here, &done);
    return result;
}

const artifact_fn DATASET_OPS[VERBS_N] = {[VERB_FETCH] = op_fetch,
                                          [VERB_VERIFY] = op_verify,
                                          [VERB_LOCK] = op_lock,
                                          [VERB_REPAIR] = op_repair,
                                          [VERB_FORESEE] = op_foresee};
