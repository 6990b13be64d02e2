/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/oci_ref.h"

#include "codec/pattern.h"

#define DOCKER_HOST   "docker.io"
#define DIGEST_PREFIX "sha256:"

/* The grammar, in regular expressions. Source: github.com/distribution/reference, regexp.go, read 2026-11. */
#define PORT                                                                                       \
    "(?::0*(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-"  \
    "5]))?"
#define OCTET "\\.0*(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
/* Letters and digits, joined by one dot, one or two underscores, or dashes. */
#define PATH_PART "[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*"

static const char HOST[] = "\\A(?:\\[[0-9A-Fa-f:]{2,}\\]|" LABEL "(?:\\." LABEL ")*)" PORT "\\z";
static const char PATH[] = "\\A" PATH_PART "(?:/" PATH_PART ")*\\z";
static const char TAG[] = "\\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\\z";
static const char LOOPBACK[] = "\\A(?:localhost|\\[::1\\]|127(?:" OCTET "){3})" PORT "\\z";

static bool fits(struct str text, const char *form)
{
    struct patterns patterns = {0};
    bool is_found = patterns_find(&patterns, form, text, NULL, 0);
    patterns_release(&patterns);
    return is_found;
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

/* ---- names ---- */

static bool names_host(struct str part)
{
    return str_find(part, STR_LIT(".")) >= 0 || str_find(part, STR_LIT(":")) >= 0 ||
           str_eq_z(part, "localhost");
}

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
    if (tag.ptr && !fits(tag, TAG)) {
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
    if (!fits(ref.host, HOST)) {
        return bad(err, text, "expected HOST or HOST:PORT before the first \"/\"");
    }
    if (!fits(ref.path, PATH)) {
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
    return fits(host, LOOPBACK);
}
