/* SPDX-License-Identifier: Apache-2.0 */
/* A client of OCI registries (distribution-spec v1.1): manifests and blobs, by digest or tag, anonymous, with a token
   or with a login. Everything that it returns is checked: a manifest's bytes have the digest that was requested and
   that the server stated, a blob is verified while it streams into the store. One thread; it runs the loop while it
   waits.

   Plain HTTP is used only with this machine's own addresses and with hosts that the caller names, and only if HTTPS
   does not answer there; an invalid certificate never causes a fallback. A login is read from a file and sent to the
   registry, or to the token server that it names, and nowhere else: not to argv, messages or logs, nor to the host to
   which a blob is redirected. */
#ifndef STORE_REGISTRY_H
#define STORE_REGISTRY_H

#include "codec/oci.h"
#include "net/fetch.h"
#include "store/store.h"

#define REGISTRY_LAYERS_AT_ONCE 4
#define REGISTRY_TRIES          3 /* of a request after ERR_NET or 5xx */
#define REGISTRY_WAITS          4 /* after 429 */
/* A registry that wants us to wait longer is told to the user instead. */
#define REGISTRY_WAIT_MAX_NS (120 * NS_PER_S)

struct registry_settings { /* borrowed for the client's life */
    struct loop *loop;
    struct http *http;
    struct pool *pool;
    const char *
        auth_path; /* docker's config.json form; NULL: no logins. Must not be readable by others (ERR_AUTH) */
    const char *const *plain_hosts; /* HOST or HOST:PORT that may be spoken to in plain HTTP */
    size_t n_plain_hosts;
    size_t n_connections;      /* of one large blob; 0: 4 */
    int n_retries;             /* of a blob's piece; 0: net/fetch's default */
    uint64_t rate_bytes_per_s; /* of each blob; 0: no limit */
    bool wants_progress;
    bool (*should_stop)(void); /* may be NULL */
};

struct registry;

MUST_CHECK int registry_new(const struct registry_settings *settings,
                            struct registry **ret_registry, struct err *err);
void registry_free(struct registry *registry);
static inline void registry_cleanup(struct registry **registry)
{
    registry_free(*registry);
}

struct registry_doc {
    struct str text;
    struct str content_type;
    uint8_t sha256[SHA256_BYTES];
};

/* By digest if the reference has one, else by tag. ERR_NOT_FOUND: the registry answers, and has no such manifest ("gone"); ERR_AUTH:
   not allowed, or it does not say whether there is one; ERR_NET, ERR_TIMEOUT: unreachable; ERR_FETCH: an invalid answer;
   ERR_INTEGRITY: other bytes than their digest says. */
MUST_CHECK int registry_manifest(struct registry *registry, struct arena *arena,
                                 const struct oci_ref *ref, struct registry_doc *ret_doc,
                                 struct err *err);

struct registry_got {
    size_t n_fetched, n_kept; /* blobs; kept: they were in the store */
    uint64_t fetched_bytes;   /* over the network */
    uint64_t kept_bytes;      /* that an earlier, broken fetch or the store had */
};

/* Blobs of the reference's repository into the store, several at once, each resumed where an earlier fetch was cut. Those that
   are done stay when another fails. Errors as above. */
struct registry_wanted {
    const struct oci_ref *ref;
    const struct oci_descriptor *blobs;
    size_t n;
};
MUST_CHECK int registry_blobs(struct registry *registry, const struct registry_wanted *wanted,
                              struct store *store, struct registry_got *ret_got, struct err *err);

#endif
