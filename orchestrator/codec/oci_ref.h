/* SPDX-License-Identifier: Apache-2.0 */
/* Names of container images: [HOST[:PORT]/]PATH[:TAG][@sha256:HEX], as docker, podman and skopeo write them. A first part that
   has no dot or colon and is not "localhost" is part of the path at docker.io, and a path of one part there is library/PATH.
   Nothing is guessed beyond that: a name without tag and digest does not mean "latest". Source:
   https://github.com/distribution/reference (grammar in reference.go, read 2026-11); OCI distribution-spec v1.1. */
#pragma once

#include "base/strbuf.h"
#include "codec/digest.h"

#define OCI_REF_MAX  512
#define OCI_NAME_MAX 255
/* "sha256:" and 64 digits, with the NUL. */
#define OCI_DIGEST_SIZE (7 + SHA256_HEX_SIZE)

struct oci_ref {     /* strings in the arena */
    struct str host; /* "docker.io", "localhost:5000", "[::1]:5000" */
    struct str path; /* "library/debian" */
    struct str tag;  /* NULL: none */
    bool has_digest;
    uint8_t sha256[SHA256_BYTES];
};

/* ERR_USAGE with what is wrong and where. */
MUST_CHECK int oci_ref_parse(struct arena *arena, struct str text, struct oci_ref *ret_ref,
                             struct err *err);
/* The whole name, with host; the parser reads it back unchanged. */
char *oci_ref_text(struct arena *arena, const struct oci_ref *ref);
/* HOST/PATH alone. */
char *oci_ref_name(struct arena *arena, const struct oci_ref *ref);
/* localhost, 127.0.0.0/8 or ::1, whatever the port: the only hosts to which nobody else can read plain HTTP. */
bool oci_host_is_loopback(struct str host);

/* "sha256:" and 64 lower-case digits; another algorithm is refused by name. ERR_PARSE. */
MUST_CHECK int oci_digest_parse(struct str text, uint8_t *ret_sha256, struct err *err);
void oci_digest_text(const uint8_t *sha256, char ret_text[OCI_DIGEST_SIZE]);
/* The same as a value; oci_digest_of(sha256).text lives until the full expression ends. */
struct oci_digest {
    char text[OCI_DIGEST_SIZE];
};
struct oci_digest oci_digest_of(const uint8_t *sha256);

/* ---- logins: docker's config.json. A secret is only ever in the caller's arena and never in a message. Source: docker-login(1),
   "Authentication file"; RFC 4648. ---- */

#define OCI_AUTHS_MAX     1000
#define OCI_AUTH_FILE_MAX (1u << 20)
#define OCI_LOGIN_MAX     4096

struct oci_ref;
struct oci_login {
    struct str user, password; /* NULL: no login for that registry */
    struct str packed;         /* both, as the file has them: NAME:PASSWORD in base64 */
};
/* The login for HOST (as in a reference) and PATH in docker's config.json: the longest of HOST/PART/OF/PATH and HOST; "docker.io"
   is listed there under its old names. A credential helper for the host is refused by name (ERR_AUTH), because we would have to
   run it. */
MUST_CHECK int oci_login_find(struct arena *arena, struct str text, const char *name,
                              const struct oci_ref *ref, struct oci_login *ret_login,
                              struct err *err);
