/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"

#include "codec/json_document.h"
#include "store/image_store.h"
#include "store/lock_file.h"
#include "store/store_verify.h"

/* ---- the client ---- */

static int open_registry(struct artifact_job *job, struct registry *ret_registry, struct err *err)
{
    const struct net_opts *opts = job->net_opts;
    *ret_registry = (struct registry){
        .clock = job->ctx->clock,
        .tmp_folder = store_path(job->store, "tmp"),
        .proxy = opts->proxy,
        .ca_path = opts->ca_path,
        .auth_path = opts->auth_path,
        .plain_hosts = opts->plain_hosts,
        .n_plain_hosts = opts->n_plain_hosts,
        .n_retries = opts->n_retries,
        .wants_progress = opts->wants_progress,
    };
    if (opts->n_connections || opts->rate_bytes_per_s) {
        return err_set(err, ERR_USAGE,
                       "--%s: an image is fetched by skopeo, which has no such limit",
                       opts->n_connections ? "connections" : "rate");
    }
    return 0;
}

static int load_spec(struct artifact_job *job, const struct artifact *artifact,
                     struct image_spec *ret_spec, struct err *err)
{
    return image_spec_load(job->arena, job->ctx->root, job->locks,
                           str_z(job->arena, artifact->name), ret_spec, err);
}

/* ---- fetch ---- */

static int op_fetch(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                    struct err *err)
{
    const struct net_opts *opts = job->net_opts;
    struct registry registry;
    struct image_places places = {.mirror = opts->mirror,
                                  .layouts = opts->layouts,
                                  .n_layouts = opts->n_layouts,
                                  .clock = job->ctx->clock,
                                  .registry = opts->is_offline ? NULL : &registry};
    struct image_fetched fetched;
    struct image_spec spec;
    if (load_spec(job, artifact, &spec, err) < 0 ||
        (!opts->is_offline && open_registry(job, &registry, err) < 0) ||
        image_fetch(job->arena, job->store, &spec, &places, &fetched, err) < 0) {
        return -1;
    }
    json_encode(out, IMAGE_INFO_ROWS, IMAGE_INFO_ROWS_N, &fetched.info);
    jw_bool(out, "locked", spec.is_locked);
    jw_bool(out, "was_there", fetched.was_there);
    jw_i64(out, "fetched_bytes", (int64_t)fetched.fetched_bytes);
    jw_i64(out, "kept_bytes", (int64_t)fetched.kept_bytes);
    return 0;
}

/* fetch --dry-run: bytes by the store or the lock, without asking a registry. */
static int op_foresee(struct artifact_job *job, const struct artifact *artifact,
                      struct json_out *out, struct err *err)
{
    struct image_info info;
    struct image_spec spec;
    if (load_spec(job, artifact, &spec, err) < 0) {
        return -1;
    }
    const bool is_there = image_open(job->arena, job->store, spec.name, &info, ERR_IGNORED) == 0;
    jw_bool(out, "there", is_there);
    jw_known(out, "bytes", is_there ? info.bytes : spec.bytes);
    return 0;
}

/* ---- verify ---- */

static int op_verify(struct artifact_job *job, const struct artifact *artifact,
                     struct json_out *out, struct err *err)
{
    struct image_check check = {.wants_progress = job->net_opts->wants_progress};
    struct image_spec spec;
    if (load_spec(job, artifact, &spec, err) < 0 ||
        image_open(job->arena, job->store, spec.name, &check.info, err) < 0) {
        return -1;
    }
    int result = image_verify(job->arena, job->store, &spec.pins, &check, err);
    if (result < 0 && check.n_faults == 0) {
        return -1;
    }
    json_encode(out, IMAGE_INFO_ROWS, IMAGE_INFO_ROWS_N, &check.info);
    jw_bool(out, "locked", spec.is_locked);
    json_encode(out, IMAGE_CHECK_ROWS, IMAGE_CHECK_ROWS_N, &check);
    return result;
}

/* ---- repair ---- */

/* What is corrupt goes into quarantine, and fetch gets what is missing. */
static int op_repair(struct artifact_job *job, const struct artifact *artifact,
                     struct json_out *out, struct err *err)
{
    const struct store_ref ref = {.kind = IMAGE_KIND, .name = str_z(job->arena, artifact->name)};
    size_t n_bad = 0;
    if (net_open(job->net, err) < 0) {
        return -1;
    }
    const struct store_verify_opts opts = {.pool = job->net->pool,
                                           .n_threads = 1,
                                           .now_ns = job->ctx->clock.wall_ns(job->ctx->clock.ctx)};
    if (store_verify_ref(job->arena, job->store, &opts, &ref, &n_bad, err) < 0) {
        return -1;
    }
    jw_i64(out, "bad_blobs", (int64_t)n_bad);
    return op_fetch(job, artifact, out, err);
}

/* ---- lock ---- */

static int op_lock(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                   struct err *err)
{
    struct registry registry;
    struct image_spec spec;
    struct image_info info;
    bool is_new;
    if (load_spec(job, artifact, &spec, err) < 0) {
        return -1;
    }
    if (!spec.ref.tag.ptr && !spec.ref.has_digest) {
        return err_set(
            err, ERR_MANIFEST,
            "image %s: is built and not pulled, there is no tag to lock: images/build.sh "
            "%s --store makes it",
            spec.name, spec.name);
    }
    if (job->net_opts->is_offline) {
        return err_set(err, ERR_FETCH, "image %s: what its tag means cannot be asked offline",
                       spec.name);
    }
    if (open_registry(job, &registry, err) < 0 ||
        image_resolve(job->arena, &registry, &spec, &info, err) < 0) {
        return -1;
    }
    const struct str date = clock_text(job->arena, job->ctx->clock);
    const struct {
        const char *name;
        const uint8_t *sha256;
        uint64_t size_bytes;
    } rows[] = {
        {IMAGE_LOCK_DIGEST, info.pins.digest, info.list.ptr ? info.list.len : info.text.len},
        {IMAGE_LOCK_MANIFEST, info.pins.manifest, info.text.len},
        {IMAGE_LOCK_CONFIG, info.pins.config, info.manifest.config.size_bytes},
        {IMAGE_LOCK_LAYERS, NULL, oci_manifest_bytes(&info.manifest)},
    };
    struct lock_item items[ARRAY_LEN(rows)] = {0};
    const struct lock lock = {.kind = LOCK_IMAGE,
                              .id = artifact->name,
                              .items = items,
                              .n_items = ARRAY_LEN(items),
                              .n_files = -1,
                              .file_bytes = -1};
    for (size_t idx = 0; idx < ARRAY_LEN(rows); idx++) {
        items[idx] = (struct lock_item){.name = str_of(rows[idx].name),
                                        .size_bytes = (int64_t)rows[idx].size_bytes,
                                        .has_sha256 = rows[idx].sha256,
                                        .ref = spec.ref.tag,
                                        .url = str_of(oci_ref_name(job->arena, &spec.ref)),
                                        .date = date};
        if (rows[idx].sha256) {
            memcpy(items[idx].sha256, rows[idx].sha256, SHA256_BYTES);
        }
    }
    if (lock_settle(job->arena,
                    lock_folder(job->arena, job->ctx->root, job->locks, LOCK_IMAGE, spec.name),
                    &lock, &is_new, err) < 0) {
        return -1;
    }
    jw_z(out, "reference", oci_ref_text(job->arena, &spec.ref));
    for (size_t idx = 0; rows[idx].sha256; idx++) {
        jw_z(out, rows[idx].name, oci_digest_of(rows[idx].sha256).text);
    }
    jw_bool(out, "new", is_new);
    return 0;
}

const artifact_fn IMAGE_OPS[VERBS_N] = {[VERB_FETCH] = op_fetch,
                                        [VERB_VERIFY] = op_verify,
                                        [VERB_LOCK] = op_lock,
                                        [VERB_REPAIR] = op_repair,
                                        [VERB_FORESEE] = op_foresee};
