/* SPDX-License-Identifier: Apache-2.0 */
/* One call of skopeo, and what its complaint means. Only store/registry.c, store/image_layout.c and store/image_export.c include it. */
#pragma once

#include "codec/oci_ref.h"
#include "sys/child.h"

#define SKOPEO_ARGS_MAX  32
#define SKOPEO_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct skopeo {
    struct arena *arena; /* borrowed */
    struct clock_src clock;
    const char *tmp_folder;
    const char *proxy;      /* NULL: the environment's */
    const char *ca_path;    /* NULL: the system's */
    struct oci_login login; /* its words are taken out of what skopeo says */
};

struct skopeo_call {
    const char *const *args; /* after skopeo's own options; ended by NULL */
    struct strbuf *out;      /* NULL: nothing is expected on stdout */
    int64_t deadline_ns;     /* 0: none */
    bool (*is_alive)(void *ctx);
    void *alive_ctx;
};

/* Whatever makes skopeo fail becomes ERR_AUTH, ERR_NOT_FOUND, ERR_NET, ERR_TIMEOUT, ERR_INTEGRITY, ERR_DISK or ERR_FETCH by its
   words, which are for people and for the search of another place; that something arrived is never taken from them.
   *ret_is_plain (or NULL): it asked for TLS, and something without TLS answered. */
MUST_CHECK int skopeo_run(const struct skopeo *skopeo, const struct skopeo_call *call,
                          bool *ret_is_plain, struct err *err);
