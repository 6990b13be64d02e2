/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the registry client share. Only store/registry*.c include it. */
#ifndef STORE_REGISTRY_IMPL_H
#define STORE_REGISTRY_IMPL_H

#include "base/rng.h"
#include "codec/oci_auth.h"
#include "store/registry.h"

struct registry_host {
    struct str server; /* HOST[:PORT] */
    bool is_plain;     /* http:// */
    struct oci_challenge challenge;
};

struct registry_token {
    struct str server, scope;
    const char *header; /* "Bearer ..." or "Basic ..." */
    int64_t until_ns;
};

struct registry {
    struct registry_settings settings;
    struct arena arena; /* holds secrets: never logged */
    struct rng rng;     /* spreads the tries */
    struct str auth_text;
    VEC(struct registry_host *) hosts;
    VEC(struct registry_token) tokens;
};

/* One request and its answer, whole. The strings are in the arena. */
struct exchange {
    const char *url;
    const char *accept;        /* or NULL */
    const char *authorization; /* or NULL */
    size_t max_bytes;          /* of the body */
    struct str what;           /* for messages */
};
struct answer {
    int status;
    struct str body;
    struct str content_type, docker_digest, www_authenticate;
    int64_t retry_after_ns;
};
/* Tries again after ERR_NET, 5xx and 429. n_tries 0: REGISTRY_TRIES. */
MUST_CHECK int registry_exchange(struct registry *r, struct arena *arena,
                                 const struct exchange *ask, int n_tries, struct answer *ret_answer,
                                 struct err *err);
/* Runs the loop for that long. ERR_INTERRUPTED. */
MUST_CHECK int registry_wait(struct registry *r, int64_t wait_ns, struct err *err);

/* Speaks to the host for the first time: scheme and way of authentication. */
MUST_CHECK int registry_host_of(struct registry *r, const struct oci_ref *ref,
                                struct registry_host **ret_host, struct err *err);
/* The header for pulls from the reference's repository; NULL where none is needed. */
MUST_CHECK int registry_authorize(struct registry *r, const struct registry_host *host,
                                  const struct oci_ref *ref, const char **ret_header,
                                  struct err *err);
/* A 401: forgets the token and notes what the registry now asks for. ERR_AUTH where nothing would change. */
MUST_CHECK int registry_refused(struct registry *r, struct registry_host *host,
                                const struct oci_ref *ref, struct str www_authenticate,
                                struct err *err);

char *registry_url(struct arena *arena, const struct registry_host *host, const struct oci_ref *ref,
                   const char *kind, const char *what);

#endif
