/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts about nodes, from what they report about themselves: what was expected, what was found, and whether that is
   enough. An unknown fact never passes. Pure; everything lives in the arena of struct checks. */
#pragma once

#include "report/inventory.h"
#include "report/node_facts.h"
#include "report/wants.h"

#define CHECKS_MAX (1u << 20)

enum check_verdict { CHECK_HOLDS, CHECK_FAILS, CHECK_UNKNOWN };
enum check_level {
    CHECK_REQUIRED, /* nothing may be started if it fails */
    CHECK_ADVISED   /* numbers may suffer; does not affect the exit status */
};

struct check {
    const char *id;  /* "gpu-model", of a closed list in the schema */
    struct str node; /* name; NULL: all nodes together */
    enum check_level level;
    enum check_verdict verdict;
    struct str expected;
    struct str found;
    struct str advice; /* what to do about it, or NULL */
    struct str of;     /* what asks for it: a case, or "the inventory" */
};

struct checks {
    struct arena *arena; /* borrowed */
    struct check *items;
    size_t n;
    size_t n_max;
};
void checks_add(struct checks *checks, struct check check);
enum check_verdict check_verdict_of(bool holds);
extern const char *const CHECK_VERDICT_NAMES[CHECK_UNKNOWN + 1];
extern const char *const CHECK_LEVEL_NAMES[CHECK_ADVISED + 1];

/* A node as the doctor found it. */
struct node_probe {
    const struct inventory_node *spec;
    bool is_reached;
    struct str error; /* if it was not reached: the error and its kind */
    enum err_code cause;
    int64_t connect_ns;    /* first answer, connection and login included */
    int64_t round_trip_ns; /* what a script that does nothing takes, once connected */
    bool has_clock;
    int64_t clock_low_ns, clock_high_ns; /* bounds of its clock minus ours */
    struct node_facts facts;             /* from the probe; empty if it failed */
    struct node_facts peers;             /* port.NAME of the other nodes */
    struct str listen_error;             /* why no port of it could be tried; NULL: one could */
};

struct node_probes {
    const struct inventory *inventory;
    struct node_probe *items; /* in the inventory's order */
    size_t n;
};

/* What every inventory requires: reachable, clock, shell, engine of its runtime, GPUs, work folder, health of GPUs. */
void checks_of_probe(struct checks *checks, const struct inventory *inventory,
                     const struct node_probe *probe);
/* What a report's cases ask of each node. */
void checks_of_wants(struct checks *checks, const struct inventory *inventory,
                     const struct node_probe *probe, const struct wants *wants);
/* Whether a port of `to` is tried from `from`: among few nodes each from each; among more each from the one before it, as in
   a ring of ranks, and the first one's, where ranks meet, from all. */
bool checks_tries_port(size_t n_nodes, size_t from, size_t to);
/* Ports between nodes. */
void checks_of_network(struct checks *checks, const struct node_probes *probes);

struct difference_value {
    struct str value; /* NULL: not known */
    size_t *nodes;    /* indices */
    struct str *names;
    size_t n_nodes;
};
struct difference {
    const char *what;
    struct difference_value *values; /* at least two */
    size_t n_values;
};
struct differences {
    struct difference *items;
    size_t n;
};
/* What ought to be equal on all nodes that were reached, but is not; each is a failed check, too. */
void checks_of_differences(struct checks *checks, const struct node_probes *probes,
                           struct differences *ret_differences);

/* "8 x Tesla V100-SXM2-16GB", or each by itself if they differ; NULL: not known. */
struct str gpus_in_words(struct arena *arena, const struct node_facts *facts, const char *field);
