/* SPDX-License-Identifier: Apache-2.0 */
/* What fleet/stage.c and stage_send.c share: one call of stage_items. */
#ifndef FLEET_STAGE_IMPL_H
#define FLEET_STAGE_IMPL_H

#include "base/vec.h"
#include "codec/relay.h"
#include "fleet/stage.h"
#include "sys/pool.h"

#define STAGE_STALL_NS    (60 * NS_PER_S) /* without a byte: the stream is given up */
#define STAGE_SILENCE_NS  (90 * NS_PER_S) /* without a sign of life: the node is given up */
#define STAGE_LIMIT_NS    (30LL * 86400 * NS_PER_S) /* of one relay */
#define STAGE_FEED_BYTES  (256u << 10)              /* under way to a relay's stdin */
#define STAGE_ORDERS_MAX  (2ULL << 30)              /* bytes of all nodes' orders */
#define STAGE_RUNS_MAX    4                         /* of a node whose relay or connection breaks */
#define STAGE_MARK_PREFIX ".reperf-mark-"

struct staging;

struct stage_stream {      /* the tar stream (codec/relay_tar.h) of what some nodes lack */
    const size_t *members; /* their indices; borrowed */
    size_t n_members;
    size_t file; /* of the order; n_files: the end */
    int fd;      /* of that file; -1: not open */
    uint64_t offset;
    bool in_member; /* a member of the tar is under way: of that size, that much is left */
    uint64_t member_bytes, member_left;
    bool is_over; /* its end was written, too */
};

enum stage_phase {
    PHASE_PREPARE, /* being asked for its work folder and its program */
    PHASE_RELAY,   /* its relay runs */
    PHASE_OVER,    /* done or failed */
};

struct stage_partial {
    size_t file;
    uint64_t bytes;
};

struct staging_node {
    struct staging *staging;
    size_t idx;
    enum stage_phase phase;
    const char *work, *program; /* its work folder; reperf-node there */
    uint32_t part;              /* of what is shared, that it reads */
    struct strbuf order;
    struct strbuf line; /* of its relay, under way */
    uint8_t *was_bad;   /* a file came damaged once; parallel to the order's files */
    size_t n_runs;
    uint64_t first_bytes; /* that its first relay found; UINT64_MAX: not said yet */
    struct err failure;   /* that its lines tell */
    struct stage_node *report;
    bool by_ssh;             /* its stream goes by SSH, since connections to it break */
    struct relay_state {     /* of the relay that runs */
        uint8_t *is_missing; /* parallel to the order's files */
        VEC(struct stage_partial) partials;
        bool item_is_shared[STAGE_ITEMS_MAX];
        bool has_spoken, is_ready, has_taken, is_complete;
        uint16_t port;
        uint64_t at_bytes;
        int64_t heard_ns;
        bool in_chain;      /* it was told of a connection to come */
        size_t order_at;    /* bytes of the order that were sent */
        struct strbuf feed; /* for its stdin */
        bool is_streaming;  /* by_ssh: its stream has begun */
        struct stage_stream stream;
    } relay;
};

enum chain_state { CHAIN_WAITING, CHAIN_CONNECTING, CHAIN_SENDING, CHAIN_OVER };

struct chain {
    enum chain_state state;
    size_t *members; /* indices of nodes, in their order */
    size_t n_members;
    int fd;
    bool is_watched;
    int64_t moved_ns;
    /* The connection is made on the pool. */
    struct pool_job job;
    struct relay_hop hop;
    uint8_t token[RELAY_TOKEN_BYTES];
    int connected_fd;
    struct strbuf out; /* the stream's next bytes */
    size_t sent;       /* of them */
    struct stage_stream stream;
};

struct staging {
    struct arena *arena;
    struct fleet *fleet;
    const struct stage_opts *opts;
    const struct stage_item *items;
    struct relay_order order; /* roots are each node's own */
    const char **sources;     /* absolute folder of each item, or of its file */
    struct staging_node *nodes;
    struct chain chain;
    struct pool *pool;
    uint64_t orders_bytes;
    struct err fatal; /* ends it for all nodes */
    struct stage_report report;
};

/* ---- stage.c ---- */

/* Path here of a file of the order. */
char *stage_source_path(const struct staging *staging, struct arena *arena, size_t file);
/* The folder there that an item's files are below. */
char *stage_item_root(const struct staging *staging, struct arena *arena, const char *work,
                      size_t item);

/* ---- stage_send.c ---- */

enum step stage_step_node(void *ctx, struct fleet_node *fleet_node, size_t idx, struct err *err);
void stage_chain_release(struct staging *staging);
void stage_stream_end(struct stage_stream *stream);

#endif
