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

/* `fetch --dry-run` of a dataset. */

static void put_foreseen(struct artifact_sink *sink, const struct dataset_foreseen *one)
{
    const char *from = one->is_wanted ? "person" : DATASET_ORIGINS[one->origin];
    jw_object(sink->out, NULL);
    jw_str(sink->out, "name", one->file->name);
    jw_known(sink->out, "bytes", one->bytes);
    jw_z(sink->out, "from", from);
    jw_z(sink->out, "url", one->url);
    jw_end_object(sink->out);
    strbuf_printf(sink->text, "  %-9s %s, ", from, one->file->name.ptr);
    if (one->bytes < 0) {
        strbuf_add_z(sink->text, "size not known");
    } else {
        strbuf_printf(sink->text, "%lld bytes", (long long)one->bytes);
    }
    strbuf_printf(sink->text, "%s%s\n", one->url ? " from " : "", one->url ? one->url : "");
}

static void put_all_foreseen(struct artifact_sink *sink, const struct dataset_here *here,
                             const struct dataset_foreseen_list *list, bool has_tree)
{
    int64_t to_get = 0;
    size_t n_open = 0;
    size_t n_to_get = 0;
    strbuf_printf(sink->text, "%s%s\n", here->dataset.id.ptr,
                  here->is_synthetic ? " (synthetic)" : "");
    jw_bool(sink->out, "synthetic", here->is_synthetic || here->dataset.is_synthetic);
    jw_array(sink->out, "files");
    for (size_t idx = 0; idx < list->n; idx++) {
        bool is_new = list->items[idx].origin != FROM_STORE;
        put_foreseen(sink, &list->items[idx]);
        n_to_get += is_new;
        n_open += is_new && list->items[idx].bytes < 0;
        to_get += is_new && list->items[idx].bytes > 0 ? list->items[idx].bytes : 0;
    }
    jw_end_array(sink->out);
    jw_i64(sink->out, "files_to_get", (int64_t)n_to_get);
    jw_i64(sink->out, "bytes_to_get", to_get);
    jw_i64(sink->out, "files_of_unknown_size", (int64_t)n_open);
    jw_bool(sink->out, "unpacked", has_tree);
    strbuf_printf(sink->text, "  to get: %zu of %zu files, %lld bytes", n_to_get, list->n,
                  (long long)to_get);
    if (n_open) {
        strbuf_printf(sink->text, " and %zu whose size is not known", n_open);
    }
    strbuf_printf(sink->text, "; the tree %s\n",
                  has_tree ? "is there, and would be checked" : "would be unpacked");
}

static int op_foresee(struct artifact_job *job, const struct artifact *artifact,
                      struct artifact_sink *sink, struct err *err)
{
    const struct dataset_fetch_opts opts = {.net = job->net};
    struct dataset_foreseen_list list;
    struct dataset_here here;
    if (load(job, artifact, &here, err) < 0 ||
        dataset_foresee(job->arena, job->store, &here, &opts, &list, err) < 0) {
        return -1;
    }
    put_all_foreseen(sink, &here, &list,
                     dataset_state(job->arena, job->store, &here) == DATASET_TREE);
    return 0;
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

static void print_wanted(struct strbuf *text, struct arena *arena,
                         const struct dataset_wanted *wanted)
{
    const struct dataset_file *file = wanted->file;
    strbuf_printf(text, "  wanted    %s\n", file->name.ptr);
    if (file->size_bytes >= 0) {
        strbuf_printf(text, "    size    %lld bytes (%s)\n", (long long)file->size_bytes,
                      store_size_text(arena, (uint64_t)file->size_bytes));
    } else {
        strbuf_add_z(text, "    size    not known\n");
    }
    strbuf_printf(text, "    MD5     %s\n",
                  file->has_md5 ? md5_hex_of(file->md5).text : "not known");
    strbuf_printf(text, "    SHA-256 %s\n",
                  file->has_sha256 ? sha256_hex_of(file->sha256).text : "not known");
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
        strbuf_printf(text, "  %-9s %s, %lld bytes%s\n", DATASET_ORIGINS[got->origin],
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

static int op_fetch(struct artifact_job *job, const struct artifact *artifact,
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

static const struct json_field LOCKED_ROWS[] = {
    ROW("lock", struct dataset_locked, path, 0),
    ROW("lock_changed", struct dataset_locked, is_new, 0),
};

static int op_lock(struct artifact_job *job, const struct artifact *artifact,
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
    json_encode(sink->out, LOCKED_ROWS, ARRAY_LEN(LOCKED_ROWS), &locked);
    strbuf_printf(sink->text, "%s\n  %s %s: %zu files, a tree of %lld\n", here.name,
                  locked.is_new ? "locked in" : "is as locked in", locked.path, locked.lock.n_items,
                  (long long)locked.lock.n_files);
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
/* Of archives next to a tree, or without one: what each should be, and is. */
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

static void print_digests(struct strbuf *text, const struct dataset_fault *fault)
{
    if (fault->expected && fault->found) {
        strbuf_printf(text, "      expected SHA-256 %s\n", sha256_hex_of(fault->expected).text);
        strbuf_printf(text, "      found    SHA-256 %s, %llu bytes\n",
                      sha256_hex_of(fault->found->sha256).text,
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
            strbuf_printf(text, "  %s: %zu\n", DATASET_FAULTS[fault->kind], v->n_of[fault->kind]);
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
    if (v->n_of[FAULT_HEADER] == v->n_faults) { /* the bytes are the right ones */
        hint = "; the description says otherwise of their kind";
    }
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
    digest_cache_save(cache); /* even if the tree is damaged */
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

static int op_verify(struct artifact_job *job, const struct artifact *artifact,
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
        strbuf_printf(text, "  %zu archive%s lost or corrupt in the store: there again\n",
                      done->n_bad_archives, done->n_bad_archives == 1 ? " was" : "s were");
    }
    for (size_t idx = 0; idx < done->n_extra && idx < VERIFY_SHOWN_MAX; idx++) {
        strbuf_printf(text, "  %-9s %s\n", done->n_removed ? "removed" : "extra", done->extra[idx]);
    }
    if (done->n_extra > VERIFY_SHOWN_MAX) {
        strbuf_printf(text, "  and %zu more that the list does not name\n",
                      done->n_extra - VERIFY_SHOWN_MAX);
    }
    for (size_t idx = 0; idx < done->fetched.n_files; idx++) {
        const struct dataset_got *got = &done->fetched.files[idx];
        if (got->origin != FROM_STORE) {
            strbuf_printf(text, "  %-9s %s, %lld bytes\n", DATASET_ORIGINS[got->origin],
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

static int op_repair(struct artifact_job *job, const struct artifact *artifact,
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

const artifact_fn DATASET_OPS[VERBS_N] = {[VERB_FETCH] = op_fetch,
                                          [VERB_VERIFY] = op_verify,
                                          [VERB_LOCK] = op_lock,
                                          [VERB_REPAIR] = op_repair,
                                          [VERB_FORESEE] = op_foresee};
