/* SPDX-License-Identifier: Apache-2.0 */
/* One call of skopeo, and what its complaint means. Only store/registry.c, store/image_layout.c and store/image_export.c
   include it. */
#pragma once

#include "store/registry.h"
#include "sys/child.h"

#define SKOPEO_ARGS_MAX  32
#define SKOPEO_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct skopeo_call {
    const char *const *args; /* after skopeo's own options; ended by NULL */
    struct str secret;       /* is not repeated from what skopeo says; NULL: none */
    struct strbuf *out;      /* NULL: nothing is expected on stdout */
    int64_t deadline_ns;     /* 0: none */
    bool (*is_alive)(void *ctx);
    void *alive_ctx;
    bool *ret_is_plain; /* it asked for TLS, and something without TLS answered; or NULL */
};

/* It uses clock, tmp_folder, proxy and ca_path of registry. Whatever makes skopeo fail becomes ERR_AUTH, ERR_NOT_FOUND, ERR_NET,
   ERR_TIMEOUT, ERR_INTEGRITY, ERR_DISK or ERR_FETCH by its words, which are for people and for the search of another place;
   that something arrived is never taken from them. */
MUST_CHECK int skopeo_run(struct arena *arena, const struct registry *registry,
                          const struct skopeo_call *call, struct err *err);
