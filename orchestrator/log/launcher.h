/* SPDX-License-Identifier: Apache-2.0 */
/* What launchers and NCCL say in a log of the whole job, whatever program's it is: how many processes were started, and over
   which network they spoke. Pure. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

#define LAUNCH_HOST_BYTES 64

struct launcher_seen {
    int64_t n_processes; /* "mpirun -np 192": the most; 0: not said */
    /* Lines from 1; 0: none. */
    int64_t socket_line; /* NCCL spoke over sockets between two processes, */
    int64_t using_line;  /* was to do so between hosts, */
    int64_t absent_line; /* found no InfiniBand device, */
    int64_t named_line;  /* and InfiniBand is named */
    bool has_hosts;      /* lines of several hosts */
    char host[LAUNCH_HOST_BYTES];
};

/* Lines with one of these are to be looked at; NULL after the last. */
extern const char *const LAUNCHER_LITERALS[];
void launcher_look(struct launcher_seen *seen, struct str text, int64_t line);
/* Why the job's network was not the one that it was to run over; empty if nothing says so. In the arena. */
struct str launcher_doubt(struct arena *arena, const struct launcher_seen *seen);
