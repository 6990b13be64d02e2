/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may have meant: among the names offered one by one, the one at the smallest edit distance, if that is small
   enough. Only for messages. Borrows its names. */
#pragma once

#include "base/str.h"

#define NEAREST_NAME_MAX 96 /* longer ones are not compared */

/* Letters to insert, drop, replace or swap with their neighbour (optimal string alignment); NEAREST_NAME_MAX where one is
   longer than that. */
size_t edit_distance(struct str a, struct str b);

struct nearest {
    const char *wanted;
    const char *name; /* NULL: none is near */
    size_t distance;
};

static inline struct nearest nearest_to(const char *wanted)
{
    return (struct nearest){.wanted = wanted};
}
void nearest_offer(struct nearest *nearest, const char *name);

#define NEAREST_TEXT_MAX (NEAREST_NAME_MAX + 32)
/* " (did you mean NAME?)", or nothing. */
const char *nearest_text(const struct nearest *nearest, char buf[NEAREST_TEXT_MAX]);
