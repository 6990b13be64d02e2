/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of one kind, compared with each other by what a run with --each-node measured on them. A node is an outlier where its
   rate is below the median of its kind by more than a share, and by more than a number of robust standard deviations of the
   others. What was measured between two nodes counts for a node by the better of its neighbours, so that one sick node does not
   make three; then each pair of sound nodes is judged for itself. The limits are data (manifests/node-health.json), and never
   part of what is judged. Pure. */
#pragma once

#include "codec/json_table.h"

#define HEALTH_LIMITS_MAX 256

struct health_limit {
    struct str cases; /* a GLOB of case ids without their nodes; the first that matches counts */
    double share;     /* of the median: at least this much worse */
    struct str origin;
};

struct health_limits {
    double deviations;
    struct str deviations_origin;
    int64_t nodes_min; /* the fewest of one kind among which an outlier can be told */
    struct str nodes_min_origin;
    struct health_limit *items;
    size_t n;
};
extern const struct json_document HEALTH_LIMITS_DOCUMENT;
MUST_CHECK int health_limits_decode(struct arena *arena, struct str text, const char *name,
                                    struct health_limits *ret_limits, struct err *err);

enum health_verdict { HEALTH_WITHIN, HEALTH_OUTLIER, HEALTH_NOT_COMPARED, HEALTH_NOT_MEASURED };
extern const char *const HEALTH_VERDICT_NAMES[4];

struct health_figure {    /* one rate, of one node or of a pair */
    struct str measure;   /* the case's id without the nodes */
    const struct str *on; /* one or two names */
    size_t n_on;
    const struct str *kinds; /* one a name: only nodes of one kind are compared */
    struct str unit;
    const double *values; /* one a repeat, over 0; n 0: not measured, and why */
    size_t n;
    struct str why;
    /* What follows: */
    enum health_verdict verdict;
    double median, kind_median; /* NAN: there is none */
};

struct health_finding {
    const struct health_figure *figure; /* an outlier, or not measured */
    struct str who;                     /* "node2", "node1+node2" */
    struct str says; /* "node2: disk-write/... 31 % of the median of its kind (155 of 498 MB/s)" */
};

struct health {
    /* Those of nodes, one a node also of what pairs measured; then the pairs'. */
    const struct health_figure *figures;
    size_t n_figures;
    struct health_finding *findings;
    size_t n_findings;
    size_t n_alone; /* figures that could not be compared */
};

/* Judges figures in the order in which they were planned. */
void health_judge(struct arena *arena, const struct health_limits *limits,
                  const struct health_figure *measured, size_t n, struct health *ret_health);
