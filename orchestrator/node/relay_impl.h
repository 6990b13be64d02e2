/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by node/relay*.c: one relay on a node. */
#ifndef NODE_RELAY_IMPL_H
#define NODE_RELAY_IMPL_H

#include "base/clock.h"
#include "codec/relay.h"
#include "sys/digest_cache.h"
#include "sys/pool.h"

struct relay_root {    /* a folder that files are put below */
    int fd;            /* -1: not made yet */
    int partials_fd;   /* of its folder of partials, locked */
    char partials[40]; /* that one's name */
};

struct relay {
    struct clock_src clock;
    int in_fd, out_fd;
    struct arena arena;
    struct relay_order order;
    uint8_t *is_right; /* parallel to order.files */
    size_t n_right;
    struct relay_root *roots; /* of each item, or of an earlier one of the same folder */
    struct digest_cache *cache;
    struct pool *pool;
    size_t n_threads;
    int64_t beat_ns; /* of the last sign of life */
    uint64_t there_bytes, received_bytes;
};

/* Sends a line to the orchestrator; fails if nobody reads any more. */
MUST_CHECK int relay_say(const struct relay *relay, struct relay_line line, struct err *err);
/* ---- relay_file.c ---- */

struct relay_incoming; /* one file of the stream, which is wanted here */

/* Makes it if it is not there. */
MUST_CHECK int relay_root(struct relay *relay, size_t item, const struct relay_root **ret_root,
                          struct err *err);
void relay_root_close(struct relay_root *root);
/* ERR_INTEGRITY if offset leaves a hole. */
MUST_CHECK int relay_incoming_open(struct relay *relay, size_t idx, uint64_t offset,
                                   struct relay_incoming **ret_incoming, struct err *err);
/* The next bytes: those that exist already are passed over. */
MUST_CHECK int relay_incoming_take(struct relay_incoming *incoming, const uint8_t *bytes,
                                   size_t len, struct err *err);
/* The file's number, and how far it has come. */
size_t relay_incoming_file(const struct relay_incoming *incoming, uint64_t *ret_bytes);
/* The file is complete: named, or dropped and reported. Frees it. */
MUST_CHECK int relay_incoming_finish(struct relay *relay, struct relay_incoming *incoming,
                                     struct err *err);
void relay_incoming_free(struct relay_incoming *incoming);
/* The size of an existing partial, 0 without one. */
MUST_CHECK int relay_partial_bytes(struct relay *relay, size_t idx, uint64_t *ret_bytes,
                                   struct err *err);
/* Makes durable what came. */
MUST_CHECK int relay_sync(struct relay *relay, struct err *err);

#endif
