/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations over a ring of TCP connections: each rank sends to the next and receives from the one before it. A sum
   goes round in n_ranks chunks, n_ranks - 1 steps to add and as many to pass on, so that a rank sends 2 (n - 1) / n of the data;
   chunk c is always added up in the order of ranks c, c + 1, ..., so the result is the same bits everywhere and every time. Each
   operation begins with a header, and ranks that are not at the same one end the job instead of adding up what does not belong
   together. For tests and machines without a GPU: the data lies in host memory. */
#pragma once

#include "core/comm.h"
#include "dist/watch.h"

struct ring {
    int rank, n_ranks;
    int next, prev;                    /* owned descriptors */
    struct watch *watch;               /* borrowed; NULL: only the connections tell of a death */
    const volatile sig_atomic_t *stop; /* borrowed; may be NULL */
    int64_t timeout_ns;                /* without a watch: of silence */
    uint64_t number;                   /* operations begun */
    uint8_t *block;                    /* owned; what arrives before it is added */
};

/* Takes over the descriptors. */
void ring_init(struct ring *ring, int rank, int n_ranks, int next, int prev);
void ring_release(struct ring *ring);

/* The comm that works on it; borrows the ring. */
struct comm ring_comm(struct ring *ring);
