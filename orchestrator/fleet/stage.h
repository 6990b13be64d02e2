/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing things onto the nodes: files, folders and images, each checked by digest on the node, sent by this machine about once
   and passed on from node to node, never fetched N times from outside. What is there already and is right stays.

   A node's work folder WORK:  jobs/          what fleet/remote keeps of jobs
                               bin/HEX/NAME   programs (reperf, reperf-train), by SHA-256
                               data/HEX/      packed data, by the SHA-256 of pack.json
                               source/COMMIT/ checked-out sources
                               images/HEX.tar images on their way into the engine; removed after
                               cache/digests  what was read before (sys/digest_cache.h)
                               lease          who measures here (fleet/lease.h)
   Files appear under their final name only when whole and right.

   How: reperf-node there starts a relay (node/relay_server.c), which says what is missing. That goes as one stream
   (codec/relay.h) over TCP to the first node, which passes it on to the second while it writes, and so on. A node to which a
   connection breaks gets the same stream from here by SSH, and so do those behind it in the chain. Contents are not secret:
   nothing is encrypted but what goes by SSH, which is all that says what is right. In reading order: codec/relay.h (what is
   said), fleet/stage_send.c (the chain), node/relay_server.c (the other end). */
#pragma once

#include "base/clock.h"
#include "fleet/fleet.h"

#define STAGE_ITEMS_MAX 256

enum stage_kind {
    STAGE_FILE,   /* one file */
    STAGE_FOLDER, /* regular files of a folder, recursively */
};

struct stage_item {
    enum stage_kind kind;
    const char *source;    /* path here */
    const char *target;    /* path there, below WORK, or absolute */
    struct str sha256_hex; /* what a file's digest must be; NULL: its digest is only taken here */
    bool is_executable;
    bool may_be_shared; /* a node that sees this very file at the same path may use it there */
};

struct stage_opts {
    const char *cache_path; /* digests of files here (sys/digest_cache.h), or NULL */
    struct clock_src clock;
    bool must_copy; /* also what is shared */
    /* Told of the bytes of all nodes together. */
    void (*on_progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total);
    void *progress_ctx;
};

/* The way that was last used to a node. */
enum stage_way {
    STAGE_NOTHING, /* all was there */
    STAGE_SHARED,  /* all is on a file system that the node shares with this machine */
    STAGE_CHAIN,   /* passed on */
    STAGE_SSH,     /* by SSH */
    STAGE_WAY_COUNT,
};
extern const char *const STAGE_WAY_NAMES[STAGE_WAY_COUNT];

/* What stage_items did for one node. */
struct stage_node {
    uint64_t bytes_sent;  /* to it, by whom ever */
    uint64_t bytes_there; /* found there and right */
    bool is_shared;       /* it sees this machine's own files: nothing was copied */
    enum stage_way way;
    const char *why;    /* why it was not served by the chain, or NULL */
    const char **paths; /* where each item is there; absolute */
};

struct stage_report {
    uint64_t head_bytes;      /* what this machine itself sent */
    uint64_t total_bytes;     /* all items */
    struct stage_node *nodes; /* in the fleet's order; in the arena */
};

struct stage_list {
    const struct stage_item *items;
    size_t n;
};

/* Returns the number of nodes that failed (fleet node->err says why), or -1. */
MUST_CHECK int stage_items(struct arena *arena, struct fleet *fleet, const struct stage_opts *opts,
                           struct stage_list list, struct stage_report *ret_report,
                           struct err *err);

/* ---- items of the usual kinds; all strings in the arena ---- */

/* A program: WORK/bin/HEX/NAME. */
MUST_CHECK int stage_program_item(struct arena *arena, const char *path,
                                  struct stage_item *ret_item, struct err *err);
/* Packed data (workloads/data/shard.h): WORK/data/HEX of its pack.json. */
MUST_CHECK int stage_packed_item(struct arena *arena, const char *folder,
                                 struct stage_item *ret_item, struct err *err);
