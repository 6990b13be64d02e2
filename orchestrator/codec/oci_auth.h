/* SPDX-License-Identifier: Apache-2.0 */
/* How a registry authenticates its clients: the WWW-Authenticate header, a token server's answer, and docker's config.json,
   where people keep logins. Pure; secrets are only ever in the caller's arena and never in a message. Source: RFC 9110 section
   11, RFC 6750 section 3, RFC 4648; distribution's token specification (docs/spec/auth/token.md, read 2026-11). */
#ifndef CODEC_OCI_AUTH_H
#define CODEC_OCI_AUTH_H

#include "base/strbuf.h"

#define OCI_CHALLENGE_MAX 8192
#define OCI_TOKEN_MAX     (256u << 10) /* some token servers pack long lists of rights into one */
#define OCI_AUTHS_MAX     1000
#define OCI_AUTH_FILE_MAX (1u << 20)
#define OCI_LOGIN_MAX     4096
/* If the answer does not say how long the token is valid. Source: token.md, "expires_in". */
#define OCI_TOKEN_S 60

enum oci_auth { OCI_AUTH_NONE, OCI_AUTH_BASIC, OCI_AUTH_BEARER };

struct oci_challenge { /* strings in the arena; NULL: not said */
    enum oci_auth kind;
    struct str realm; /* of Bearer: the token server's URL */
    struct str service;
    struct str scope;
    struct str error; /* "invalid_token", "insufficient_scope" */
};

/* The best of the challenges that a header value holds: Bearer, then Basic; OCI_AUTH_NONE if there is neither. ERR_PARSE. */
MUST_CHECK int oci_challenge_parse(struct arena *arena, struct str header,
                                   struct oci_challenge *ret_challenge, struct err *err);

struct oci_token {
    struct str text; /* printable, without blanks */
    int64_t lifetime_s;
};
MUST_CHECK int oci_token_parse(struct arena *arena, struct str text, const char *name,
                               struct oci_token *ret_token, struct err *err);

struct oci_ref;
struct oci_login {
    struct str user, password; /* NULL: no login for that registry */
};
/* The login for HOST (as in a reference) and PATH in docker's config.json: the longest of HOST/PART/OF/PATH and HOST; "docker.io"
   is listed there under its old names. A credential helper for the host is refused by name (ERR_AUTH), because we would have to
   run it. */
MUST_CHECK int oci_login_find(struct arena *arena, struct str text, const char *name,
                              const struct oci_ref *ref, struct oci_login *ret_login,
                              struct err *err);

/* Escapes for a query: everything except letters, digits and "-._~" becomes %XX. */
void url_escape(struct strbuf *buf, struct str text);

#endif
