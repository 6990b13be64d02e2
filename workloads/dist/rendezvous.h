/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a job find each other. Rank 0 listens; every other rank connects, tries again until the deadline, and says who
   it is, what it would train and where it listens for the rank before it. When all are there, and agree, each is told
   where its next one is. What ranks disagree about ends them all with the same message; what is no rank of this job
   (a scanner, a browser, a rank with another REPERF_JOB) is turned away and does no harm. */
#pragma once

#include "dist/ranks.h"
#include "dist/sock.h"
#include "dist/wire.h"

struct rendezvous_opts {
    const struct ranks *ranks; /* borrowed; n_ranks > 1 */
    const char *
        job; /* REPERF_JOB, or NULL. No secret: it tells jobs apart, it does not keep anybody out */
    const char *iface;   /* REPERF_DIST_IFACE, or NULL: the interface that leads to rank 0 */
    const char *facts;   /* below WIRE_FACTS_MAX bytes, printable */
    const char *network; /* SHA-256 in hex */
    int listener; /* of rank 0, which takes it: where it listens already, at its port; 0: none */
    struct wait wait;
};

/* All owned by the caller, on success only. */
struct meeting {
    int *control; /* rank 0: n_ranks descriptors, its own -1; else one, to rank 0 */
    int listener; /* where the rank before this one will come to */
    char next_host[WIRE_TEXT_MAX];
    int next_port;
    uint8_t key[WIRE_KEY_BYTES]; /* the same for all ranks of this meeting, and new each time */
};

void meeting_release(struct meeting *meeting, int n_control);

MUST_CHECK int rendezvous(const struct rendezvous_opts *opts, struct meeting *ret_meeting,
                          struct err *err);

/* Connects to the next rank and takes the connection of the one before. wait.cancel_fd ends it early: somebody else has failed. */
MUST_CHECK int rendezvous_ring(const struct rendezvous_opts *opts, const struct meeting *meeting,
                               int *ret_next, int *ret_prev, struct err *err);
