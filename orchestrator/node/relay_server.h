/* SPDX-License-Identifier: Apache-2.0 */
/* The relay on a node (`reperf-node relay WORK [FEED_FD]`): reads on stdin what the node is to have, checks what exists, and receives
   the rest from a TCP stream, which it passes on to the next node as it arrives (codec/relay.h). A file grows in
   ROOT/.reperf-partial/HEX, is checked against its digest and only then gets its name; a partial file of a broken stream is
   continued. */
#ifndef NODE_RELAY_SERVER_H
#define NODE_RELAY_SERVER_H

#include "base/clock.h"
#include "base/err.h"

#define RELAY_IDLE_NS  (6LL * 3600 * NS_PER_S) /* without a stream: the orchestrator is gone */
#define RELAY_STALL_NS (20 * NS_PER_S)         /* without progress of the next node */
#define RELAY_BEAT_NS  (2 * NS_PER_S)          /* between two signs of life */

struct relay_opts {
    int in_fd, out_fd;
    int feed_fd;            /* a socket: a stream from it needs no proof; -1: none */
    const char *cache_path; /* of digests (sys/digest_cache.h) */
    struct clock_src clock;
};

/* 0 once everything is complete and correct. The reason for its end is sent on out_fd as well. */
MUST_CHECK int relay_serve(const struct relay_opts *opts, struct err *err);

int relay_main(const char *work_folder, int feed_fd); /* relay_child.c */

#endif
