/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci_ref.h"

#define DOCKER_HOST   "docker.io"
#define DIGEST_PREFIX "sha256:"
#define PORT_MAX      65535

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* ---- digests ---- */

int oci_digest_parse(struct str text, uint8_t *ret_sha256, struct err *err)
{
    struct err why = {0};
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
                   &why) < 0) {
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

/* ---- parts ---- */

/* One part of a DNS name: letters, digits, dashes inside. */
static bool is_label(struct str s)
{
    if (s.len == 0 || s.ptr[0] == '-' || s.ptr[s.len - 1] == '-') {
        return false;
    }
    for (size_t idx = 0; idx < s.len; idx++) {
        if (!is_alnum(s.ptr[idx]) && s.ptr[idx] != '-') {
            return false;
        }
    }
    return true;
}

static bool is_dns_name(struct str s)
{
    struct str part;
    bool has_any = false;
    while (str_next(&s, '.', &part)) {
        if (!is_label(part)) {
            return false;
        }
        has_any = true;
    }
    return has_any;
}

static bool is_ipv6(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        char c = s.ptr[idx];
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (!is_hex && c != ':') {
            return false;
        }
    }
    return s.len >= 2;
}

/* Cuts ":PORT" off the end. False if it is not a valid port. */
static bool cut_port(struct str *host)
{
    struct err err = {0};
    int64_t port;
    size_t from = host->len;
    while (from > 0 && host->ptr[from - 1] != ':' && host->ptr[from - 1] != ']') {
        from--;
    }
    if (from == 0 || host->ptr[from - 1] == ']') {
        return from == 0 || from == host->len;
    }
    if (str_to_i64(str_sub(*host, from, host->len), 1, PORT_MAX, &port, &err) < 0) {
        return false;
    }
    host->len = from - 1;
    return true;
}

static bool is_host(struct str host)
{
    if (!cut_port(&host)) {
        return false;
    }
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
        return is_ipv6(str_sub(host, 1, host.len - 2));
    }
    return is_dns_name(host);
}

/* Letters and digits, joined by one dot, one or two underscores, or dashes. */
static bool is_path_part(struct str s)
{
    size_t at = 0;
    while (at < s.len) {
        size_t joint = at;
        while (at < s.len && is_lower_or_digit(s.ptr[at])) {
            at++;
        }
        if (at == joint) {
            return false;
        }
        if (at == s.len) {
            return true;
        }
        joint = at;
        while (at < s.len && s.ptr[at] == s.ptr[joint]) {
            at++;
        }
        size_t n = at - joint;
        char c = s.ptr[joint];
        if (!(c == '-' || (c == '.' && n == 1) || (c == '_' && n <= 2))) {
            return false;
        }
    }
    return false;
}

static bool is_path(struct str path)
{
    struct str part;
    if (path.len == 0 || path.ptr[path.len - 1] == '/') {
        return false;
    }
    while (str_next(&path, '/', &part)) {
        if (!is_path_part(part)) {
            return false;
        }
    }
    return true;
}

static bool is_tag(struct str tag)
{
    for (size_t idx = 0; idx < tag.len; idx++) {
        char c = tag.ptr[idx];
        if (!is_alnum(c) && c != '_' && (idx == 0 || (c != '.' && c != '-'))) {
            return false;
        }
    }
    return tag.len > 0 && tag.len <= OCI_TAG_MAX;
}

static bool names_host(struct str part)
{
    return str_find(part, STR_LIT(".")) >= 0 || str_find(part, STR_LIT(":")) >= 0 ||
           str_eq_z(part, "localhost");
}

/* ---- the whole ---- */

static int bad(struct err *err, struct str text, const char *what)
{
    return err_set(err, ERR_USAGE, "image name \"%.*s\": %s", STR_ARG(str_sub(text, 0, 200)), what);
}

/* The tag follows a colon after the last slash. */
static struct str cut_tag(struct str *name)
{
    struct str tag = STR_EMPTY;
    for (size_t at = name->len; at > 0 && name->ptr[at - 1] != '/'; at--) {
        if (name->ptr[at - 1] == ':') {
            tag = str_sub(*name, at, name->len);
            tag.ptr = name->ptr + at; /* an empty tag counts, too */
            name->len = at - 1;
            break;
        }
    }
    return tag;
}

int oci_ref_parse(struct arena *arena, struct str text, struct oci_ref *ret_ref, struct err *err)
{
    struct oci_ref ref = {0};
    struct str name = text;
    int64_t at = str_find(text, STR_LIT("@"));
    if (text.len == 0 || text.len > OCI_REF_MAX) {
        return bad(err, text, "expected 1 to 512 bytes");
    }
    if (at >= 0) {
        struct err why = {0};
        name.len = (size_t)at;
        if (oci_digest_parse(str_sub(text, (size_t)at + 1, text.len), ref.sha256, &why) < 0) {
            return bad(err, text, why.msg);
        }
        ref.has_digest = true;
    }
    struct str tag = cut_tag(&name);
    if (tag.ptr && !is_tag(tag)) {
        return bad(err, text,
                   "expected a tag of letters, digits, \"_\", \".\" and \"-\" after \":\"");
    }
    int64_t slash = str_find(name, STR_LIT("/"));
    if (slash > 0 && names_host(str_sub(name, 0, (size_t)slash))) {
        ref.host = str_dup(arena, str_sub(name, 0, (size_t)slash));
        ref.path = str_dup(arena, str_sub(name, (size_t)slash + 1, name.len));
    } else {
        ref.host = STR_LIT(DOCKER_HOST);
        ref.path = str_dup(arena, name);
    }
    if (!is_host(ref.host)) {
        return bad(err, text, "expected HOST or HOST:PORT before the first \"/\"");
    }
    if (!is_path(ref.path)) {
        return bad(
            err, text,
            "expected a path of lower-case letters and digits, joined by \".\", \"_\", \"-\" "
            "and \"/\"");
    }
    if (str_eq_z(ref.host, DOCKER_HOST) && str_find(ref.path, STR_LIT("/")) < 0) {
        ref.path = str_of(arena_printf(arena, "library/%.*s", STR_ARG(ref.path)));
    }
    if (ref.host.len + 1 + ref.path.len > OCI_NAME_MAX) {
        return bad(err, text, "host and path are longer than 255 bytes");
    }
    ref.tag = tag.ptr ? str_dup(arena, tag) : STR_EMPTY;
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
    struct str part;
    size_t n = 0;
    if (!cut_port(&host)) {
        return false;
    }
    if (str_eq_z(host, "localhost") || str_eq_z(host, "[::1]")) {
        return true;
    }
    if (!str_starts(host, STR_LIT("127."))) {
        return false;
    }
    for (; str_next(&host, '.', &part); n++) {
        struct err err = {0};
        int64_t value;
        if (str_to_i64(part, 0, 255, &value, &err) < 0) {
            return false; /* 127.example.org */
        }
    }
    return n == 4;
}
