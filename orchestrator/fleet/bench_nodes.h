/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what nodes can do: reperf-node is put there as for any job, run as `reperf-node bench ...`, one measurement on a node at a
   time, and what it prints is read (judge/node_bench.h); GPUs likewise by reperf-bench in a container. Between two nodes the one listens on its own address for the other one, which
   knows the token. A job is forgotten when it is read; where this ends early it is killed and forgotten. */
#ifndef FLEET_BENCH_NODES_H
#define FLEET_BENCH_NODES_H

#include "fleet/fleet.h"
#include "fleet/node_image.h"
#include "judge/bench_judge.h"

#define BENCH_PORT_DEFAULT 29600
#define BENCH_TICKS_MIN    6
#define BENCH_TICKS_MAX    64

/* With what GPUs are measured. */
struct bench_gpu_opts {
    const char *why_not; /* not at all, and why; NULL: with the rest */
    enum runtime_kind runtime;
    const struct image_spec *image; /* has reperf-bench in its PATH; pinned */
    const struct store *store;      /* NULL where the inventory names a registry */
};

struct bench_opts {
    bool wants[BENCH_WHATS];
    int64_t n_repeats;
    int64_t n_confirm;                 /* how often a measurement with an outlier is repeated */
    int64_t sample_ms;                 /* target duration of a repeat of a rate */
    int64_t memory_bytes;              /* of all arrays, at most; 0: four times the caches each */
    int64_t disk_bytes;                /* of the file */
    int64_t port;                      /* node K of the inventory listens on port + K */
    int64_t limit_s;                   /* of one measurement on one node */
    const struct bench_limits *limits; /* borrowed */
    const struct bench_gpu_opts *gpu;  /* borrowed */
    struct clock_src clock;
    void (*on_stage)(void *ctx, const char *stage); /* before each; may be NULL */
    void *stage_ctx;
};

struct bench_node {
    const struct inventory_node *spec;
    struct str cpu_model; /* ptr NULL: not reported */
    int64_t cpus, gpus;
    struct str group; /* the first of the inventory's, else the processor's name */
    struct bench_figure figures[BENCH_MEASURES];
    struct str *notes;
    size_t n_notes;
    struct bench_tick *ticks;
    size_t n_ticks;
    bool has_offset; /* bounds of its clock's offset against this machine's */
    int64_t offset_low_ns, offset_high_ns;
    struct err err; /* the first: not reached, or an invalid answer */
};

struct bench_result {
    struct bench_node *nodes; /* as the inventory has them */
    size_t n_nodes;
    struct bench_link *links;
    size_t n_links;
    struct err err; /* of the first node that was not measured as asked; ERR_NONE: all were */
};

/* A node that cannot be measured is part of the result, not an error. All live in the arena. */
MUST_CHECK int bench_nodes_run(struct arena *arena, struct fleet *fleet,
                               const struct bench_opts *opts, struct bench_result *ret_result,
                               struct err *err);
/* 0: all that was asked was measured and is within; 1: an outlier; else that of the first node that was not measured. */
int bench_exit_status(const struct bench_result *result);

#endif
