/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs into the store: a few at once, each one a fetch of its own (net/fetch.h: ranges, resumption, digest while it streams).
   A token may expire during a large layer; the fetch then continues with a new one. */
#include "base/base.h"

#include "store/registry_impl.h"

#include <errno.h>

#include "base/log.h"
#include "base/progress.h"

#define TICK_NS          (100 * NS_PER_MS)
#define CONNECTIONS      4
#define REFUSALS_MAX     2 /* in a row, without a byte in between */
#define DIGEST_SHOWN_MAX 19

struct blob_job {
    const struct oci_descriptor *blob;
    struct fetch *fetch; /* owned; NULL: not running */
    struct fetch_spec spec;
    struct http_header header;
    const char *urls[1];
    char digest[OCI_DIGEST_SIZE];
    uint64_t done_bytes; /* when it last had to ask again */
    uint64_t at_bytes;
    int n_refusals;
    bool is_done;
};

struct pull {
    struct registry *r;
    const struct oci_ref *ref;
    struct registry_host *host;
    struct store *store;
    struct arena arena;
    struct blob_job *jobs;
    size_t n_jobs;
    struct registry_got got;
    struct progress progress;
    uint64_t total_bytes;
};

static void pull_release(struct pull *pull)
{
    for (size_t idx = 0; idx < pull->n_jobs; idx++) {
        fetch_free(pull->jobs[idx].fetch);
    }
    arena_release(&pull->arena);
}
static inline void pull_cleanup(struct pull *pull)
{
    pull_release(pull);
}

/* ---- one blob ---- */

static int start(struct pull *pull, struct blob_job *job, struct err *err)
{
    struct registry *r = pull->r;
    const char *header;
    if (registry_authorize(r, pull->host, pull->ref, &header, err) < 0) {
        return -1;
    }
    job->header = (struct http_header){"Authorization", header};
    job->urls[0] = registry_url(&pull->arena, pull->host, pull->ref, "blobs", job->digest);
    job->spec = (struct fetch_spec){
        .name = arena_printf(&pull->arena, "layer %.*s of %s", DIGEST_SHOWN_MAX, job->digest,
                             oci_ref_name(&pull->arena, pull->ref)),
        .urls = job->urls,
        .n_urls = 1,
        .headers = header ? &job->header : NULL,
        .n_headers = header ? 1 : 0,
        .folder = store_partial(pull->store, job->digest),
        .size_bytes = (int64_t)job->blob->size_bytes,
        .sha256 = job->blob->sha256,
        .n_connections = r->settings.n_connections ? r->settings.n_connections : CONNECTIONS,
        .n_retries = r->settings.n_retries,
        .rate_bytes_per_s = r->settings.rate_bytes_per_s,
    };
    return fetch_new(r->settings.http, r->settings.pool, r->settings.loop, &job->spec, &job->fetch,
                     err);
}

static int finish(struct pull *pull, struct blob_job *job, struct err *err)
{
    const struct fetch_result *result = fetch_result(job->fetch);
    struct digest_value value = result->value;
    struct err ignored = {0};
    if (memcmp(value.sha256, job->blob->sha256, SHA256_BYTES) != 0 ||
        value.size_bytes != job->blob->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: other bytes than its digest says", job->spec.name);
    }
    if (store_adopt(pull->store, result->data_path, &value, err) < 0) {
        return -1;
    }
    pull->got.n_fetched++;
    pull->got.fetched_bytes += result->received_bytes;
    pull->got.kept_bytes += result->kept_bytes;
    job->at_bytes = value.size_bytes;
    job->is_done = true;
    fetch_free(job->fetch);
    job->fetch = NULL;
    if (fs_remove_tree(job->spec.folder, &ignored) < 0) {
        log_line(LOG_DEBUG, "%s", ignored.msg);
    }
    return 0;
}

/* A 401 or 403: retries with a new token, as long as bytes arrived since the last one. */
static int ask_again(struct pull *pull, struct blob_job *job, const struct err *why,
                     struct err *err)
{
    if (job->at_bytes > job->done_bytes) {
        job->n_refusals = 0;
    }
    job->done_bytes = job->at_bytes;
    if (++job->n_refusals > REFUSALS_MAX) {
        *err = *why;
        return -1;
    }
    if (registry_refused(pull->r, pull->host, pull->ref, STR_EMPTY, err) < 0) {
        err->code = ERR_NONE; /* why the blob was refused says more */
        *err = *why;
        return -1;
    }
    return start(pull, job, err);
}

static int failed(struct pull *pull, struct blob_job *job, const struct err *why, struct err *err)
{
    fetch_free(job->fetch);
    job->fetch = NULL;
    if (why->code == ERR_AUTH) {
        return ask_again(pull, job, why, err);
    }
    *err = *why;
    if (err->code == ERR_FETCH) {
        err->code = ERR_NOT_FOUND; /* the manifest exists, but this part of it does not */
    }
    return -1;
}

static int step(struct pull *pull, struct blob_job *job, struct err *err)
{
    struct err why = {0};
    uint64_t total_bytes;
    switch (fetch_step(job->fetch, &why)) {
    case STEP_DONE:
        return finish(pull, job, err);
    case STEP_FAIL:
        return failed(pull, job, &why, err);
    case STEP_AGAIN:
        break;
    }
    fetch_progress(job->fetch, &job->at_bytes, &total_bytes);
    return 0;
}

/* ---- all ---- */

static bool is_listed(const struct pull *pull, const uint8_t *sha256)
{
    for (size_t idx = 0; idx < pull->n_jobs; idx++) {
        if (memcmp(pull->jobs[idx].blob->sha256, sha256, SHA256_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static int list_jobs(struct pull *pull, const struct oci_descriptor *blobs, size_t n,
                     struct err *err)
{
    pull->jobs = arena_array(&pull->arena, struct blob_job, n);
    for (size_t idx = 0; idx < n; idx++) {
        uint64_t size_bytes;
        struct blob_job *job = &pull->jobs[pull->n_jobs];
        if (is_listed(pull, blobs[idx].sha256)) {
            continue;
        }
        if (store_has(pull->store, blobs[idx].sha256, &size_bytes)) {
            if (size_bytes != blobs[idx].size_bytes) {
                return err_set(err, ERR_INTEGRITY,
                               "the store has a blob of %" PRIu64
                               " bytes where the manifest says %" PRIu64
                               ": run \"reperf store verify\"",
                               size_bytes, blobs[idx].size_bytes);
            }
            pull->got.n_kept++;
            pull->got.kept_bytes += size_bytes;
            continue;
        }
        job->blob = &blobs[idx];
        oci_digest_text(blobs[idx].sha256, job->digest);
        pull->total_bytes += blobs[idx].size_bytes;
        pull->n_jobs++;
    }
    return 0;
}

/* Steps running fetches, starts those that may. *ret_left 0: all are done. */
static int turn(struct pull *pull, size_t *ret_left, struct err *err)
{
    size_t n_running = 0;
    uint64_t at_bytes = 0;
    *ret_left = 0;
    for (size_t idx = 0; idx < pull->n_jobs; idx++) {
        struct blob_job *job = &pull->jobs[idx];
        if (job->fetch && step(pull, job, err) < 0) {
            return -1;
        }
        if (!job->is_done && !job->fetch && n_running < REGISTRY_LAYERS_AT_ONCE &&
            start(pull, job, err) < 0) {
            return -1;
        }
        n_running += job->fetch ? 1 : 0;
        *ret_left += job->is_done ? 0 : 1;
        at_bytes += job->at_bytes;
    }
    if (pull->r->settings.wants_progress) {
        progress_set(&pull->progress, at_bytes);
    }
    return 0;
}

static int run(struct pull *pull, struct err *err)
{
    size_t n_left = pull->n_jobs;
    const struct registry_settings *settings = &pull->r->settings;
    while (true) {
        if (settings->should_stop && settings->should_stop()) {
            return err_set(err, ERR_INTERRUPTED,
                           "%s: stopped; partial data is kept for the next fetch",
                           oci_ref_name(&pull->arena, pull->ref));
        }
        if (turn(pull, &n_left, err) < 0) {
            return -1;
        }
        if (n_left == 0) {
            return 0;
        }
        if (loop_once(settings->loop, TICK_NS, err) < 0) {
            return -1;
        }
    }
}

int registry_blobs(struct registry *r, const struct registry_wanted *wanted, struct store *store,
                   struct registry_got *ret_got, struct err *err)
{
    CLEANUP(pull) struct pull pull = {.r = r, .ref = wanted->ref, .store = store};
    int result;
    if (list_jobs(&pull, wanted->blobs, wanted->n, err) < 0 ||
        registry_host_of(r, wanted->ref, &pull.host, err) < 0) {
        return -1;
    }
    if (r->settings.wants_progress) {
        progress_start(&pull.progress, r->settings.loop->clock, "pull", "bytes", pull.total_bytes);
    }
    result = run(&pull, err);
    if (r->settings.wants_progress) {
        progress_end(&pull.progress);
    }
    if (result == 0) {
        *ret_got = pull.got;
    }
    return result;
}
