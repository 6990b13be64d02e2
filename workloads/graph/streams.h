/* SPDX-License-Identifier: Apache-2.0 */
/* Spreads the calls of a finished graph over several streams, so that independent calls run at the same time: the branches of HRNet,
   or a weight gradient and the data gradient. The calls are ordered by when they are expected to begin, each gets a stream, and where
   one needs the result of another stream, it waits for an event. A step begins on all streams after stream 0 and ends on stream 0
   after all of them (backend_async's fork and join). Pure and deterministic. */
#pragma once

#include "graph/memplan.h"

struct streams_opts {
    int n_streams; /* up to GRAPH_STREAMS_MAX; 1: nothing is changed */
    int n_events;  /* available events; running out of them is an error */
    /* A call begins after every call this many places before it, on whatever stream: the memory of that one is then free. 0: only
       the necessary distance, and memory is shared little. */
    int window;
    memplan_bytes_fn bytes_of; /* with self: for the expected duration of a call */
    void *self;
};

struct streams_report {
    int n_waits, n_events;
    double serial_ns, side_by_side_ns; /* expected for the step on one stream, and on all */
};

/* After graph_finish and graph_fuse, before memplan_make. ret_report may be NULL. */
MUST_CHECK int streams_assign(struct graph *graph, const struct streams_opts *opts,
                              struct streams_report *ret_report, struct err *err);

/* What the streams and events of the calls guarantee: call a is done before call b begins if a is on b's stream and comes before it,
   or if position[a] < before[b * n_streams + stream of a]. */
struct streams_clocks {
    int n_streams;
    int *position; /* of each call on its stream, from 0 */
    int *
        before; /* (n_calls, n_streams): how many calls of each stream are done before this one begins */
};

/* From the calls alone. An event that was never recorded is an error. */
MUST_CHECK int streams_clocks_make(struct arena *arena, const struct graph *graph,
                                   struct streams_clocks *ret_clocks, struct err *err);
