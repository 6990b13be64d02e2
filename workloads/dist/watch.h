/* SPDX-License-Identifier: Apache-2.0 */
/* Watches which ranks are alive: a thread next to the computing one owns the connections between rank 0 and every other rank.
   Each end sends a beat about every quarter of the time-out. Rank 0 is the judge: it sees a connection that closes, a rank that
   is silent for longer than the time-out, or one that is alive but far behind, hears what others report, and tells all one
   verdict; where rank 0 itself is gone, each rank knows by its own connection. The first verdict stays. */
#pragma once

#include "dist/sock.h"
#include "dist/wire.h"

struct watch;

struct watch_opts {
    int rank, n_ranks;
    int64_t timeout_ns; /* of silence */
    int64_t stall_ns;   /* of beats without a new operation, while others wait in one */
};

/* Takes over the descriptors: for rank 0 fds has n_ranks (its own is -1), for others the one to rank 0. */
MUST_CHECK int watch_start(struct watch **ret_watch, const struct watch_opts *opts, int *fds,
                           struct err *err);

/* Readable once there is a verdict. Borrowed. */
int watch_fd(const struct watch *watch);

/* -1 with the verdict, if there is one. */
MUST_CHECK int watch_check(struct watch *watch, struct err *err);

/* The computing thread has begun one more operation. */
void watch_count(struct watch *watch);

/* Something is wrong with `rank` (or with oneself): tells rank 0 and waits, for seconds at most, for the verdict, which may
   name another rank: a broken connection may belong to the second rank to fail. */
void watch_tell(struct watch *watch, int rank, const char *text);

/* The same, and -1 with the verdict or, if none came, with the suspicion itself. */
MUST_CHECK int watch_report(struct watch *watch, int rank, const char *text, struct err *err);

/* Without a verdict: announces the end to all and waits, for seconds at most, until they have done so, too. After a verdict:
   makes sure that it is delivered. Ends the thread and closes the connections. NULL does nothing. */
void watch_close(struct watch *watch);
