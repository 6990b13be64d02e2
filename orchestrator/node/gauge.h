/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf-node bench LIMIT_S WHAT ARG...`: measures this node by this process and the workers that it forks, and prints one line of JSON
   (manifests/schema/node-bench-answer.json; read by judge/node_bench.h). It states work and nanoseconds of each repeat; the reader computes
   the figures. After LIMIT_S the kernel ends it and its workers. */
#ifndef NODE_GAUGE_H
#define NODE_GAUGE_H

#include "base/clock.h"
#include "base/strbuf.h"

#define GAUGE_REPEATS_MAX 200
#define GAUGE_CPUS_MAX    8192
#define GAUGE_TEXT_MAX    (256u << 10)

struct gauge { /* what will be printed */
    const char *what;
    struct strbuf series, notes, lacks;
};

/* `work` is what one repeat did: bytes, operations, round trips; ns are GAUGE_REPEATS_MAX at most. size: of a message; 0: none. */
struct gauge_series {
    const char *measure;
    int64_t size_bytes, work;
    const int64_t *ns;
    size_t n;
};
void gauge_add(struct gauge *gauge, const struct gauge_series *series);
void gauge_note(struct gauge *gauge, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Notes what was asked for but could not be measured. */
void gauge_lacks(struct gauge *gauge, const char *measure, const char *why);

/* Returns 0, or the exit status of wrong usage. */
int gauge_main(int argc, char **argv);

/* ---- gauge_team.c: the same on several processors at once, a process on each ---- */

struct team {
    const int *cpus; /* a worker is bound to each */
    size_t n;
    size_t n_repeats;
    void *(*prepare)(void *ctx, size_t worker); /* called in the worker; NULL: it failed */
    void (*work)(void *own);                    /* one repeat, with the result of prepare */
    void *ctx;
};
/* ret_ns: of each repeat, from the first worker's start to the last one's end. */
MUST_CHECK int team_run(const struct team *team, int64_t *ret_ns, struct err *err);
/* The processors that this process may use; 0: not known. */
size_t team_cpus(int *ret_cpus, size_t max);

/* ---- the measurements: arguments as given by the orchestrator ---- */

void gauge_memory(struct gauge *gauge, int64_t bytes_max, size_t n_repeats);
void gauge_flops(struct gauge *gauge, int64_t sample_ns, size_t n_repeats);
void gauge_disk(struct gauge *gauge, const char *folder, int64_t bytes, size_t n_repeats);
void gauge_loop(struct gauge *gauge, size_t n_repeats);

struct gauge_peer {
    const char *address; /* numeric */
    uint16_t port;
    const char *token; /* GAUGE_TOKEN_BYTES: ours, then the other end's */
};
#define GAUGE_HALF_BYTES  32
#define GAUGE_TOKEN_BYTES (2 * (size_t)GAUGE_HALF_BYTES)
#define GAUGE_TOKEN_ENV   "REPERF_BENCH_TOKEN"
/* Serves only the peer that knows the token. */
MUST_CHECK int gauge_listen(const struct gauge_peer *self, struct err *err);
/* Round trips, and messages both ways; is_ring: only messages to the peer. */
MUST_CHECK int gauge_link(struct gauge *gauge, const struct gauge_peer *peer, int64_t sample_ns,
                          size_t n_repeats, bool is_ring, struct err *err);

#endif
