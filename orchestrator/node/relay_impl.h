/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by node/relay*.c: one relay on a node. */
#ifndef NODE_RELAY_IMPL_H
#define NODE_RELAY_IMPL_H

#include "codec/relay.h"
#include "node/relay_server.h"
#include "sys/digest_cache.h"
#include "sys/pool.h"

struct relay {
    const struct relay_opts *opts;
    struct arena arena;
    struct relay_order order;
    uint8_t *is_right; /* parallel to order.files */
    size_t n_right;
    int *root_fds; /* of each item; -1: not made yet */
    struct digest_cache *cache;
    struct pool *pool;
    size_t n_threads;
    int64_t beat_ns; /* of the last sign of life */
    uint64_t there_bytes, received_bytes;
    int next_fd; /* a stream that replaces the current one; -1: none */
};

int64_t relay_now_ns(const struct relay *relay);
/* Sends a line to the orchestrator; ERR_NODE if nobody reads any more. */
MUST_CHECK int relay_say(const struct relay *relay, const struct relay_line *line, struct err *err);
/* A sign of life, not too often. */
MUST_CHECK int relay_beat(struct relay *relay, struct err *err);

/* ---- relay_check.c ---- */

/* Fills is_right; reports what is shared. */
MUST_CHECK int relay_look(struct relay *relay, struct err *err);
/* Sends RELAY_FULL and returns ERR_DISK if the rest does not fit. */
MUST_CHECK int relay_check_disk(struct relay *relay, struct err *err);
/* Reports what is missing, and from which byte on. */
MUST_CHECK int relay_say_state(struct relay *relay, struct err *err);

/* ---- relay_file.c ---- */

struct relay_incoming { /* one file of the stream, if it is wanted here */
    const struct relay_file *file;
    size_t idx;
    int fd; /* locked */
    int root_fd;
    char partial[160]; /* below the root */
    uint64_t resume_bytes, written_bytes;
    uint64_t next_bytes; /* next offset expected of the stream; owned by the receiver */
    struct digest digest;
    struct digest_value value;
    bool is_hashed, is_begun;
    bool is_synced; /* to the disk before it gets its name */
};

MUST_CHECK int relay_root(struct relay *relay, size_t item, int *ret_fd, struct err *err);
/* ERR_INTEGRITY if offset leaves a hole. */
MUST_CHECK int relay_incoming_open(struct relay *relay, size_t idx, uint64_t offset,
                                   struct relay_incoming **ret_incoming, struct err *err);
/* Bytes of the stream: those before resume_bytes exist already. Each in its own thread. */
MUST_CHECK int relay_incoming_write(struct relay_incoming *incoming, uint64_t offset,
                                    const uint8_t *bytes, size_t len, struct err *err);
MUST_CHECK int relay_incoming_hash(struct relay_incoming *incoming, uint64_t offset,
                                   const uint8_t *bytes, size_t len, struct err *err);
/* The file is complete: renamed or dropped, and reported. Frees it. */
MUST_CHECK int relay_incoming_finish(struct relay *relay, struct relay_incoming *incoming,
                                     struct err *err);
void relay_incoming_free(struct relay_incoming *incoming);
/* A file without bytes. */
MUST_CHECK int relay_make_empty(struct relay *relay, size_t idx, struct err *err);
/* The size of an existing partial, 0 without one. */
uint64_t relay_partial_bytes(struct relay *relay, size_t idx);
/* Syncs everything that was written. */
MUST_CHECK int relay_sync(struct relay *relay, struct err *err);

/* ---- relay_stream.c ---- */

/* Receives streams, one after the other, until everything is complete. */
MUST_CHECK int relay_take_streams(struct relay *relay, struct err *err);

#endif
