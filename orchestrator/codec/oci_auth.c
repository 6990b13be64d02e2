/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci_auth.h"

#include <strings.h>

#include "codec/json.h"
#include "codec/oci_ref.h"
#include "codec/sign.h"

#define LIFETIME_MAX_S (365LL * 24 * 3600)

void url_escape(struct strbuf *buf, struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (is_plain) {
            strbuf_add_char(buf, c);
        } else {
            strbuf_printf(buf, "%%%02X", (unsigned)(uint8_t)c);
        }
    }
}

/* ---- WWW-Authenticate ---- */

struct auth_cursor {
    struct str text;
    size_t at;
};

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static char peek(const struct auth_cursor *c)
{
    return c->at < c->text.len ? c->text.ptr[c->at] : '\0';
}

static void skip_blanks(struct auth_cursor *c, bool with_commas)
{
    while (peek(c) == ' ' || peek(c) == '\t' || (with_commas && peek(c) == ',')) {
        c->at++;
    }
}

static struct str read_token(struct auth_cursor *c)
{
    size_t from = c->at;
    while (c->at < c->text.len && is_token_char(c->text.ptr[c->at])) {
        c->at++;
    }
    return str_sub(c->text, from, c->at - from);
}

static int read_value(struct arena *arena, struct auth_cursor *c, struct str *ret_value,
                      struct err *err)
{
    char *out;
    size_t n = 0;
    if (peek(c) != '"') {
        *ret_value = str_dup(arena, read_token(c));
        return ret_value->len ? 0
                              : err_set(err, ERR_PARSE,
                                        "WWW-Authenticate: expected a value at byte %zu", c->at);
    }
    out = arena_array(arena, char, c->text.len - c->at + 1);
    for (c->at++; c->at < c->text.len && c->text.ptr[c->at] != '"'; c->at++) {
        char letter = c->text.ptr[c->at];
        if (letter == '\\' && c->at + 1 < c->text.len) {
            letter = c->text.ptr[++c->at];
        }
        if ((unsigned char)letter < ' ' || letter == 0x7f) {
            return err_set(err, ERR_PARSE, "WWW-Authenticate: a control character at byte %zu",
                           c->at);
        }
        out[n++] = letter;
    }
    if (c->at == c->text.len) {
        return err_set(err, ERR_PARSE, "WWW-Authenticate: a quote that does not end");
    }
    c->at++;
    *ret_value = (struct str){out, n};
    return 0;
}

static bool is_word(struct str s, const char *z)
{
    return s.len == strlen(z) && strncasecmp(s.ptr, z, s.len) == 0;
}

static int set_param(struct oci_challenge *one, struct str key, struct str value, struct err *err)
{
    struct str *const places[] = {&one->realm, &one->service, &one->scope, &one->error};
    static const char *const KEYS[] = {"realm", "service", "scope", "error"};
    for (size_t idx = 0; idx < ARRAY_LEN(KEYS); idx++) {
        if (is_word(key, KEYS[idx])) {
            if (places[idx]->ptr) {
                return err_set(err, ERR_PARSE, "WWW-Authenticate: %s twice", KEYS[idx]);
            }
            *places[idx] = value;
        }
    }
    return 0;
}

/* KEY "=" VALUE; without one the cursor stays where it was, before the next scheme, or after a token68. */
static int read_params(struct arena *arena, struct auth_cursor *c, struct oci_challenge *one,
                       struct err *err)
{
    while (true) {
        struct auth_cursor before;
        struct str key;
        struct str value = STR_EMPTY;
        skip_blanks(c, true);
        before = *c;
        key = read_token(c);
        skip_blanks(c, false);
        if (key.len == 0 || peek(c) != '=') {
            *c = before;
            return 0;
        }
        c->at++;
        skip_blanks(c, false);
        /* A token68, "abc==", has no value after its equals sign. */
        if (peek(c) == '\0' || peek(c) == ',' || peek(c) == '=') {
            while (peek(c) == '=') {
                c->at++;
            }
            continue;
        }
        if (read_value(arena, c, &value, err) < 0 || set_param(one, key, value, err) < 0) {
            return -1;
        }
    }
}

int oci_challenge_parse(struct arena *arena, struct str header, struct oci_challenge *ret_challenge,
                        struct err *err)
{
    struct auth_cursor c = {header, 0};
    struct oci_challenge best = {0};
    if (header.len > OCI_CHALLENGE_MAX) {
        return err_set(err, ERR_PARSE, "WWW-Authenticate: too long, %zu bytes", header.len);
    }
    for (skip_blanks(&c, true); c.at < c.text.len; skip_blanks(&c, true)) {
        struct oci_challenge one = {0};
        struct str scheme = read_token(&c);
        if (scheme.len == 0) {
            return err_set(err, ERR_PARSE, "WWW-Authenticate: expected a scheme at byte %zu", c.at);
        }
        if (read_params(arena, &c, &one, err) < 0) {
            return -1;
        }
        one.kind = is_word(scheme, "Bearer")  ? OCI_AUTH_BEARER
                   : is_word(scheme, "Basic") ? OCI_AUTH_BASIC
                                              : OCI_AUTH_NONE;
        if (one.kind > best.kind) {
            best = one;
        }
    }
    if (best.kind == OCI_AUTH_BEARER && best.realm.len == 0) {
        return err_set(err, ERR_PARSE, "WWW-Authenticate: Bearer without a realm");
    }
    *ret_challenge = best;
    return 0;
}

/* ---- tokens ---- */

static int find_token(const struct json *root, struct arena *arena, struct str *ret_text,
                      struct err *err)
{
    static const char *const KEYS[] = {"token", "access_token"};
    struct json member;
    for (size_t idx = 0; idx < ARRAY_LEN(KEYS); idx++) {
        if (json_find(root, KEYS[idx], &member) && !json_is_null(&member)) {
            if (json_str(&member, arena, ret_text, err) < 0) {
                return -1;
            }
            if (ret_text->len) {
                return 0;
            }
        }
    }
    return json_fail(root, err, "expected a member \"token\" or \"access_token\"");
}

static int parse_token(struct arena *arena, struct str text, const char *name,
                       struct oci_token *ret_token, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct oci_token token = {.lifetime_s = OCI_TOKEN_S};
    struct json root, member;
    if (text.len > OCI_TOKEN_MAX) {
        return err_set(err, ERR_PARSE, "%s: an answer of %zu bytes, too long for a token", name,
                       text.len);
    }
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (!json_is_object(&root)) {
        return json_fail(&root, err, "expected an object");
    }
    if (find_token(&root, arena, &token.text, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < token.text.len; idx++) {
        unsigned char c = (unsigned char)token.text.ptr[idx];
        if (c <= ' ' || c >= 0x7f) {
            return json_fail(&root, err, "the token has a byte that no header can hold");
        }
    }
    if (json_find(&root, "expires_in", &member) && !json_is_null(&member)) {
        if (json_i64(&member, 0, LIFETIME_MAX_S, &token.lifetime_s, err) < 0) {
            return -1;
        }
        token.lifetime_s = token.lifetime_s ? token.lifetime_s : OCI_TOKEN_S;
    }
    *ret_token = token;
    return 0;
}

int oci_token_parse(struct arena *arena, struct str text, const char *name,
                    struct oci_token *ret_token, struct err *err)
{
    int result = parse_token(arena, text, name, ret_token, err);
    if (result < 0 && err->code == ERR_MANIFEST) {
        err->code = ERR_PARSE;
    }
    return result;
}

/* ---- logins ---- */

/* "https://index.docker.io/v1/" to "docker.io", "https://host:5000/v2/" to "host:5000", "host/team" as it is. */
static struct str plain_key(struct str key)
{
    static const char *const DOCKER[] = {"index.docker.io", "registry-1.docker.io"};
    struct str host;
    int64_t slash;
    int64_t scheme = str_find(key, STR_LIT("://"));
    if (scheme >= 0) {
        key = str_sub(key, (size_t)scheme + 3, key.len);
    }
    while (key.len && key.ptr[key.len - 1] == '/') {
        key.len--;
    }
    if (str_ends(key, STR_LIT("/v1")) || str_ends(key, STR_LIT("/v2"))) {
        key.len -= 3;
    }
    slash = str_find(key, STR_LIT("/"));
    host = slash >= 0 ? str_sub(key, 0, (size_t)slash) : key;
    for (size_t idx = 0; idx < ARRAY_LEN(DOCKER); idx++) {
        if (slash < 0 && str_eq_z(host, DOCKER[idx])) {
            return STR_LIT("docker.io");
        }
    }
    return key;
}

/* Whether a key is the name itself, or a folder above it. */
static bool covers(struct str key, const char *name)
{
    return str_starts(str_of(name), key) && (name[key.len] == '\0' || name[key.len] == '/') &&
           key.len > 0;
}

/* user:password in base64; no part of it may get into a message. */
static int read_login(const struct json *entry, struct arena *arena, struct oci_login *ret_login,
                      struct err *err)
{
    struct json member;
    struct err why = {0};
    struct str packed, bytes;
    int64_t colon;
    if (json_find(entry, "identitytoken", &member) && !json_is_null(&member)) {
        return json_fail(entry, err,
                         "an identity token is not supported: log in with a name and a password "
                         "or an access token");
    }
    if (!json_find(entry, "auth", &member) || json_is_null(&member)) {
        return 0; /* docker leaves an empty entry if a helper keeps the login */
    }
    if (json_str(&member, arena, &packed, err) < 0) {
        return -1;
    }
    if (packed.len > OCI_LOGIN_MAX || base64_decode(arena, packed, &bytes, &why) < 0) {
        return json_fail(&member, err, "expected NAME:PASSWORD in base64");
    }
    colon = str_find(bytes, STR_LIT(":"));
    if (colon <= 0 || memchr(bytes.ptr, '\n', bytes.len) || memchr(bytes.ptr, '\0', bytes.len)) {
        return json_fail(&member, err, "expected NAME:PASSWORD in base64");
    }
    ret_login->user = str_sub(bytes, 0, (size_t)colon);
    ret_login->password = str_sub(bytes, (size_t)colon + 1, bytes.len);
    return 0;
}

static int refuse_helper(const struct json *at, struct str host, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str helper;
    if (json_str(at, &arena, &helper, err) < 0) {
        return -1;
    }
    return err_set(err, ERR_AUTH,
                   "%s: the login for %.*s is kept by the credential helper \"%.*s\", which is not "
                   "started; write the login into a file of its own",
                   at->name, STR_ARG(host), STR_ARG(str_sub(helper, 0, 80)));
}

static int check_helpers(const struct json *root, struct str host, bool has_login, struct err *err)
{
    struct json helpers, item;
    if (json_find(root, "credHelpers", &helpers) && json_is_object(&helpers)) {
        for (bool more = json_first(&helpers, &item); more; more = json_next(&item)) {
            if (str_eq(plain_key(str_of(item.key)), host)) {
                return refuse_helper(&item, host, err);
            }
        }
    }
    if (!has_login && json_find(root, "credsStore", &item) && json_is_str(&item)) {
        return refuse_helper(&item, host, err);
    }
    return 0;
}

static int find_login(const struct json *root, struct arena *arena, struct str host,
                      struct str path, struct oci_login *ret_login, struct err *err)
{
    const char *name = arena_printf(arena, "%.*s/%.*s", STR_ARG(host), STR_ARG(path));
    struct json auths, item;
    struct str best = STR_EMPTY;
    size_t n = 0;
    if (!json_find(root, "auths", &auths) || json_is_null(&auths)) {
        return check_helpers(root, host, false, err);
    }
    if (!json_is_object(&auths)) {
        return json_fail(&auths, err, "expected an object");
    }
    for (bool more = json_first(&auths, &item); more; more = json_next(&item)) {
        struct str key = plain_key(str_of(item.key));
        if (++n > OCI_AUTHS_MAX) {
            return json_fail(&auths, err, "expected at most %d logins", OCI_AUTHS_MAX);
        }
        if (covers(key, name) && key.len >= host.len && key.len > best.len) {
            struct oci_login login = {0};
            if (read_login(&item, arena, &login, err) < 0) {
                return -1;
            }
            if (login.user.ptr) {
                best = key;
                *ret_login = login;
            }
        }
    }
    return check_helpers(root, host, best.ptr != NULL, err);
}

int oci_login_find(struct arena *arena, struct str text, const char *name,
                   const struct oci_ref *ref, struct oci_login *ret_login, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    *ret_login = (struct oci_login){0};
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (!json_is_object(&root)) {
        return json_fail(&root, err, "expected an object");
    }
    return find_login(&root, arena, ref->host, ref->path, ret_login, err);
}
