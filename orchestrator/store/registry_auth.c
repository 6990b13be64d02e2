/* SPDX-License-Identifier: Apache-2.0 */
/* First contact with a registry: scheme and authentication; tokens, kept until they expire. */
#include "base/base.h"

#include "store/registry_impl.h"

#include "base/log.h"
#include "codec/sign.h"

#define PING_BYTES_MAX (1u << 20)
/* A token is not used in its last seconds, because the request takes time, too. */
#define TOKEN_SPARE_NS (5 * NS_PER_S)
#define TOKENS_MAX     1000
#define FOREVER_NS     INT64_MAX

/* ---- hosts ---- */

static bool may_be_plain(const struct registry *r, struct str server)
{
    for (size_t idx = 0; idx < r->settings.n_plain_hosts; idx++) {
        if (str_eq_z(server, r->settings.plain_hosts[idx])) {
            return true;
        }
    }
    return oci_host_is_loopback(server);
}

static int ping(struct registry *r, struct arena *arena, struct registry_host *host, int n_tries,
                struct answer *ret_answer, struct err *err)
{
    struct exchange ask = {
        .url = arena_printf(arena, "%s://%.*s/v2/", host->is_plain ? "http" : "https",
                            STR_ARG(host->server)),
        .max_bytes = PING_BYTES_MAX,
        .what = str_of(arena_printf(arena, "registry %.*s", STR_ARG(host->server))),
    };
    return registry_exchange(r, arena, &ask, n_tries, ret_answer, err);
}

/* HTTPS first. Where plain HTTP is allowed and HTTPS does not answer, HTTP; if both fail, HTTP's error is reported, unless
   nobody listens: then the two agree. */
static int reach(struct registry *r, struct arena *arena, struct registry_host *host,
                 struct answer *ret_answer, struct err *err)
{
    struct err why = {0};
    if (!may_be_plain(r, host->server)) {
        return ping(r, arena, host, 0, ret_answer, err);
    }
    if (ping(r, arena, host, 1, ret_answer, &why) == 0) {
        return 0;
    }
    if (why.code != ERR_NET) {
        *err = why;
        return -1;
    }
    log_line(LOG_DEBUG, "%s; trying plain HTTP", why.msg);
    host->is_plain = true;
    return ping(r, arena, host, 0, ret_answer, err);
}

int registry_host_of(struct registry *r, const struct oci_ref *ref, struct registry_host **ret_host,
                     struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct str server = oci_ref_server(ref);
    struct registry_host *host;
    struct answer answer;
    for (size_t idx = 0; idx < r->hosts.n; idx++) {
        if (str_eq(r->hosts.items[idx]->server, server)) {
            *ret_host = r->hosts.items[idx];
            return 0;
        }
    }
    host = arena_new(&r->arena, struct registry_host);
    host->server = str_dup(&r->arena, server);
    if (reach(r, &scratch, host, &answer, err) < 0) {
        return -1;
    }
    if (answer.status != 200 && answer.status != 401 && answer.status != 403) {
        return err_set(err, ERR_FETCH,
                       "registry %.*s: expected /v2/ to answer 200 or 401, found %d",
                       STR_ARG(server), answer.status);
    }
    if (answer.status == 401 &&
        oci_challenge_parse(&r->arena, answer.www_authenticate, &host->challenge, err) < 0) {
        return err_wrap(err, "registry %.*s", STR_ARG(server));
    }
    VEC_PUSH(&r->hosts, host);
    *ret_host = host;
    return 0;
}

/* ---- tokens ---- */

static struct str pull_scope(struct arena *arena, const struct oci_ref *ref)
{
    return str_of(arena_printf(arena, "repository:%.*s:pull", STR_ARG(ref->path)));
}

static const char *basic_header(struct arena *arena, const struct oci_login *login)
{
    CLEANUP(strbuf) struct strbuf buf;
    const char *pair =
        arena_printf(arena, "%.*s:%.*s", STR_ARG(login->user), STR_ARG(login->password));
    strbuf_init(&buf, 2UL * OCI_LOGIN_MAX);
    strbuf_add_z(&buf, "Basic ");
    base64_encode(&buf, str_of(pair));
    ASSERT(!buf.is_full);
    return arena_strndup(arena, buf.ptr, buf.len);
}

static int find_login(struct registry *r, const struct oci_ref *ref, struct oci_login *ret_login,
                      struct err *err)
{
    *ret_login = (struct oci_login){0};
    return r->auth_text.ptr
               ? oci_login_find(&r->arena, r->auth_text, r->settings.auth_path, ref, ret_login, err)
               : 0;
}

/* The token server's URL comes from the registry. A login goes to it, so it must be as safe as the registry itself. */
static int check_realm(const struct registry *r, const struct registry_host *host, struct err *err)
{
    struct str realm = host->challenge.realm;
    struct str rest, server;
    int64_t slash;
    bool is_plain = str_starts(realm, STR_LIT("http://"));
    if (!is_plain && !str_starts(realm, STR_LIT("https://"))) {
        return err_set(err, ERR_AUTH, "registry %.*s: its token server is not a web address",
                       STR_ARG(host->server));
    }
    rest = str_sub(realm, is_plain ? 7 : 8, realm.len);
    slash = str_find(rest, STR_LIT("/"));
    server = slash >= 0 ? str_sub(rest, 0, (size_t)slash) : rest;
    if (server.len == 0 || memchr(server.ptr, '@', server.len)) {
        return err_set(err, ERR_AUTH, "registry %.*s: its token server is not a web address",
                       STR_ARG(host->server));
    }
    if (is_plain && !may_be_plain(r, server)) {
        return err_set(
            err, ERR_AUTH,
            "registry %.*s: its token server %.*s speaks plain HTTP, which was not allowed for it",
            STR_ARG(host->server), STR_ARG(str_sub(server, 0, 200)));
    }
    return 0;
}

static const char *token_url(struct arena *arena, const struct registry_host *host,
                             struct str scope)
{
    struct strbuf url;
    const char *text;
    strbuf_init(&url, HTTP_URL_MAX);
    strbuf_add_str(&url, host->challenge.realm);
    strbuf_add_char(&url, str_find(host->challenge.realm, STR_LIT("?")) >= 0 ? '&' : '?');
    if (host->challenge.service.len) {
        strbuf_add_z(&url, "service=");
        url_escape(&url, host->challenge.service);
        strbuf_add_char(&url, '&');
    }
    strbuf_add_z(&url, "scope=");
    url_escape(&url, scope);
    text = url.is_full ? NULL : arena_strndup(arena, url.ptr, url.len);
    strbuf_release(&url);
    return text;
}

static int ask_token(struct registry *r, const struct registry_host *host,
                     const struct oci_ref *ref, struct str scope, struct oci_token *ret_token,
                     struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct exchange ask = {.max_bytes = OCI_TOKEN_MAX};
    struct oci_login login;
    struct answer answer;
    if (check_realm(r, host, err) < 0 || find_login(r, ref, &login, err) < 0) {
        return -1;
    }
    ask.url = token_url(&scratch, host, scope);
    if (!ask.url) {
        return err_set(err, ERR_AUTH, "registry %.*s: its token server's address is too long",
                       STR_ARG(host->server));
    }
    ask.what = str_of(arena_printf(&scratch, "token server of %.*s (%s)", STR_ARG(host->server),
                                   http_url_shown(&scratch, ask.url)));
    ask.authorization = login.user.ptr ? basic_header(&scratch, &login) : NULL;
    if (registry_exchange(r, &scratch, &ask, 0, &answer, err) < 0) {
        return -1;
    }
    if (answer.status != 200) {
        bool is_refusal = answer.status == 401 || answer.status == 403 || answer.status == 400;
        return err_set(err, is_refusal ? ERR_AUTH : ERR_FETCH, "%.*s: %s (%d)", STR_ARG(ask.what),
                       !is_refusal      ? "expected the answer 200"
                       : login.user.ptr ? "not allowed: the login is refused"
                                        : "not allowed: it gives no token without a login",
                       answer.status);
    }
    return oci_token_parse(&r->arena, answer.body, str_z(&scratch, ask.what), ret_token, err) < 0
               ? (err->code = ERR_FETCH, -1)
               : 0;
}

static struct registry_token *find_token(struct registry *r, struct str server, struct str scope)
{
    for (size_t idx = 0; idx < r->tokens.n; idx++) {
        struct registry_token *token = &r->tokens.items[idx];
        if (str_eq(token->server, server) && str_eq(token->scope, scope)) {
            return token;
        }
    }
    return NULL;
}

static int make_header(struct registry *r, const struct registry_host *host,
                       const struct oci_ref *ref, struct str scope, struct registry_token *out,
                       struct err *err)
{
    struct oci_login login;
    struct oci_token token;
    if (host->challenge.kind == OCI_AUTH_BASIC) {
        if (find_login(r, ref, &login, err) < 0) {
            return -1;
        }
        if (!login.user.ptr) {
            return err_set(err, ERR_AUTH,
                           "registry %.*s: not allowed without a login (--auth-file)",
                           STR_ARG(host->server));
        }
        out->header = basic_header(&r->arena, &login);
        out->until_ns = FOREVER_NS;
        return 0;
    }
    if (ask_token(r, host, ref, scope, &token, err) < 0) {
        return -1;
    }
    out->header = arena_printf(&r->arena, "Bearer %.*s", STR_ARG(token.text));
    out->until_ns = loop_now_ns(r->settings.loop) + token.lifetime_s * NS_PER_S;
    return 0;
}

int registry_authorize(struct registry *r, const struct registry_host *host,
                       const struct oci_ref *ref, const char **ret_header, struct err *err)
{
    struct str scope;
    struct registry_token *token;
    struct registry_token made = {.server = host->server};
    *ret_header = NULL;
    if (host->challenge.kind == OCI_AUTH_NONE) {
        return 0;
    }
    scope = pull_scope(&r->arena, ref);
    token = find_token(r, host->server, scope);
    if (token && token->until_ns - TOKEN_SPARE_NS > loop_now_ns(r->settings.loop)) {
        *ret_header = token->header;
        return 0;
    }
    if (make_header(r, host, ref, scope, &made, err) < 0) {
        return -1;
    }
    made.scope = scope;
    if (token) {
        *token = made;
    } else if (r->tokens.n < TOKENS_MAX) {
        VEC_PUSH(&r->tokens, made);
    }
    *ret_header = made.header;
    return 0;
}

int registry_refused(struct registry *r, struct registry_host *host, const struct oci_ref *ref,
                     struct str www_authenticate, struct err *err)
{
    struct str scope = pull_scope(&r->arena, ref);
    struct registry_token *token = find_token(r, host->server, scope);
    struct oci_challenge challenge = {0};
    if (www_authenticate.ptr &&
        oci_challenge_parse(&r->arena, www_authenticate, &challenge, err) < 0) {
        return -1;
    }
    if (challenge.kind == OCI_AUTH_NONE) {
        challenge = host->challenge;
    }
    if (challenge.kind == OCI_AUTH_NONE) {
        return err_set(err, ERR_AUTH,
                       "not allowed (401), and the registry does not say how to ask");
    }
    /* The same login again would be refused again. */
    if (challenge.kind == OCI_AUTH_BASIC && token) {
        return err_set(err, ERR_AUTH, "not allowed: the login is refused (401)");
    }
    if (token) {
        token->until_ns = 0;
    }
    host->challenge = challenge;
    return 0;
}
