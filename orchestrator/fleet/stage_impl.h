/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fleet/stage*.c share: one call of stage_items. */
#ifndef FLEET_STAGE_IMPL_H
#define FLEET_STAGE_IMPL_H

#include "base/vec.h"
#include "codec/relay.h"
#include "fleet/stage.h"
#include "sys/pool.h"

#define STAGE_STALL_NS    (30 * NS_PER_S)  /* without a byte: the stream is given up */
#define STAGE_SILENCE_NS  (90 * NS_PER_S)  /* without a sign of life: the node is given up */
#define STAGE_FEED_NS     (600 * NS_PER_S) /* for a part of a stream by SSH */
#define STAGE_FEED_BYTES  (4u << 20)
#define STAGE_ORDER_BYTES (8u << 20) /* of an order, in one request */
#define STAGE_ANSWER_MAX  (NODE_TEXT_MAX + 65536)
#define STAGE_ORDERS_MAX  (2ULL << 30) /* bytes of all nodes' orders */
#define STAGE_LINE_MAX    RELAY_LINE_MAX
#define STAGE_RUNS_MAX    3 /* of a relay whose connection breaks */
#define STAGE_MARK_PREFIX ".reperf-mark-"

enum stage_phase {
    PHASE_FOLDER, /* being asked for its work folder */
    PHASE_ORDER,  /* its order is being sent */
    PHASE_RELAY,  /* its relay runs */
    PHASE_OVER,   /* done or failed */
};

enum stage_mode { MODE_CHAIN, MODE_DIRECT, MODE_FEED /* its stream goes by SSH */ };

struct stage_partial {
    size_t file;
    uint64_t bytes;
};

struct staging;

struct staging_node {
    struct staging *staging;
    enum stage_phase phase;
    enum stage_mode mode;
    const char *work;    /* its work folder */
    uint32_t part;       /* of what is shared, that it reads */
    struct strbuf order; /* of the relay */
    struct strbuf line;  /* under way */
    char tail[256];      /* the last line that was not the relay's */
    uint8_t *is_missing; /* parallel to the order's files */
    size_t n_missing;
    uint8_t *was_bad; /* a file came damaged once */
    VEC(struct stage_partial) partials;
    bool is_ready; /* listens, and its state is known */
    bool is_complete, has_spoken, in_chain;
    bool has_taken; /* it has seen this round's stream */
    uint16_t port;
    size_t n_runs;
    bool item_is_shared[STAGE_ITEMS_MAX];
    size_t n_shared;
    uint64_t at_bytes;
    int64_t heard_ns, moved_ns; /* anything; a byte more */
    struct err failure;         /* that its lines tell */
    size_t order_at;            /* bytes of the order that are there */
    struct strbuf answer;
    struct strbuf feed; /* MODE_FEED: a part of its stream, under way */
    bool is_feeding;    /* the request under way is that; or asks what the relay says */
    bool is_hearing;
    bool is_fed; /* all was sent, since it said last what is missing */
    size_t feed_file;
    uint64_t feed_offset;
    int feed_fd;
    struct stage_node *report;
};

enum chain_state { CHAIN_IDLE, CHAIN_CONNECTING, CHAIN_SENDING, CHAIN_DRAINING };

struct chain {
    enum chain_state state;
    size_t *members; /* indices of nodes, in their order */
    size_t n_members;
    int fd;
    bool is_watched;
    /* The connection is made on the pool. */
    struct pool_job job;
    struct relay_hop hop;
    uint8_t token[RELAY_TOKEN_BYTES];
    int connected_fd;
    /* What is being sent. */
    struct strbuf hops;
    size_t hops_sent;
    size_t file; /* of the order; n_files: the end */
    int file_fd;
    uint64_t offset; /* in it */
    uint8_t header[RELAY_HEADER_BYTES];
    size_t header_len, header_sent;
    uint64_t body_left;
    bool was_cut; /* before its end: some members may never have seen it */
    int64_t moved_ns;
    size_t n_rounds;
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

/* ---- stage_gather.c ---- */

/* The items' files and their digests. */
MUST_CHECK int stage_gather(struct staging *staging, struct err *err);
/* Marks the folders that may be shared; unmark takes that away again. */
MUST_CHECK int stage_mark(struct staging *staging, struct err *err);
void stage_unmark(struct staging *staging);
/* Path here of a file of the order. */
char *stage_source_path(const struct staging *staging, struct arena *arena, size_t file);
/* Absolute path there of an item; of the folder that its files are below. */
char *stage_item_path(const struct staging *staging, struct arena *arena, const char *work,
                      size_t item);
char *stage_item_root(const struct staging *staging, struct arena *arena, const char *work,
                      size_t item);

/* ---- stage_node.c ---- */

enum step stage_step_node(void *ctx, struct fleet_node *fleet_node, size_t idx, struct err *err);
/* Switches to the next way of serving a node; why is for people. */
void stage_demote(struct staging *staging, size_t idx, const char *why);

/* ---- stage_chain.c ---- */

/* Sends what can be sent now. */
void stage_send(struct staging *staging);
/* Gives up the stream; the nodes keep what they have. */
void stage_cut(struct staging *staging);
void stage_chain_release(struct staging *staging);

/* ---- stage_feed.c ---- */

/* Sends the next part of its stream in a request; STEP_DONE: delivered. */
enum step stage_feed(struct staging *staging, struct staging_node *node, struct remote *remote,
                     struct err *err);
/* Its next stream starts from the beginning. */
void stage_feed_again(struct staging_node *node);

#endif
