/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/skopeo.h"

#include <ctype.h>

#include "base/str.h"

#define ENV_MAX 32

/* No configuration of the user's and no keyring: only what we hand over counts. */
static const char *const ENVIRONMENT[] = {"HOME=/nonexistent", "LC_ALL=C"};
static const char *const PASSED[] = {"PATH",       "http_proxy",  "https_proxy", "no_proxy",
                                     "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"};
static const char *const TRUSTED[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};

static size_t pass(const struct skopeo *skopeo, const char *const *names, size_t n_names,
                   const char **env, size_t n)
{
    for (size_t idx = 0; idx < n_names; idx++) {
        const char *value = getenv(names[idx]);
        if (value) {
            env[n++] = arena_printf(skopeo->arena, "%s=%s", names[idx], value);
        }
    }
    return n;
}

static const char **make_env(const struct skopeo *skopeo)
{
    const char **env = arena_array(skopeo->arena, const char *, ENV_MAX);
    size_t n = 0;
    for (size_t idx = 0; idx < ARRAY_LEN(ENVIRONMENT); idx++) {
        env[n++] = ENVIRONMENT[idx];
    }
    /* Where a name stands twice, a Go program takes the first one. Source: syscall/env_unix.go of Go 1.19, copyenv. */
    if (skopeo->proxy) {
        env[n++] = arena_printf(skopeo->arena, "HTTP_PROXY=%s", skopeo->proxy);
        env[n++] = arena_printf(skopeo->arena, "HTTPS_PROXY=%s", skopeo->proxy);
    }
    n = pass(skopeo, PASSED, ARRAY_LEN(PASSED), env, n);
    if (skopeo->ca_path) {
        env[n++] = arena_printf(skopeo->arena, "SSL_CERT_FILE=%s", skopeo->ca_path);
        env[n++] = "SSL_CERT_DIR=/nonexistent";
    } else {
        n = pass(skopeo, TRUSTED, ARRAY_LEN(TRUSTED), env, n);
    }
    ASSERT(n < ENV_MAX);
    env[n] = NULL;
    return env;
}

static const char **make_argv(const struct skopeo *skopeo, const char *const *args)
{
    const char **argv = arena_array(skopeo->arena, const char *, SKOPEO_ARGS_MAX);
    size_t n = 0;
    argv[n++] = "skopeo";
    argv[n++] = "--insecure-policy"; /* about signatures; here the digests decide */
    argv[n++] = "--tmpdir";
    argv[n++] = skopeo->tmp_folder;
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

static bool ends_word(char c)
{
    return isspace((unsigned char)c) || c == '"' || c == '\'' || c == '<' || c == '>' || c == ',';
}

/* One word without the login that a URL has before its "@", and without its query. */
static void add_word(struct strbuf *out, struct str word)
{
    int64_t scheme = str_find(word, STR_LIT("://"));
    if (scheme >= 0) {
        struct str rest = str_sub(word, (size_t)scheme + 3, word.len);
        int64_t query = str_find(rest, STR_LIT("?"));
        rest = query >= 0 ? str_sub(rest, 0, (size_t)query) : rest;
        int64_t at = str_find(rest, STR_LIT("@"));
        /* An image's digest follows an "@", too. */
        at = at >= 0 && !str_starts(str_sub(rest, (size_t)at, rest.len), STR_LIT("@sha256:"))
                 ? at + 1
                 : 0;
        strbuf_add_str(out, str_sub(word, 0, (size_t)scheme + 3));
        strbuf_add_str(out, str_sub(rest, (size_t)at, rest.len));
        return;
    }
    strbuf_add_str(out, word);
}

static bool is_secret(const struct skopeo *skopeo, struct str text)
{
    struct str password = skopeo->login.password;
    return password.len > 0 && str_find(text, password) >= 0;
}

static struct str clean(const struct skopeo *skopeo, struct str reason)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(CHILD_ERROR_MAX);
    size_t from = 0;
    if (is_secret(skopeo, reason)) {
        return STR_LIT("it repeats the password in what it says, which is therefore not shown");
    }
    for (size_t idx = 0; idx <= reason.len; idx++) {
        if (idx == reason.len || ends_word(reason.ptr[idx])) {
            add_word(&out, str_sub(reason, from, idx - from));
            if (idx < reason.len) {
                strbuf_add_char(&out, reason.ptr[idx]);
            }
            from = idx + 1;
        }
    }
    return str_of(quote_shown(skopeo->arena, strbuf_str(&out)));
}

/* In this order: a registry's own word for what it lacks comes before the status that it comes with. */
static const struct {
    const char *words;
    enum err_code code;
} MEANINGS[] = {
    {"x509:", ERR_AUTH},
    {"certificate", ERR_AUTH},
    {"manifest unknown", ERR_NOT_FOUND},
    {"name unknown", ERR_NOT_FOUND},
    {"repository name not known", ERR_NOT_FOUND},
    {"404 (Not Found)", ERR_NOT_FOUND},
    {"StatusCode: 404", ERR_FETCH},
    {"blob unknown", ERR_FETCH},
    {"unauthorized", ERR_AUTH},
    {"Unauthorized", ERR_AUTH},
    {"authentication required", ERR_AUTH},
    {"access to the resource is denied", ERR_AUTH},
    {"invalid username/password", ERR_AUTH},
    {"denied:", ERR_AUTH},
    {"403 (Forbidden)", ERR_AUTH},
    {"StatusCode: 403", ERR_AUTH},
    {"igest did not match", ERR_INTEGRITY},
    {"does not match manifest digest", ERR_INTEGRITY},
    {"does not match", ERR_INTEGRITY},
    {"no space left on device", ERR_DISK},
    {"disk quota exceeded", ERR_DISK},
    {"toomanyrequests", ERR_NET},
    {"too many requests", ERR_NET},
    {"dial tcp", ERR_NET},
    {"proxyconnect", ERR_NET},
    {"connection re", ERR_NET},
    {"EOF", ERR_NET},
    {"timeout", ERR_NET},
    {"HTTP response to HTTPS client", ERR_NET},
    {"received unexpected HTTP status: 5", ERR_NET},
    {"StatusCode: 5", ERR_NET},
};

static enum err_code meaning_of(struct str reason)
{
    for (size_t idx = 0; idx < ARRAY_LEN(MEANINGS); idx++) {
        if (str_find(reason, str_of(MEANINGS[idx].words)) >= 0) {
            return MEANINGS[idx].code;
        }
    }
    return ERR_FETCH;
}

int skopeo_run(const struct skopeo *skopeo, const struct skopeo_call *call, bool *ret_is_plain,
               struct err *err)
{
    const struct child_call child = {
        .argv = make_argv(skopeo, call->args),
        .env = make_env(skopeo),
        .tmp_folder = skopeo->tmp_folder,
        .out = call->out,
        .deadline_ns = call->deadline_ns,
        .is_alive = call->is_alive,
        .alive_ctx = call->alive_ctx,
    };
    struct child_result result;
    if (child_run(skopeo->arena, skopeo->clock, &child, &result, err) < 0) {
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
    struct str reason = find_reason(skopeo->arena, result.error);
    if (ret_is_plain) {
        *ret_is_plain = str_find(reason, STR_LIT("HTTP response to HTTPS client")) >= 0 ||
                        str_find(reason, STR_LIT("does not look like a TLS handshake")) >= 0;
    }
    struct str shown = clean(skopeo, reason);
    return err_set(err, meaning_of(reason), "skopeo %s: %.*s", call->args[0], STR_ARG(shown));
}
