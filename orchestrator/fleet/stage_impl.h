/* SPDX-License-Identifier: Apache-2.0 */
/* What fleet/stage.c and stage_send.c share: one call of stage_items. */
#pragma once

#include "codec/relay.h"
#include "fleet/stage.h"
#include "sys/pool.h"

#define STAGE_SILENCE_NS  (90 * NS_PER_S) /* without a sign of life: the node is given up */
#define STAGE_LIMIT_NS    (30LL * 86400 * NS_PER_S) /* for one relay */
#define STAGE_FEED_BYTES  (256u << 10)              /* under way to a relay */
#define STAGE_BUFFER_MAX  (8u << 20)                /* much less is used */
#define STAGE_ORDERS_MAX  (2ULL << 30)              /* bytes of all nodes' orders */
#define STAGE_RUNS_MAX    4 /* for a node whose relay or connection breaks */
#define STAGE_MARK_PREFIX ".reperf-mark-"

/* A stream as codec/relay.h has it. */
struct stage_stream {
    const uint8_t *is_wanted; /* parallel to the order's files; borrowed */
    size_t file;              /* its index in the order; n_files: the end */
    int fd;                   /* that file; -1: not open */
    uint64_t left_bytes;      /* what is left of it */
    uint64_t sent_bytes;      /* without the heads */
    bool is_over;             /* its end was written, too */
};

enum stage_phase {
    PHASE_PREPARE, /* being asked for its work folder and its program */
    PHASE_RELAY,   /* its relay runs */
    PHASE_OVER,    /* done or failed */
};

struct staging_node {
    struct staging *staging;
    size_t idx;
    enum stage_phase phase;
    const char *work, *program; /* its work folder; reperf-node there */
    uint64_t part;              /* the part of what is shared that it reads */
    struct strbuf order;
    struct strbuf line;  /* its relay's, under way */
    struct strbuf feed;  /* for its stdin */
    uint8_t *is_missing; /* parallel to the order's files */
    size_t n_runs;
    bool is_counted;         /* told->bytes_there is what its first relay found */
    bool was_damaged;        /* something came damaged once */
    bool by_ssh;             /* its stream goes by SSH, since connections to it break */
    struct stage_node *told; /* what the caller is told of it */
    struct relay_state {     /* the relay that runs */
        struct err failure;  /* what its lines tell */
        bool item_is_shared[STAGE_ITEMS_MAX];
        bool has_spoken, is_ready, has_taken, is_complete;
        uint16_t port;
        uint64_t at_bytes;
        int64_t heard_ns;
        size_t order_at;   /* bytes of the order that were sent */
        bool is_streaming; /* by_ssh: its stream has begun */
        struct stage_stream stream;
    } relay;
};

enum chain_state { CHAIN_WAITING, CHAIN_SENDING, CHAIN_OVER };

struct chain {
    enum chain_state state;
    struct pool_job job; /* it connects and sends */
    const char *hop;     /* the first relay */
    struct stage_stream stream;
    bool is_fault_here; /* it ended because of a file here */
};

struct staging {
    struct arena *arena;
    struct fleet *fleet;
    const struct stage_opts *opts;
    const struct stage_item *items;
    struct relay_order order; /* roots are each node's own */
    const char **sources;     /* absolute folder of each item, or its file */
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
/* The path there of an item, or, of a file, the folder that it lies in. */
char *stage_item_path(const struct staging *staging, struct arena *arena, const char *work,
                      size_t item);

/* ---- stage_send.c ---- */

enum step stage_step_node(void *ctx, struct fleet_node *fleet_node, size_t idx, struct err *err);
void stage_stream_end(struct staging *staging, struct stage_stream *stream);
