/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0's side of the rendezvous: takes connections until every other rank has said its hello. */
#pragma once

#include "dist/sock.h"
#include "dist/wire.h"

struct guest {
    int fd; /* -1: not there */
    char from[SOCK_NAME_MAX];
    uint8_t bytes[WIRE_HELLO_BYTES];
    size_t len;
    int64_t came_ns;
    struct hello hello;
};

struct gathered {
    struct guest *guests; /* owned; by rank, its own unused */
    int n_ranks;
};
void gathered_release(struct gathered *all);
static inline void gathered_cleanup(struct gathered *all)
{
    gathered_release(all);
}

/* All ranks present and in agreement, or an error that all of them have been told. */
MUST_CHECK int gather(struct gathered *ret_all, int listener, const struct hello *own,
                      const struct wait *wait, struct err *err);

/* Tells every present rank the end and its reason. */
void gathered_tell(const struct gathered *all, const char *text);
