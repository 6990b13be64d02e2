/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a graph's calls move between memory and processor: the basis of a roofline's floor. Pure. */
#pragma once

#include "graph/memplan.h"

struct traffic {
    int64_t
        floor_bytes; /* each input read once, each output written once; outputs that are added to are read as well */
    int64_t
        reread_bytes; /* in addition: what a batch norm reads a second time if its tensor fits no cache */
};

/* One call. bytes_of gives a value's bytes on the device, as for memplan_make. */
struct traffic traffic_of_call(const struct graph *graph, const struct call *call,
                               memplan_bytes_fn bytes_of, void *self);
