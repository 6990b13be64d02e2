/* SPDX-License-Identifier: Apache-2.0 */
/* Docker's config.json, where people keep the logins of registries. Pure; a secret is only ever in the caller's arena and never
   in a message. Source: docker-login(1), "Authentication file"; RFC 4648. */
#ifndef CODEC_OCI_LOGIN_H
#define CODEC_OCI_LOGIN_H

#include "base/strbuf.h"

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

#endif
