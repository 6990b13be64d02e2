/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/skopeo.h"

#include "base/str.h"
#include "codec/pattern.h"

#define ENV_MAX 32

static const char **make_env(struct arena *arena, const struct registry *registry)
{
    /* The last two are not passed beside ca_path. */
    static const char *const PASSED[] = {"PATH",     "http_proxy",    "https_proxy",
                                         "no_proxy", "HTTP_PROXY",    "HTTPS_PROXY",
                                         "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"};
    const char **env = arena_array(arena, const char *, ENV_MAX);
    size_t n = 0;
    /* No configuration of the user's and no keyring: only what we hand over counts. */
    env[n++] = "HOME=/nonexistent";
    env[n++] = "LC_ALL=C";
    /* Where a name stands twice, a Go program takes the first one. Source: syscall/env_unix.go of Go 1.19, copyenv. */
    if (registry->proxy) {
        env[n++] = arena_printf(arena, "HTTP_PROXY=%s", registry->proxy);
        env[n++] = arena_printf(arena, "HTTPS_PROXY=%s", registry->proxy);
    }
    size_t n_passed = ARRAY_LEN(PASSED);
    if (registry->ca_path) {
        n_passed -= 2;
        env[n++] = arena_printf(arena, "SSL_CERT_FILE=%s", registry->ca_path);
        env[n++] = "SSL_CERT_DIR=/nonexistent";
    }
    for (size_t idx = 0; idx < n_passed; idx++) {
        const char *value = getenv(PASSED[idx]);
        if (value) {
            env[n++] = arena_printf(arena, "%s=%s", PASSED[idx], value);
        }
    }
    ASSERT(n < ENV_MAX);
    env[n] = NULL;
    return env;
}

static const char **make_argv(struct arena *arena, const struct registry *registry,
                              const char *const *args)
{
    const char **argv = arena_array(arena, const char *, SKOPEO_ARGS_MAX);
    size_t n = 0;
    argv[n++] = "skopeo";
    argv[n++] = "--insecure-policy"; /* about signatures; here the digests decide */
    argv[n++] = "--tmpdir";
    argv[n++] = registry->tmp_folder;
    for (size_t idx = 0; args[idx]; idx++) {
        ASSERT(n < SKOPEO_ARGS_MAX - 1);
        argv[n++] = args[idx];
    }
    argv[n] = NULL;
    return argv;
}

/* ---- what it says ---- */

/* The text of the last line with level=fatal, its quotes undone, else the last line. */
static struct str find_reason(struct arena *arena, struct str text)
{
    static const char MARK[] = "level=fatal msg=\"";
    struct str last = quote_last_line(text);
    size_t n = 0;
    int64_t at = str_find(last, str_of(MARK));
    if (at < 0) {
        return last;
    }
    last = str_sub(last, (size_t)at + strlen(MARK), last.len);
    char *out = arena_alloc(arena, last.len + 1, 1);
    for (size_t idx = 0; idx < last.len && last.ptr[idx] != '"'; idx++) {
        idx += last.ptr[idx] == '\\' && idx + 1 < last.len;
        out[n++] = last.ptr[idx];
    }
    return (struct str){out, n};
}

/* Addresses without the login before the "@", which also stands before an image's digest, and without the query. */
static const char *clean(struct arena *arena, struct patterns *patterns, struct str reason)
{
    static const char URL[] = "(\\w+://)(?:[^\\s/@\"'<>,]*@)?([^\\s?\"'<>,]*)(\\?[^\\s\"'<>,]*)?";
    CLEANUP(strbuf) struct strbuf out = STRBUF(CHILD_ERROR_MAX);
    struct str groups[4];
    while (patterns_find(patterns, URL, reason, groups, ARRAY_LEN(groups))) {
        size_t before = (size_t)(groups[0].ptr - reason.ptr);
        strbuf_add_str(&out, str_sub(reason, 0, before));
        strbuf_add_str(&out, groups[1]);
        strbuf_add_str(&out, groups[2]);
        reason = str_sub(reason, before + groups[0].len, reason.len);
    }
    strbuf_add_str(&out, reason);
    return quote_shown(arena, strbuf_str(&out));
}

/* In this order: a registry's own word for what it lacks comes before the status that it comes with. */
static const struct {
    const char *words;
    enum err_code code;
} MEANINGS[] = {
    {"x509:|certificate", ERR_AUTH},
    {"(manifest|name) unknown|repository name not known|404 \\(Not Found\\)", ERR_NOT_FOUND},
    {"StatusCode: 404|blob unknown", ERR_FETCH},
    {"[uU]nauthorized|authentication required|access to the resource is denied", ERR_AUTH},
    {"invalid username/password|denied:|403 \\(Forbidden\\)|StatusCode: 403", ERR_AUTH},
    {"did not match|does not match", ERR_INTEGRITY},
    {"no space left on device|disk quota exceeded", ERR_DISK},
    {"toomanyrequests|too many requests|received unexpected HTTP status: 5|StatusCode: 5", ERR_NET},
    {"dial tcp|proxyconnect|connection re|EOF|timeout|HTTP response to HTTPS client", ERR_NET},
};

static enum err_code meaning_of(struct patterns *patterns, struct str reason)
{
    for (size_t idx = 0; idx < ARRAY_LEN(MEANINGS); idx++) {
        if (patterns_find(patterns, MEANINGS[idx].words, reason, NULL, 0)) {
            return MEANINGS[idx].code;
        }
    }
    return ERR_FETCH;
}

int skopeo_run(struct arena *arena, const struct registry *registry, const struct skopeo_call *call,
               struct err *err)
{
    const struct child_call child = {
        .argv = make_argv(arena, registry, call->args),
        .env = make_env(arena, registry),
        .tmp_folder = registry->tmp_folder,
        .out = call->out,
        .deadline_ns = call->deadline_ns,
        .is_alive = call->is_alive,
        .alive_ctx = call->alive_ctx,
    };
    struct patterns patterns = {0};
    struct child_result result;
    if (child_run(arena, registry->clock, &child, &result, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            *err = (struct err){0};
            return err_set(err, ERR_FETCH,
                           "there is no program skopeo, which moves images: install the package "
                           "skopeo");
        }
        return -1;
    }
    if (result.is_timed_out) {
        return err_set(err, ERR_TIMEOUT, "no answer, and so skopeo %s was ended", call->args[0]);
    }
    if (result.exit_status == 0) {
        return 0;
    }
    struct str reason = find_reason(arena, result.error);
    if (call->ret_is_plain) {
        *call->ret_is_plain = patterns_find(
            &patterns, "HTTP response to HTTPS client|does not look like a TLS handshake", reason,
            NULL, 0);
    }
    (void)!err_set(err, meaning_of(&patterns, reason), "skopeo %s: %s", call->args[0],
                   call->secret.len && str_find(reason, call->secret) >= 0
                       ? "it repeats the password in what it says, which is therefore not shown"
                       : clean(arena, &patterns, reason));
    patterns_release(&patterns);
    return -1;
}
