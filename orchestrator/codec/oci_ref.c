/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci_ref.h"

#include "codec/json.h"
#include "codec/pattern.h"
#include "codec/sign.h"

#define DOCKER_HOST   "docker.io"
#define DIGEST_PREFIX "sha256:"

/* The grammar, in regular expressions. Source: github.com/distribution/reference, regexp.go, read 2026-11. */
#define PORT                                                                                       \
    "(?::0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-"  \
    "5]))?"
#define OCTET "\\.0*(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
#define HOST  "(?:\\[[0-9A-Fa-f:]{2,}\\]|" LABEL "(?:\\." LABEL ")*)" PORT
/* Letters and digits, joined by one dot, one or two underscores, or dashes. */
#define PATH_PART "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*"
/* A first part with a dot or colon, or this machine, is a host and no part of the path. */
#define IS_HOST "[^/]*[.:][^/]*/|localhost/"

static const char NAME[] = "\\A(?:(?=" IS_HOST ")(" HOST ")/|(?!" IS_HOST "))(" PATH_PART
                           "(?:/" PATH_PART ")*)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?\\z";
static const char LOOPBACK[] = "\\A(?:localhost|\\[::1\\]|127(?:" OCTET "){3})" PORT "\\z";

static bool fits(struct str text, const char *form, struct str *ret_groups, int n_groups)
{
    struct patterns patterns = {0};
    bool is_found = patterns_find(&patterns, form, text, ret_groups, n_groups);
    patterns_release(&patterns);
    return is_found;
}

/* ---- digests ---- */

int oci_digest_parse(struct str text, uint8_t *ret_sha256, struct err *err)
{
    int64_t colon = str_find(text, STR_LIT(":"));
    if (!str_starts(text, STR_LIT(DIGEST_PREFIX))) {
        if (colon > 0) {
            return err_set(err, ERR_PARSE,
                           "digest of kind \"%.*s\": only sha256 is supported, which every "
                           "registry can give",
                           STR_ARG(str_sub(text, 0, colon > 20 ? 20 : (size_t)colon)));
        }
        return err_set(err, ERR_PARSE, "expected a digest \"sha256:HEX\", found \"%.*s\"",
                       STR_ARG(str_sub(text, 0, 80)));
    }
    if (hex_decode(str_sub(text, sizeof(DIGEST_PREFIX) - 1, text.len), SHA256_BYTES, ret_sha256,
                   ERR_IGNORED) < 0) {
        return err_set(err, ERR_PARSE,
                       "digest \"%.*s\": expected 64 lower-case hex digits after \"sha256:\"",
                       STR_ARG(str_sub(text, 0, 100)));
    }
    return 0;
}

void oci_digest_text(const uint8_t *sha256, char ret_text[OCI_DIGEST_SIZE])
{
    memcpy(ret_text, DIGEST_PREFIX, sizeof(DIGEST_PREFIX) - 1);
    hex_encode(sha256, SHA256_BYTES, ret_text + sizeof(DIGEST_PREFIX) - 1);
}

struct oci_digest oci_digest_of(const uint8_t *sha256)
{
    struct oci_digest digest;
    oci_digest_text(sha256, digest.text);
    return digest;
}

/* ---- names ---- */

static int bad(struct err *err, struct str text, const char *what)
{
    return err_set(err, ERR_USAGE, "image name \"%.*s\": %s", STR_ARG(str_sub(text, 0, 200)), what);
}

int oci_ref_parse(struct arena *arena, struct str text, struct oci_ref *ret_ref, struct err *err)
{
    struct oci_ref ref = {0};
    struct str parts[4]; /* all, host, path, tag */
    struct err why = {0};
    int64_t at = str_find(text, STR_LIT("@"));
    ref.has_digest = at >= 0;
    if (text.len == 0 || text.len > OCI_REF_MAX) {
        return bad(err, text, "expected 1 to 512 bytes");
    }
    if (ref.has_digest &&
        oci_digest_parse(str_sub(text, (size_t)at + 1, text.len), ref.sha256, &why) < 0) {
        return bad(err, text, why.msg);
    }
    if (!fits(str_sub(text, 0, ref.has_digest ? (size_t)at : text.len), NAME, parts,
              ARRAY_LEN(parts))) {
        return bad(err, text,
                   "expected [HOST[:PORT]/]PATH[:TAG], the path of lower-case letters and digits, "
                   "joined by \".\", \"_\", \"-\" and \"/\"");
    }
    ref.host = parts[1].len ? str_dup(arena, parts[1]) : STR_LIT(DOCKER_HOST);
    bool is_short = str_eq_z(ref.host, DOCKER_HOST) && str_find(parts[2], STR_LIT("/")) < 0;
    ref.path = str_printf(arena, "%s%.*s", is_short ? "library/" : "", STR_ARG(parts[2]));
    if (ref.host.len + 1 + ref.path.len > OCI_NAME_MAX) {
        return bad(err, text, "host and path are longer than 255 bytes");
    }
    ref.tag = parts[3].len ? str_dup(arena, parts[3]) : STR_EMPTY;
    *ret_ref = ref;
    return 0;
}

char *oci_ref_name(struct arena *arena, const struct oci_ref *ref)
{
    return arena_printf(arena, "%.*s/%.*s", STR_ARG(ref->host), STR_ARG(ref->path));
}

char *oci_ref_text(struct arena *arena, const struct oci_ref *ref)
{
    return arena_printf(arena, "%.*s/%.*s%s%.*s%s%s", STR_ARG(ref->host), STR_ARG(ref->path),
                        ref->tag.ptr ? ":" : "", STR_ARG(ref->tag), ref->has_digest ? "@" : "",
                        ref->has_digest ? oci_digest_of(ref->sha256).text : "");
}

bool oci_host_is_loopback(struct str host)
{
    return fits(host, LOOPBACK, NULL, 0);
}

/* "https://index.docker.io/v1/" to "docker.io", "https://host:5000/v2/" to "host:5000", "host/team" as it is. */
static struct str plain_key(struct str key)
{
    static const char *const DOCKER[] = {"index.docker.io", "registry-1.docker.io", NULL};
    int64_t scheme = str_find(key, STR_LIT("://"));
    if (scheme >= 0) {
        key = str_sub(key, (size_t)scheme + 3, key.len);
    }
    key = str_rtrim(key, 0, "/");
    if (str_ends(key, STR_LIT("/v1")) || str_ends(key, STR_LIT("/v2"))) {
        key.len -= 3;
    }
    int64_t slash = str_find(key, STR_LIT("/"));
    struct str host = slash >= 0 ? str_sub(key, 0, (size_t)slash) : key;
    return slash < 0 && str_eq_any(host, DOCKER) ? STR_LIT("docker.io") : key;
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
    struct str packed, bytes;
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
    if (packed.len > OCI_LOGIN_MAX || base64_decode(arena, packed, &bytes, ERR_IGNORED) < 0) {
        return json_fail(&member, err, "expected NAME:PASSWORD in base64");
    }
    int64_t colon = str_find(bytes, STR_LIT(":"));
    if (colon <= 0 || memchr(bytes.ptr, '\n', bytes.len) || memchr(bytes.ptr, '\0', bytes.len)) {
        return json_fail(&member, err, "expected NAME:PASSWORD in base64");
    }
    ret_login->user = str_sub(bytes, 0, (size_t)colon);
    ret_login->password = str_sub(bytes, (size_t)colon + 1, bytes.len);
    ret_login->packed = packed;
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
    bool more = json_find(root, "credHelpers", &helpers) && json_is_object(&helpers) &&
                json_first(&helpers, &item);
    for (; more; more = json_next(&item)) {
        if (str_eq(plain_key(str_of(item.key)), host)) {
            return refuse_helper(&item, host, err);
        }
    }
    return !has_login && json_find(root, "credsStore", &item) && json_is_str(&item)
               ? refuse_helper(&item, host, err)
               : 0;
}

int oci_login_find(struct arena *arena, struct str text, const char *name,
                   const struct oci_ref *ref, struct oci_login *ret_login, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *whole = oci_ref_name(arena, ref);
    struct json auths, item;
    size_t best = 0, n = 0;
    *ret_login = (struct oci_login){0};
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    if (!json_is_object(&doc.root)) {
        return json_fail(&doc.root, err, "expected an object");
    }
    bool more = json_find(&doc.root, "auths", &auths) && !json_is_null(&auths);
    if (more && !json_is_object(&auths)) {
        return json_fail(&auths, err, "expected an object");
    }
    for (more = more && json_first(&auths, &item); more; more = json_next(&item)) {
        struct str key = plain_key(str_of(item.key));
        struct oci_login login = {0};
        if (++n > OCI_AUTHS_MAX) {
            return json_fail(&auths, err, "expected at most %d logins", OCI_AUTHS_MAX);
        }
        if (!covers(key, whole) || key.len < ref->host.len || key.len <= best) {
            continue;
        }
        if (read_login(&item, arena, &login, err) < 0) {
            return -1;
        }
        if (login.user.ptr) {
            best = key.len;
            *ret_login = login;
        }
    }
    return check_helpers(&doc.root, ref->host, best > 0, err);
}
