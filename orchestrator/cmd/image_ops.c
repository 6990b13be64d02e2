/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"

#include "codec/json_document.h"
#include "store/image_store.h"
#include "store/lock_file.h"
#include "store/store_verify.h"

/* ---- telling ---- */

static void put_digest(struct json_out *out, const char *key, const uint8_t *sha256)
{
    jw_z(out, key, oci_digest_of(sha256).text);
}

void image_info_json(struct json_out *out, const struct image_info *info)
{
    jw_str(out, "reference", info->reference);
    jw_str(out, "platform", info->platform);
    put_digest(out, "digest", info->pins.digest);
    put_digest(out, "manifest", info->pins.manifest);
    put_digest(out, "config", info->pins.config);
    jw_i64(out, "layers", (int64_t)info->manifest.n_layers);
    jw_i64(out, "bytes", (int64_t)info->bytes);
    jw_str(out, "from", info->from);
    jw_z(out, "date", info->date.ptr);
}

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

static const char *locks_of(const struct artifact_job *job, const char *name)
{
    return lock_folder(job->arena, job->ctx->root, job->locks, LOCK_IMAGE, name);
}

/* ---- fetch ---- */

static int op_fetch(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                    struct err *err)
{
    struct registry registry;
    struct image_places places = {.mirror = job->net_opts->mirror,
                                  .layouts = job->net_opts->layouts,
                                  .n_layouts = job->net_opts->n_layouts,
                                  .clock = job->ctx->clock};
    const char *name = str_z(job->arena, artifact->name);
    struct image_fetched fetched;
    struct image_spec spec;
    if (image_spec_load(job->arena, job->ctx->root, job->locks, name, &spec, err) < 0 ||
        (!job->net_opts->is_offline && open_registry(job, &registry, err) < 0)) {
        return -1;
    }
    places.registry = job->net_opts->is_offline ? NULL : &registry;
    if (image_fetch(job->arena, job->store, &spec, &places, &fetched, err) < 0) {
        return -1;
    }
    image_info_json(out, &fetched.info);
    jw_bool(out, "locked", spec.is_locked);
    jw_bool(out, "was_there", fetched.was_there);
    jw_i64(out, "fetched_bytes", (int64_t)fetched.got.fetched_bytes);
    jw_i64(out, "kept_bytes", (int64_t)fetched.got.kept_bytes);
    return 0;
}

/* ---- fetch --dry-run ---- */

/* Bytes by the store or the lock, without asking a registry. */
static int op_foresee(struct artifact_job *job, const struct artifact *artifact,
                      struct json_out *out, struct err *err)
{
    const char *name = str_z(job->arena, artifact->name);
    struct image_info info;
    struct image_spec spec;
    if (image_spec_load(job->arena, job->ctx->root, job->locks, name, &spec, err) < 0) {
        return -1;
    }
    const bool is_there = image_open(job->arena, job->store, name, &info, ERR_IGNORED) == 0;
    jw_bool(out, "there", is_there);
    jw_known(out, "bytes", is_there ? (int64_t)info.bytes : spec.bytes);
    return 0;
}

/* ---- verify ---- */

static int op_verify(struct artifact_job *job, const struct artifact *artifact,
                     struct json_out *out, struct err *err)
{
    const char *name = str_z(job->arena, artifact->name);
    struct image_check check = {0};
    struct image_spec spec;
    int result;
    if (image_spec_load(job->arena, job->ctx->root, job->locks, name, &spec, err) < 0) {
        return -1;
    }
    result = image_verify(
        job->arena, job->store,
        &(struct image_verify_opts){
            .name = name, .pins = &spec.pins, .wants_progress = job->net_opts->wants_progress},
        &check, err);
    if (result < 0 && (err->code != ERR_INTEGRITY || check.n_faults == 0)) {
        return -1;
    }
    image_info_json(out, &check.info);
    jw_bool(out, "locked", spec.is_locked);
    jw_i64(out, "blobs", (int64_t)check.n_blobs);
    jw_i64(out, "packed_bytes", (int64_t)check.packed_bytes);
    jw_i64(out, "unpacked_bytes", (int64_t)check.unpacked_bytes);
    jw_array(out, "faults");
    for (size_t idx = 0; idx < check.n_faults; idx++) {
        jw_str(out, NULL, check.faults[idx]);
    }
    jw_end_array(out);
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

static struct lock_item make_item(const char *name, const uint8_t *sha256, uint64_t size_bytes,
                                  const struct image_spec *spec, const char *from, const char *date)
{
    struct lock_item item = {.name = str_of(name),
                             .size_bytes = (int64_t)size_bytes,
                             .has_sha256 = true,
                             .ref = spec->ref.tag,
                             .url = str_of(from),
                             .date = str_of(date)};
    memcpy(item.sha256, sha256, SHA256_BYTES);
    return item;
}

static int op_lock(struct artifact_job *job, const struct artifact *artifact, struct json_out *out,
                   struct err *err)
{
    struct registry registry;
    const char *name = str_z(job->arena, artifact->name);
    struct clock_src clock = job->ctx->clock;
    char date[RFC3339_MAX];
    struct lock_item items[4];
    struct lock lock = {.kind = LOCK_IMAGE,
                        .id = artifact->name,
                        .items = items,
                        .n_items = ARRAY_LEN(items),
                        .n_files = -1,
                        .file_bytes = -1};
    struct image_spec spec;
    struct image_docs docs;
    bool is_new;
    if (image_spec_load(job->arena, job->ctx->root, job->locks, name, &spec, err) < 0) {
        return -1;
    }
    if (!spec.ref.tag.ptr && !spec.ref.has_digest) {
        return err_set(
            err, ERR_MANIFEST,
            "image %s: is built and not pulled, there is no tag to lock: images/build.sh "
            "%s --store makes it",
            name, name);
    }
    if (job->net_opts->is_offline) {
        return err_set(err, ERR_FETCH, "image %s: what its tag means cannot be asked offline",
                       name);
    }
    if (open_registry(job, &registry, err) < 0 ||
        image_resolve(job->arena, &registry, &spec, &docs, err) < 0) {
        return -1;
    }
    const char *from = oci_ref_name(job->arena, &spec.ref);
    clock_rfc3339(clock.wall_ns(clock.ctx), date);
    items[0] = make_item(IMAGE_LOCK_DIGEST, docs.top.sha256, docs.top.text.len, &spec, from, date);
    items[1] =
        make_item(IMAGE_LOCK_MANIFEST, docs.doc.sha256, docs.doc.text.len, &spec, from, date);
    items[2] = make_item(IMAGE_LOCK_CONFIG, docs.manifest.config.sha256,
                         docs.manifest.config.size_bytes, &spec, from, date);
    items[3] = make_item(IMAGE_LOCK_LAYERS, docs.manifest.config.sha256,
                         oci_manifest_bytes(&docs.manifest), &spec, from, date);
    items[3].has_sha256 = false;
    if (lock_settle(job->arena, locks_of(job, name), &lock, &is_new, err) < 0) {
        return -1;
    }
    jw_z(out, "reference", oci_ref_text(job->arena, &spec.ref));
    put_digest(out, "digest", docs.top.sha256);
    put_digest(out, "manifest", docs.doc.sha256);
    put_digest(out, "config", docs.manifest.config.sha256);
    jw_bool(out, "new", is_new);
    return 0;
}

const artifact_fn IMAGE_OPS[VERBS_N] = {[VERB_FETCH] = op_fetch,
                                        [VERB_VERIFY] = op_verify,
                                        [VERB_LOCK] = op_lock,
                                        [VERB_REPAIR] = op_repair,
                                        [VERB_FORESEE] = op_foresee};
