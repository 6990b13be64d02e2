/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/progress.h"
#include "codec/unpack_filter.h"
#include "store/image_impl.h"
#include "sys/pool.h"

#define READ_BYTES (256u << 10)
/* The highest possible ratio: zeros in gzip give 1030. A layer beyond it is a decompression bomb. */
#define RATIO_MAX 100000

struct blob_check { /* by one thread of the pool; all in it is its own */
    const char *path;
    const char *what; /* "layer 3 of 9 sha256:0123456789ab" */
    uint64_t size_bytes;
    uint8_t sha256[SHA256_BYTES];
    bool has_diff_id;
    enum oci_packing packing;
    uint8_t diff_id[SHA256_BYTES];
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
    ssize_t got;
    if (atomic_load(check->is_stopped)) {
        return err_set(err, ERR_INTERRUPTED, "stopped");
    }
    do {
        got = read(check->fd, check->buf, READ_BYTES);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return err_errno(err, "read", check->path);
    }
    atomic_fetch_add(&check->at_bytes, (uint64_t)got);
    *ret_ptr = check->buf;
    *ret_len = (size_t)got;
    digest_update(&check->packed, check->buf, (size_t)got);
    return 0;
}

static int next_unpacked(struct blob_check *check, struct unpack_filter *filter,
                         const void **ret_ptr, size_t *ret_len, struct err *err)
{
    return filter ? unpack_filter_next(filter, ret_ptr, ret_len, err)
                  : next_packed(check, ret_ptr, ret_len, err);
}

static int unpack_all(struct blob_check *check, struct digest_value *ret_value, struct err *err)
{
    CLEANUP(unpack_filter) struct unpack_filter *filter = NULL;
    CLEANUP(digest) struct digest unpacked = DIGEST_EMPTY;
    const void *ptr;
    size_t len = 1;
    digest_start(&unpacked, DIGEST_SHA256);
    if (check->packing != OCI_TAR &&
        unpack_filter_new(next_packed, check, check->packing == OCI_TAR_ZSTD, &filter, err) < 0) {
        return -1;
    }
    while (len > 0) {
        if (next_unpacked(check, filter, &ptr, &len, err) < 0) {
            return -1;
        }
        digest_update(&unpacked, ptr, len);
        if (unpacked.size_bytes / RATIO_MAX > check->size_bytes) {
            return err_set(err, ERR_INTEGRITY, "it unpacks to more than %d times its own size",
                           RATIO_MAX);
        }
    }
    *ret_value = digest_finish(&unpacked);
    return 0;
}

/* What the unpacker left unread, so that the digest is the whole blob's. */
static int read_rest(struct blob_check *check, struct digest_value *ret_value, struct err *err)
{
    const void *ptr;
    size_t len = 1;
    while (len > 0) {
        if (next_packed(check, &ptr, &len, err) < 0) {
            return -1;
        }
    }
    *ret_value = digest_finish(&check->packed);
    return 0;
}

static int judge(const struct blob_check *check, const struct digest_value *packed,
                 const struct digest_value *unpacked, const struct err *unpack_err, struct err *err)
{
    if (packed->size_bytes != check->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "expected %" PRIu64 " bytes, found %" PRIu64,
                       check->size_bytes, packed->size_bytes);
    }
    if (memcmp(packed->sha256, check->sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "corrupt: its bytes are %s",
                       oci_digest_of(packed->sha256).text);
    }
    if (unpack_err->code != ERR_NONE) {
        *err = *unpack_err;
        return err_wrap(err, "does not unpack");
    }
    if (check->has_diff_id && memcmp(unpacked->sha256, check->diff_id, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY, "unpacks to %s, the config says %s",
                       oci_digest_of(unpacked->sha256).text, oci_digest_of(check->diff_id).text);
    }
    return 0;
}

static int check_blob(struct blob_check *check, struct err *err)
{
    CLEANUP(free) uint8_t *buf = xmalloc(READ_BYTES);
    struct digest_value packed = {0}, unpacked = {0};
    struct err unpack_err = {0};
    CLEANUP(fd) int fd = open(check->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? err_set(err, ERR_INTEGRITY, "missing")
                               : err_errno(err, "open", check->path);
    }
    check->fd = fd;
    check->buf = buf;
    digest_start(&check->packed, DIGEST_SHA256);
    if (check->has_diff_id && unpack_all(check, &unpacked, &unpack_err) < 0 &&
        unpack_err.code != ERR_INTEGRITY && unpack_err.code != ERR_PARSE) {
        *err = unpack_err;
        return -1;
    }
    check->unpacked_bytes = unpacked.size_bytes;
    if (read_rest(check, &packed, err) < 0) {
        return -1;
    }
    return judge(check, &packed, &unpacked, &unpack_err, err);
}

/* ---- all ---- */

struct verify {
    struct arena *arena;
    const struct store *store;
    struct blob_check *checks;
    size_t n_checks;
    struct image_check out;
    const struct image_verify_opts *opts;
    struct progress progress;
};

static void add_fault(struct verify *v, const char *what, const char *why)
{
    if (v->out.n_faults < IMAGE_FAULTS_MAX) {
        v->out.faults[v->out.n_faults++] = str_printf(v->arena, "%s: %s", what, why);
    }
}

static void add_blob(struct verify *v, const char *role, const struct oci_descriptor *blob,
                     const uint8_t *diff_id)
{
    struct blob_check *check = &v->checks[v->n_checks++];
    check->path = store_blob_path(v->store, blob->sha256);
    check->what = arena_printf(v->arena, "%s %s", role, oci_digest_of(blob->sha256).text);
    check->size_bytes = blob->size_bytes;
    memcpy(check->sha256, blob->sha256, SHA256_BYTES);
    check->has_diff_id = diff_id != NULL;
    check->packing = blob->packing;
    if (diff_id) {
        memcpy(check->diff_id, diff_id, SHA256_BYTES);
    }
}

static void check_pin(struct verify *v, const char *what, bool has, const uint8_t *pinned,
                      const uint8_t *found)
{
    if (has && memcmp(pinned, found, SHA256_BYTES) != 0) {
        add_fault(v, what,
                  arena_printf(v->arena, "locked as %s, the store has %s",
                               oci_digest_of(pinned).text, oci_digest_of(found).text));
    }
}

static void check_pins(struct verify *v, const struct image_pins *pins)
{
    const struct image_pins *found = &v->out.info.pins;
    check_pin(v, "config", pins->has_config, pins->config, found->config);
    /* Output of docker save has the image's config, but a manifest of its own. */
    if (!pins->has_config) {
        check_pin(v, "manifest", pins->has_manifest, pins->manifest, found->manifest);
    }
    if (!pins->has_config && !pins->has_manifest) {
        bool is_part = memcmp(pins->digest, found->manifest, SHA256_BYTES) == 0;
        check_pin(v, "digest", pins->has_digest && !is_part, pins->digest, found->digest);
    }
}

/* The config must be verified before its diff_ids mean anything. */
static int read_config(struct verify *v, struct oci_config *ret_config, bool *ret_is_good,
                       struct err *err)
{
    const struct oci_descriptor *blob = &v->out.info.manifest.config;
    const char *path = store_blob_path(v->store, blob->sha256);
    uint8_t found[SHA256_BYTES];
    struct err why = {0};
    struct str text;
    *ret_is_good = false;
    if (fs_read(v->arena, path, OCI_CONFIG_BYTES_MAX, &text, &why) < 0) {
        if (why.code == ERR_NOT_FOUND) {
            return 0; /* its own check says missing */
        }
        *err = why;
        return -1;
    }
    sha256_of(text, found);
    if (memcmp(found, blob->sha256, SHA256_BYTES) != 0) {
        return 0; /* likewise */
    }
    if (oci_config_parse(v->arena, text, v->out.info.manifest.n_layers, "config", ret_config,
                         &why) < 0) {
        add_fault(v, "config", why.msg);
        return 0;
    }
    *ret_is_good = true;
    return 0;
}

static int list_blobs(struct verify *v, struct err *err)
{
    const struct image_info *info = &v->out.info;
    struct oci_descriptor list = {0};
    struct oci_config config;
    bool is_good;
    v->checks = arena_array(v->arena, struct blob_check, info->manifest.n_layers + 3);
    if (read_config(v, &config, &is_good, err) < 0) {
        return -1;
    }
    if (info->is_list) {
        uint64_t size_bytes = 0;
        memcpy(list.sha256, info->pins.digest, SHA256_BYTES);
        /* Its length is not stated elsewhere; its digest covers it. */
        (void)store_has(v->store, list.sha256, &size_bytes);
        list.size_bytes = size_bytes;
        add_blob(v, "list", &list, NULL);
    }
    add_blob(v, "manifest", &info->descriptor, NULL);
    add_blob(v, "config", &info->manifest.config, NULL);
    for (size_t idx = 0; idx < info->manifest.n_layers; idx++) {
        add_blob(v, arena_printf(v->arena, "layer %zu of %zu", idx + 1, info->manifest.n_layers),
                 &info->manifest.layers[idx], is_good ? config.diff_ids[idx] : NULL);
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
                             .on_tick = v->opts->wants_progress ? show : NULL,
                             .ctx = v};
    if (pool_new(many.n_threads, &pool, err) < 0) {
        return -1;
    }
    many.pool = pool;
    if (v->opts->wants_progress) {
        progress_start(&v->progress, clock_system(), "verify", "bytes", v->out.info.bytes);
    }
    int result = pool_many(&many, err);
    if (v->opts->wants_progress) {
        progress_end(&v->progress);
    }
    for (size_t idx = 0; idx < v->n_checks; idx++) {
        const struct blob_check *check = &v->checks[idx];
        if (check->fault.code == ERR_INTEGRITY) {
            add_fault(v, check->what, check->fault.msg);
        }
        v->out.packed_bytes += atomic_load(&check->at_bytes);
        v->out.unpacked_bytes += check->unpacked_bytes;
    }
    v->out.n_blobs = v->n_checks;
    return result < 0 ? err_wrap(err, "verify") : 0;
}

int image_verify(struct arena *arena, const struct store *store,
                 const struct image_verify_opts *opts, struct image_check *ret_check,
                 struct err *err)
{
    struct verify v = {.arena = arena, .store = store, .opts = opts};
    v.out.faults = arena_array(arena, struct str, IMAGE_FAULTS_MAX);
    if (image_open(arena, store, opts->name, &v.out.info, err) < 0) {
        return -1;
    }
    if (opts->pins) {
        check_pins(&v, opts->pins);
    }
    if (list_blobs(&v, err) < 0 || run_checks(&v, err) < 0) {
        return -1;
    }
    *ret_check = v.out;
    return v.out.n_faults == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "image %s: %s%s", opts->name, v.out.faults[0].ptr,
                         v.out.n_faults > 1 ? ", and more" : "");
}
