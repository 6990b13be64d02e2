/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes can do, as measured by reperf-node (node/gauge.h) and, for GPUs, by reperf-bench (workloads/bench/gpus.h):
   figures from work and nanoseconds, each node compared with the others of its group. A node is an outlier where its
   figure is worse than the group's median by more than a share or an amount, and by more than a number of robust
   standard deviations of the others; all of these are data (manifests/node-bench.json). Pure. */
#ifndef JUDGE_NODE_BENCH_H
#define JUDGE_NODE_BENCH_H

#include "base/strbuf.h"

#define NODE_BENCH_TEXT_MAX   (1u << 20) /* of a node's answer */
#define NODE_BENCH_SERIES_MAX 16         /* of one answer */
#define NODE_BENCH_REPEATS    200        /* at most */

/* What a node is asked for in one request: one run of reperf-node. */
enum bench_what {
    BENCH_MEMORY,
    BENCH_FLOPS,
    BENCH_DISK,
    BENCH_CLOCK,
    BENCH_NET,
    BENCH_RING, /* requested together with the network */
    BENCH_GPU,
    BENCH_WHATS,
};

/* How a figure is computed from a repeat's work and nanoseconds. */
enum bench_formula {
    BENCH_RATE,   /* scale x work / ns */
    BENCH_TIME,   /* scale x ns / work */
    BENCH_JITTER, /* 100 (p95 - median) / median of ns, of 20 at a time */
    BENCH_DRIFT,  /* seen from here: node_bench_drift */
};

struct bench_measure {
    const char *id;
    enum bench_what what;
    enum bench_formula kind;
    double scale;
    int64_t size_bytes; /* of the messages that are judged; 0: none */
    bool is_higher_better;
    double
        most; /* no machine exceeds it, or is below 1 / most for a time: such an answer is refused */
    const char *unit, *head, *formula; /* head: of a column */
};
enum { BENCH_MEASURES = 18 };
extern const struct bench_measure BENCH_MEASURE[BENCH_MEASURES];
const struct bench_measure *bench_measure_of(struct str id); /* NULL: there is none */
const char *bench_what_name(enum bench_what what); /* as in reperf-node's WHAT and --only */
bool bench_what_of_name(struct str name, enum bench_what *ret);
/* On a node of so many GPUs, one of so many nodes, there is nothing to measure. */
bool bench_is_excused(const struct bench_measure *measure, int64_t gpus, size_t n_nodes);

/* ---- one node's answer ---- */

struct bench_series {
    const struct bench_measure *measure;
    int64_t size_bytes, work;
    const double *ns;
    size_t n;
};

struct bench_lack {
    const struct bench_measure *measure;
    struct str why;
};

struct bench_answer {
    struct str cpu_model;
    int64_t cpus, gpus;
    struct bench_series series[NODE_BENCH_SERIES_MAX];
    size_t n_series;
    struct bench_lack lacks[NODE_BENCH_SERIES_MAX];
    size_t n_lacks;
    struct str *notes;
    size_t n_notes;
};
/* took_ns: how long the node took, as seen from here, with all its repeats. An answer that was not asked for, or is impossible, is
   ERR_NODE. */
MUST_CHECK int bench_answer_read(struct arena *arena, struct str text, enum bench_what what,
                                 int64_t took_ns, struct bench_answer *ret_answer, struct err *err);

/* A figure for each repeat (BENCH_JITTER: for each 20). ret_values has series->n entries; returns their number. */
size_t bench_values(const struct bench_series *series, double *ret_values);

/* ---- the clock, as observed from here ---- */

struct bench_tick {   /* the least delayed of several lines with the node's time */
    int64_t here_ns;  /* when it arrived */
    int64_t ahead_ns; /* how far the node's clock is ahead, minus the transit time */
};
/* Median of the slopes between all pairs (Theil and Sen), in ppm, and in ret_spread their median absolute deviation.
   NAN for n < 3. */
double bench_drift(struct arena *arena, const struct bench_tick *ticks, size_t n,
                   double *ret_spread);

/* ---- limits ---- */

struct bench_limit {
    double
        share; /* of the group's median: at least this much worse; NAN: not compared, origin says why */
    double amount; /* and at least this much, in the measure's unit */
    double bound;  /* fixed bound, without a group; NAN: none */
    struct str origin;
};

struct bench_limits {
    double deviations;
    struct str deviations_origin;
    int64_t nodes_min; /* the smallest group in which an outlier can be told */
    struct str nodes_min_origin;
    struct bench_limit of[BENCH_MEASURES];
};
/* manifests/node-bench.json: all measures, each once. */
MUST_CHECK int bench_limits_decode(struct arena *arena, struct str text, const char *name,
                                   struct bench_limits *ret_limits, struct err *err);

/* ---- judging ---- */

enum bench_verdict { BENCH_WITHIN, BENCH_OUTLIER, BENCH_NOT_COMPARED, BENCH_NOT_MEASURED };
const char *bench_verdict_name(enum bench_verdict verdict);

struct bench_figure { /* of one measure: of a node, or of a link between two nodes */
    const struct bench_measure *measure;
    double *values; /* in order of time; for a node's network, one per peer; n 0: not measured */
    size_t n;
    double
        spread_given; /* of the median itself, where values do not show it: drift, network; else NAN */
    struct str why;  /* not measured, or not compared */
    bool is_excused; /* not measured, for an acceptable reason */
    /* what follows */
    double median, mad, q1, q3, best;
    double group_median, group_spread; /* NAN: not compared */
    enum bench_verdict verdict;
};
/* Computes median to best from values. */
void bench_figure_sum(struct arena *arena, struct bench_figure *figure);
/* Compares all figures of one measure and one group; those without values stay not measured. */
void bench_compare(struct arena *arena, const struct bench_limits *limits,
                   struct bench_figure *const *figures, size_t n);
/* The better of the middle two, else the median: one sick peer of two does not make a sick node. */
double bench_peers_median(struct arena *arena, const struct bench_measure *measure,
                          const double *values, size_t n);
/* "memory 61 % of its group's median (5.1 of 8.4 GB/s)"; "" for a figure that is not an outlier. */
struct str bench_says(struct arena *arena, const struct bench_figure *figure);

#endif
