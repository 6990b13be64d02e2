/* SPDX-License-Identifier: Apache-2.0 */
/* Registries of container images, by skopeo as a child process. What skopeo brings is taken by its digest alone: each blob is
   hashed here before the store has it under its name. One thread.

   Plain HTTP is used only with this machine's own addresses and with hosts that the caller names, and only if what answers
   there speaks no TLS; an invalid certificate never causes a fallback. Of the logins in the caller's file skopeo is given the
   one of the registry asked for, in a file of its own that only its owner can read, and never on its command line. */
#pragma once

#include "base/clock.h"
#include "codec/oci.h"
#include "store/store.h"

#define REGISTRY_RETRIES   2 /* skopeo's own, of one call */
#define REGISTRY_ANSWER_NS (60 * NS_PER_S)
/* A pull during which no byte arrives for so long has failed. */
#define REGISTRY_SILENCE_NS (120 * NS_PER_S)

/* How any registry is asked; all is borrowed. */
struct registry {
    struct clock_src clock;
    const char *tmp_folder; /* it exists */
    /* docker's config.json, which others must not be able to read (ERR_AUTH); NULL: no logins. */
    const char *auth_path;
    const char *proxy;              /* NULL: the environment's */
    const char *ca_path;            /* NULL: the system's */
    const char *const *plain_hosts; /* HOST or HOST:PORT that may be spoken to in plain HTTP */
    size_t n_plain_hosts;
    int n_retries; /* 0: REGISTRY_RETRIES */
    bool wants_progress;
};

/* Asks by digest if the reference has one, else by tag. ERR_NOT_FOUND: the registry answers, and has no such manifest ("gone");
   ERR_AUTH: not allowed, or it does not say whether there is one; ERR_NET, ERR_TIMEOUT: unreachable; ERR_FETCH: an invalid
   answer, or there is no skopeo. The digest of the text is for the caller to check. */
MUST_CHECK int registry_manifest(const struct registry *registry, struct arena *arena,
                                 const struct oci_ref *ref, struct str *ret_text, struct err *err);

/* Config and layers of the manifest ref->sha256 into the store. Those that are whole stay when another fails, or when this
   process is killed. Errors as above, and ERR_INTEGRITY: other bytes than their digest says. *ret_kept_bytes: what an
   earlier, broken fetch or the store had. */
MUST_CHECK int registry_pull(const struct registry *registry, const struct oci_ref *ref,
                             const struct oci_manifest *manifest, struct store *store,
                             uint64_t *ret_kept_bytes, struct err *err);
