/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>

#include "base/progress.h"
#include "codec/unpack_filter.h"
#include "store/image_impl.h"
#include "sys/pool.h"

#define READ_BYTES (256u << 10)
/* The highest possible ratio: zeros in gzip give 1030. A layer beyond it is a decompression bomb. */
#define RATIO_MAX  100000
#define FAULTS_MAX 64

const struct json_field IMAGE_CHECK_ROWS[IMAGE_CHECK_ROWS_N] = {
    ROW("blobs", struct image_check, n_blobs, 0),
    ROW("packed_bytes", struct image_check, packed_bytes, 0),
    ROW("unpacked_bytes", struct image_check, unpacked_bytes, 0),
    ROW_STRS("faults", struct image_check, faults, n_faults, 0),
};

/* One thread of the pool checks one blob; all in it is its own. */
struct blob_check {
    const char *path;
    const char *what; /* "layer 3 of 9 sha256:0123456789ab" */
    struct oci_descriptor blob;
    const uint8_t *diff_id; /* NULL: it is not unpacked */
    /* while it runs */
    int fd;
    uint8_t *buf;
    struct digest packed;
    const atomic_bool *is_stopped;
    atomic_uint_least64_t at_bytes;
    uint64_t unpacked_bytes;
    struct err fault; /* ERR_NONE: none */
};

/* ---- one blob ---- */

static int next_packed(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct blob_check *check = ctx;
    if (atomic_load(check->is_stopped)) {
        return err_set(err, ERR_INTERRUPTED, "stopped");
    }
    if (fs_fill(check->fd, check->buf, READ_BYTES, check->path, ret_len, err) < 0) {
        return -1;
    }
    atomic_fetch_add(&check->at_bytes, *ret_len);
    *ret_ptr = check->buf;
    digest_update(&check->packed, check->buf, *ret_len);
    return 0;
}

/* To the end of the blob, or of what it unpacks to. */
static int read_all(struct blob_check *check, struct unpack_filter *filter, struct digest *unpacked,
                    struct err *err)
{
    const void *ptr;
    size_t len = 1;
    while (len > 0) {
        if ((filter ? unpack_filter_next(filter, &ptr, &len, err)
                    : next_packed(check, &ptr, &len, err)) < 0) {
            return -1;
        }
        digest_update(unpacked, ptr, len);
        if (unpacked->size_bytes / RATIO_MAX > check->blob.size_bytes) {
            return err_set(err, ERR_INTEGRITY, "it unpacks to more than %d times its own size",
                           RATIO_MAX);
        }
    }
    return 0;
}

static int unpack_all(struct blob_check *check, struct digest *unpacked, struct err *err)
{
    CLEANUP(unpack_filter) struct unpack_filter *filter = NULL;
    if (check->diff_id && check->blob.packing != OCI_TAR &&
        unpack_filter_new(next_packed, check, check->blob.packing == OCI_TAR_ZSTD, &filter, err) <
            0) {
        return -1;
    }
    return read_all(check, filter, unpacked, err);
}

static int judge(const struct blob_check *check, const struct digest_value *packed,
                 const struct digest_value *unpacked, const struct err *unpack_err, struct err *err)
{
    if (packed->size_bytes != check->blob.size_bytes) {
        return err_set(err, ERR_INTEGRITY, "expected %" PRIu64 " bytes, found %" PRIu64,
                       check->blob.size_bytes, packed->size_bytes);
    }
    if (memcmp(packed->sha256, check->blob.sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "corrupt: its bytes are %s",
                       oci_digest_of(packed->sha256).text);
    }
    if (unpack_err->code != ERR_NONE) {
        *err = *unpack_err;
        return err_wrap(err, "does not unpack");
    }
    return !check->diff_id || memcmp(unpacked->sha256, check->diff_id, SHA256_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "unpacks to %s, the config says %s",
                         oci_digest_of(unpacked->sha256).text, oci_digest_of(check->diff_id).text);
}

static int check_blob(struct blob_check *check, struct err *err)
{
    CLEANUP(free) uint8_t *buf = xmalloc(READ_BYTES);
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct err unpack_err = {0};
    CLEANUP(fd) int fd = open(check->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? err_set(err, ERR_INTEGRITY, "missing")
                               : err_errno(err, "open", check->path);
    }
    check->fd = fd;
    check->buf = buf;
    digest_start(&check->packed, DIGEST_SHA256);
    digest_start(&digest, DIGEST_SHA256);
    if (unpack_all(check, &digest, &unpack_err) < 0 && unpack_err.code != ERR_INTEGRITY &&
        unpack_err.code != ERR_PARSE) {
        return err_pass(err, &unpack_err);
    }
    const struct digest_value unpacked = digest_finish(&digest);
    check->unpacked_bytes = check->diff_id ? unpacked.size_bytes : 0;
    /* What the unpacker left unread, so that the digest is the whole blob's. */
    digest_start(&digest, DIGEST_SHA256);
    if (read_all(check, NULL, &digest, err) < 0) {
        return -1;
    }
    const struct digest_value packed = digest_finish(&check->packed);
    return judge(check, &packed, &unpacked, &unpack_err, err);
}

/* ---- all ---- */

struct verify {
    struct arena *arena;
    const struct store *store;
    struct blob_check *checks;
    size_t n_checks;
    struct image_check *out;
    struct progress progress;
};

static void add_fault(struct verify *v, const char *what, const char *why)
{
    if (v->out->n_faults < FAULTS_MAX) {
        v->out->faults[v->out->n_faults++] = str_printf(v->arena, "%s: %s", what, why);
    }
}

static void add_blob(struct verify *v, const char *role, const struct oci_descriptor *blob,
                     const uint8_t *diff_id)
{
    v->checks[v->n_checks++] = (struct blob_check){
        .path = store_blob_path(v->store, blob->sha256),
        .what = arena_printf(v->arena, "%s %s", role, oci_digest_of(blob->sha256).text),
        .blob = *blob,
        .diff_id = diff_id};
}

static void add_doc(struct verify *v, const char *role, const uint8_t *sha256)
{
    struct oci_descriptor blob = {0};
    memcpy(blob.sha256, sha256, SHA256_BYTES);
    /* Its length is not stated elsewhere; its digest covers it. */
    (void)store_has(v->store, sha256, &blob.size_bytes);
    add_blob(v, role, &blob, NULL);
}

/* The config must be verified before its diff_ids mean anything: where it is not there or corrupt, its own check says so. */
static int read_config(struct verify *v, uint8_t (**ret_diff_ids)[SHA256_BYTES], struct err *err)
{
    const struct image_info *info = &v->out->info;
    const char *path = store_blob_path(v->store, info->manifest.config.sha256);
    uint8_t found[SHA256_BYTES];
    struct err why = {0};
    struct str text;
    if (fs_read(v->arena, path, OCI_CONFIG_BYTES_MAX, &text, &why) < 0) {
        *err = why.code == ERR_NOT_FOUND ? *err : why;
        return why.code == ERR_NOT_FOUND ? 0 : -1;
    }
    sha256_of(text, found);
    if (memcmp(found, info->manifest.config.sha256, SHA256_BYTES) == 0 &&
        oci_config_parse(v->arena, text, info->manifest.n_layers, "config", ret_diff_ids, &why) <
            0) {
        add_fault(v, "config", why.msg);
    }
    return 0;
}

static int list_blobs(struct verify *v, struct err *err)
{
    const struct image_info *info = &v->out->info;
    const size_t n_layers = info->manifest.n_layers;
    uint8_t(*diff_ids)[SHA256_BYTES] = NULL;
    v->checks = arena_array(v->arena, struct blob_check, n_layers + 3);
    if (read_config(v, &diff_ids, err) < 0) {
        return -1;
    }
    if (memcmp(info->pins.digest, info->pins.manifest, SHA256_BYTES) != 0) {
        add_doc(v, "list", info->pins.digest);
    }
    add_doc(v, "manifest", info->pins.manifest);
    add_blob(v, "config", &info->manifest.config, NULL);
    for (size_t idx = 0; idx < n_layers; idx++) {
        add_blob(v, arena_printf(v->arena, "layer %zu of %zu", idx + 1, n_layers),
                 &info->manifest.layers[idx], diff_ids ? diff_ids[idx] : NULL);
    }
    return 0;
}

static void show(void *ctx, size_t n_begun UNUSED)
{
    struct verify *v = ctx;
    uint64_t bytes = 0;
    for (size_t idx = 0; idx < v->n_checks; idx++) {
        bytes += atomic_load(&v->checks[idx].at_bytes);
    }
    progress_set(&v->progress, bytes);
}

/* A fault of the blob does not end the others' checks. */
static int check_nth(void *ctx, size_t idx, const atomic_bool *is_stopped, struct err *err)
{
    struct verify *v = ctx;
    struct blob_check *check = &v->checks[idx];
    check->is_stopped = is_stopped;
    int result = check_blob(check, &check->fault);
    digest_release(&check->packed);
    if (result < 0 && check->fault.code != ERR_INTEGRITY) {
        *err = check->fault;
        return err_wrap(err, "%s", check->what);
    }
    return 0;
}

static int run_checks(struct verify *v, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct pool_many many = {.n_threads = pool_lanes().n,
                             .n = v->n_checks,
                             .each = check_nth,
                             .on_tick = v->out->wants_progress ? show : NULL,
                             .ctx = v};
    if (pool_new(many.n_threads, &pool, err) < 0) {
        return -1;
    }
    many.pool = pool;
    progress_start(&v->progress, clock_system(), "verify", "bytes", (uint64_t)v->out->info.bytes);
    int result = pool_many(&many, err);
    if (v->out->wants_progress) {
        progress_end(&v->progress);
    }
    for (size_t idx = 0; idx < v->n_checks; idx++) {
        const struct blob_check *check = &v->checks[idx];
        if (check->fault.code == ERR_INTEGRITY) {
            add_fault(v, check->what, check->fault.msg);
        }
        v->out->packed_bytes += atomic_load(&check->at_bytes);
        v->out->unpacked_bytes += check->unpacked_bytes;
    }
    v->out->n_blobs = v->n_checks;
    return result < 0 ? err_wrap(err, "verify") : 0;
}

int image_verify(struct arena *arena, const struct store *store, const struct image_pins *pins,
                 struct image_check *check, struct err *err)
{
    struct verify v = {.arena = arena, .store = store, .out = check};
    struct err why = {0};
    check->faults = arena_array(arena, struct str, FAULTS_MAX);
    if (image_check_pins(pins, &check->info.pins, "the lock", &why) < 0) {
        add_fault(&v, "image", why.msg);
    }
    if (list_blobs(&v, err) < 0 || run_checks(&v, err) < 0) {
        return -1;
    }
    return check->n_faults == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "image %s: %s%s", check->info.name,
                         check->faults[0].ptr, check->n_faults > 1 ? ", and more" : "");
}
