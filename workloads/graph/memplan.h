/* SPDX-License-Identifier: Apache-2.0 */
/* The place of every value of a finished graph. Parameters, gradients and velocities share one order (that in which backward
   completes the gradients) and one set of offsets, so that an optimiser or an all-reduce walks flat memory. Activations and their
   gradients share one arena by liveness: two may use the same memory if the last use of one is done before the first use of the
   other, which with several streams their events must guarantee. Pure: sizes in, offsets out. */
#pragma once

#include "graph/graph.h"

#define MEMPLAN_ALIGN_BYTES 64 /* a cache line, and the widest vector */

enum memplan_arena { MEMPLAN_PARAM, MEMPLAN_GRAD, MEMPLAN_STATE, MEMPLAN_ACT, MEMPLAN_ARENA_COUNT };

struct place {
    enum memplan_arena arena;
    int64_t offset_bytes;
    int64_t size_bytes; /* rounded up to MEMPLAN_ALIGN_BYTES */
    int first_call;     /* first call that touches it */
    int last_call;      /* last call that does; n_calls if it is read after the step */
    int root;           /* the value whose memory this one took over, or itself */
};

struct memplan {
    struct place *places; /* one a value */
    int n_places;
    int64_t arena_bytes[MEMPLAN_ARENA_COUNT];
    int64_t
        live_bytes_max; /* the largest sum of live activations at any call: no plan can need less */
};

/* Bytes of a value on the device. */
typedef int64_t (*memplan_bytes_fn)(void *self, const struct tensor_desc *desc);

/* The plan's memory comes from the arena. Sizes that overflow are an error. */
MUST_CHECK int memplan_make(struct arena *arena, const struct graph *graph,
                            memplan_bytes_fn bytes_of, void *self, struct memplan *ret_plan,
                            struct err *err);
