/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a registry: sent, tried again, judged. */
#include "base/base.h"

#include "store/registry_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

#define TICK_NS        (100 * NS_PER_MS)
#define BACKOFF_NS     (500 * NS_PER_MS)
#define AUTH_ROUNDS    2
#define ERROR_CODE_MAX 40

/* ---- the client ---- */

/* A file with logins that others can read is refused, before it is read. */
static int read_auth(struct registry *r, struct err *err)
{
    const char *path = r->settings.auth_path;
    struct stat st;
    if (stat(path, &st) < 0) {
        return err_set(err, errno == ENOENT ? ERR_USAGE : err_code_of_errno(errno),
                       "login file %s: %s", path, err_errno_text(errno));
    }
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        return err_set(err, ERR_AUTH,
                       "login file %s: others may read or write it (mode %03o): chmod 600 it", path,
                       (unsigned)(st.st_mode & 0777));
    }
    return fs_read(&r->arena, path, OCI_AUTH_FILE_MAX, &r->auth_text, err);
}

int registry_new(const struct registry_settings *settings, struct registry **ret_registry,
                 struct err *err)
{
    CLEANUP(registry) struct registry *r = xcalloc(1, sizeof(*r));
    r->settings = *settings;
    rng_init(&r->rng, (uint64_t)loop_now_ns(settings->loop));
    if (settings->auth_path && read_auth(r, err) < 0) {
        return -1;
    }
    *ret_registry = r;
    r = NULL;
    return 0;
}

void registry_free(struct registry *r)
{
    if (r) {
        VEC_RELEASE(&r->hosts);
        VEC_RELEASE(&r->tokens);
        arena_release(&r->arena);
        free(r);
    }
}

char *registry_url(struct arena *arena, const struct registry_host *host, const struct oci_ref *ref,
                   const char *kind, const char *what)
{
    return arena_printf(arena, "%s://%.*s/v2/%.*s/%s/%s", host->is_plain ? "http" : "https",
                        STR_ARG(host->server), STR_ARG(ref->path), kind, what);
}

/* ---- one request ---- */

static int check_stop(const struct registry *r, struct err *err)
{
    return r->settings.should_stop && r->settings.should_stop()
               ? err_set(err, ERR_INTERRUPTED, "stopped")
               : 0;
}

int registry_wait(struct registry *r, int64_t wait_ns, struct err *err)
{
    int64_t until_ns = loop_now_ns(r->settings.loop) + wait_ns;
    while (loop_now_ns(r->settings.loop) < until_ns) {
        int64_t left_ns = until_ns - loop_now_ns(r->settings.loop);
        if (check_stop(r, err) < 0 ||
            loop_once(r->settings.loop, left_ns < TICK_NS ? left_ns : TICK_NS, err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct body {
    struct strbuf buf;
    const char *url;
};

static int on_body(void *ctx, const uint8_t *ptr, size_t len, struct err *err)
{
    struct body *body = ctx;
    strbuf_add(&body->buf, ptr, len);
    if (body->buf.is_full) {
        return err_set(err, ERR_FETCH, "the answer is longer than %zu bytes", body->buf.cap_bytes);
    }
    return 0;
}

static struct str copy(struct arena *arena, struct str s)
{
    return s.ptr ? str_dup(arena, s) : STR_EMPTY;
}

static int once(struct registry *r, struct arena *arena, const struct exchange *ask,
                struct answer *ret_answer, struct err *err)
{
    struct http_header headers[2];
    struct http_request request = {
        .url = ask->url, .headers = headers, .wants_error_body = true, .on_body = on_body};
    struct body body = {.url = ask->url};
    CLEANUP(http_transfer) struct http_transfer *transfer = NULL;
    enum step step = STEP_AGAIN;
    const struct http_head *head;
    if (ask->accept) {
        headers[request.n_headers++] = (struct http_header){"Accept", ask->accept};
    }
    if (ask->authorization) {
        headers[request.n_headers++] = (struct http_header){"Authorization", ask->authorization};
    }
    strbuf_init(&body.buf, ask->max_bytes);
    request.ctx = &body;
    if (http_start(r->settings.http, &request, &transfer, err) < 0) {
        step = STEP_FAIL;
    }
    while (step == STEP_AGAIN) {
        step = check_stop(r, err) < 0 || loop_once(r->settings.loop, TICK_NS, err) < 0
                   ? STEP_FAIL
                   : http_step(transfer, err);
    }
    if (step == STEP_DONE) {
        head = http_head(transfer);
        ASSERT(head);
        *ret_answer = (struct answer){
            .status = head->status,
            .body = str_dup(arena, strbuf_str(&body.buf)),
            .content_type = copy(arena, head->content_type),
            .docker_digest = copy(arena, head->docker_content_digest),
            .www_authenticate = copy(arena, head->www_authenticate),
            .retry_after_ns = head->retry_after_ns,
        };
    }
    /* The transfer must be over, or ended here, before its buffer is freed. */
    http_transfer_free(transfer);
    transfer = NULL;
    strbuf_release(&body.buf);
    return step == STEP_DONE ? 0 : -1;
}

static int64_t backoff_ns(struct registry *r, int n_failed)
{
    int64_t span_ns = BACKOFF_NS << (n_failed < 6 ? n_failed : 6);
    return span_ns / 2 + (int64_t)rng_below(&r->rng, (uint64_t)span_ns);
}

/* 429: waits as long as the registry says. */
static int wait_for_quota(struct registry *r, const struct exchange *ask,
                          const struct answer *answer, int n_waits, struct err *err)
{
    int64_t wait_ns =
        answer->retry_after_ns >= 0 ? answer->retry_after_ns : backoff_ns(r, n_waits + 1);
    if (n_waits >= REGISTRY_WAITS || wait_ns > REGISTRY_WAIT_MAX_NS) {
        return err_set(err, ERR_NET,
                       "%.*s: the registry's limit of requests is used up (429); it says to come "
                       "back in %lld s; with a login the limit is often higher",
                       STR_ARG(ask->what), (long long)(wait_ns / NS_PER_S));
    }
    log_line(LOG_INFO, "%.*s: the registry's limit of requests is used up, waiting %.1f s",
             STR_ARG(ask->what), (double)wait_ns / (double)NS_PER_S);
    return registry_wait(r, wait_ns, err);
}

int registry_exchange(struct registry *r, struct arena *arena, const struct exchange *ask,
                      int n_tries, struct answer *ret_answer, struct err *err)
{
    int n_waits = 0;
    int n_failed = 0;
    n_tries = n_tries ? n_tries : REGISTRY_TRIES;
    while (true) {
        struct err why = {0};
        bool is_weather;
        int result = once(r, arena, ask, ret_answer, &why);
        if (result == 0 && ret_answer->status == 429) {
            if (wait_for_quota(r, ask, ret_answer, n_waits++, err) < 0) {
                return -1;
            }
            continue;
        }
        if (result == 0 && ret_answer->status < 500) {
            return 0;
        }
        /* A server that was silent until the timeout is not asked again. */
        is_weather = result == 0 || why.code == ERR_NET;
        if (result == 0) {
            result = err_set(&why, ERR_NET, "the server answers %d", ret_answer->status);
        }
        if (!is_weather || ++n_failed >= n_tries) {
            *err = why;
            return err_wrap(err, "%.*s", STR_ARG(ask->what));
        }
        log_line(LOG_DEBUG, "%.*s: %s; trying again", STR_ARG(ask->what), why.msg);
        if (registry_wait(r, backoff_ns(r, n_failed), err) < 0) {
            return -1;
        }
    }
}

/* ---- manifests ---- */

/* {"errors":[{"code":"MANIFEST_UNKNOWN",...}]}: the code, where it is a plain word. Its message is not repeated. */
static const char *error_code(struct arena *arena, struct str body)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err err = {0};
    struct json root, list, item, code;
    struct str text;
    if (json_parse(body, "answer", &doc, &err) < 0) {
        return "";
    }
    root = json_root(&doc);
    if (!json_is_object(&root) || !json_find(&root, "errors", &list) || !json_is_array(&list) ||
        !json_first(&list, &item) || !json_is_object(&item) || !json_find(&item, "code", &code) ||
        !json_is_str(&code) || json_str(&code, arena, &text, &err) < 0 ||
        text.len > ERROR_CODE_MAX) {
        return "";
    }
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!((c >= 'A' && c <= 'Z') || c == '_')) {
            return "";
        }
    }
    return arena_printf(arena, " %.*s", STR_ARG(text));
}

static int judge(struct arena *arena, const struct exchange *ask, const struct answer *answer,
                 struct err *err)
{
    const char *code = error_code(arena, answer->body);
    switch (answer->status) {
    case 200:
        return 0;
    case 401:
    case 403:
        return err_set(err, ERR_AUTH,
                       "%.*s: not allowed (%d%s): it needs a login with read access, or there is "
                       "no such repository",
                       STR_ARG(ask->what), answer->status, code);
    case 404:
    case 410:
        return err_set(err, ERR_NOT_FOUND, "%.*s: the registry has no such manifest (%d%s)",
                       STR_ARG(ask->what), answer->status, code);
    default:
        return err_set(err, ERR_FETCH, "%.*s: expected the answer 200, found %d%s",
                       STR_ARG(ask->what), answer->status, code);
    }
}

/* Compares the bytes with the requested digest, and with the server's statement. */
static int check_digest(const struct oci_ref *ref, const struct exchange *ask,
                        const struct answer *answer, const uint8_t *sha256, struct err *err)
{
    char found[OCI_DIGEST_SIZE], wanted[OCI_DIGEST_SIZE];
    uint8_t said[SHA256_BYTES];
    struct err why = {0};
    oci_digest_text(sha256, found);
    if (ref->has_digest && memcmp(ref->sha256, sha256, SHA256_BYTES) != 0) {
        oci_digest_text(ref->sha256, wanted);
        return err_set(err, ERR_INTEGRITY,
                       "%.*s: the registry gives other bytes than requested: expected %s, found %s",
                       STR_ARG(ask->what), wanted, found);
    }
    if (!answer->docker_digest.ptr) {
        return 0;
    }
    if (oci_digest_parse(answer->docker_digest, said, &why) < 0) {
        return err_set(err, ERR_FETCH, "%.*s: Docker-Content-Digest: %s", STR_ARG(ask->what),
                       why.msg);
    }
    if (memcmp(said, sha256, SHA256_BYTES) != 0) {
        oci_digest_text(said, wanted);
        return err_set(err, ERR_INTEGRITY,
                       "%.*s: the manifest is not what its header says: header %s, bytes %s",
                       STR_ARG(ask->what), wanted, found);
    }
    return 0;
}

static int ask_manifest(struct registry *r, struct arena *arena, const struct oci_ref *ref,
                        struct exchange *ask, struct answer *ret_answer, struct err *err)
{
    struct registry_host *host;
    char digest[OCI_DIGEST_SIZE];
    if (registry_host_of(r, ref, &host, err) < 0) {
        return -1;
    }
    oci_digest_text(ref->sha256, digest);
    ask->url = registry_url(arena, host, ref, "manifests",
                            ref->has_digest ? digest : str_z(arena, ref->tag));
    for (int round = 0; round < AUTH_ROUNDS; round++) {
        if (registry_authorize(r, host, ref, &ask->authorization, err) < 0 ||
            registry_exchange(r, arena, ask, 0, ret_answer, err) < 0) {
            return -1;
        }
        if (ret_answer->status != 401 || round + 1 == AUTH_ROUNDS) {
            break;
        }
        if (registry_refused(r, host, ref, ret_answer->www_authenticate, err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(ask->what));
        }
    }
    return judge(arena, ask, ret_answer, err);
}

int registry_manifest(struct registry *r, struct arena *arena, const struct oci_ref *ref,
                      struct registry_doc *ret_doc, struct err *err)
{
    struct exchange ask = {.accept = OCI_ACCEPT, .max_bytes = OCI_MANIFEST_BYTES_MAX};
    struct registry_doc doc = {0};
    struct answer answer;
    if (!ref->has_digest && !ref->tag.ptr) {
        return err_set(err, ERR_USAGE, "image %s: expected a tag or a digest",
                       oci_ref_text(arena, ref));
    }
    ask.what = str_of(oci_ref_text(arena, ref));
    if (ask_manifest(r, arena, ref, &ask, &answer, err) < 0) {
        return -1;
    }
    doc.text = answer.body;
    doc.content_type = answer.content_type;
    if (sha256_of(doc.text, doc.sha256, err) < 0 ||
        check_digest(ref, &ask, &answer, doc.sha256, err) < 0) {
        return -1;
    }
    *ret_doc = doc;
    return 0;
}
