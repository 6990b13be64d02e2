/* SPDX-License-Identifier: Apache-2.0 */
/* launch_make from the words of a command line: LAUNCHER NODES RANKS_PER_NODE X [NAME=VALUE...] -- ARGV... (X is the caller's).
   Nodes are called node1, node2, ...; LAUNCH_ADDRESSES: theirs, separated by commas. LAUNCH_JOB: the job's id; LAUNCH_LIMIT_S. */
#pragma once

#include "base/base.h"

#include "base/vec.h"
#include "run/launch.h"

#define NODES_MAX 64

static inline int64_t number(const char *text)
{
    int64_t value = 0;
    struct err err = {0};
    if (str_to_i64(str_of(text), 0, 100000000, &value, &err) < 0) {
        fprintf(stderr, "launch_argv: %s\n", err.msg);
        exit(2);
    }
    return value;
}

static inline void make_nodes(struct arena *arena, struct inventory_node *nodes, size_t n)
{
    const char *given = getenv("LAUNCH_ADDRESSES");
    struct str rest = str_of(given ? given : "");
    for (size_t idx = 0; idx < n; idx++) {
        nodes[idx].name = str_printf(arena, "node%zu", idx + 1);
        if (!given || !str_next(&rest, ',', &nodes[idx].address)) {
            nodes[idx].address = nodes[idx].name;
        }
        nodes[idx].fast_address = nodes[idx].address;
    }
}

struct made {
    struct launch_job *jobs;
    size_t n_jobs;
};

static inline struct made launch_fixture(struct arena *arena, int argc, char **argv)
{
    struct made made = {0};
    static struct inventory_node nodes[NODES_MAX];
    static size_t idxs[NODES_MAX];
    struct err err = {0};
    struct condition env[64];
    struct str words[256];
    struct plan_step step = {.case_id = STR_LIT("a/case"), .env = env, .argv = words};
    struct inventory inventory = {.id = STR_LIT("test"), .nodes = nodes};
    struct launch launch = {.arena = arena,
                            .step = &step,
                            .inventory = &inventory,
                            .nodes = idxs,
                            .run_id = "20261121T000000.000Z-00000001",
                            .job_id = getenv("LAUNCH_JOB"),
                            .program = "/opt/reperf/reperf-train",
                            .port = 29500};
    ASSERT(argc >= 6);
    if (!launch.job_id) {
        launch.job_id = "20261121T000000.000Z-00000001/a/case/repeat-1/attempt-1";
    }
    launch.limit_s = getenv("LAUNCH_LIMIT_S") ? number(getenv("LAUNCH_LIMIT_S")) : 0;
    inventory.launcher = (enum launcher_kind)number(argv[1]);
    launch.n_nodes = inventory.n_nodes = (size_t)number(argv[2]);
    launch.ranks_per_node = number(argv[3]);
    int arg = 5;
    for (; arg < argc && strcmp(argv[arg], "--") != 0; arg++) {
        struct str rest = str_of(argv[arg]);
        (void)str_next(&rest, '=', &env[step.n_env].name);
        env[step.n_env++].value = rest;
    }
    for (arg++; arg < argc; arg++) {
        words[step.n_argv++] = str_of(argv[arg]);
    }
    ASSERT(launch.n_nodes <= NODES_MAX);
    make_nodes(arena, nodes, launch.n_nodes);
    for (size_t idx = 0; idx < launch.n_nodes; idx++) {
        idxs[idx] = idx;
    }
    step.n_ranks = (int64_t)launch.n_nodes * launch.ranks_per_node;
    if (launch_make(&launch, &made.jobs, &made.n_jobs, &err) < 0) {
        fprintf(stderr, "launch_argv: %s\n", err.msg);
        exit(err_exit_status(err.code));
    }
    return made;
}
