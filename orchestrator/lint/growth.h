/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pattern's steps grow faster than the length of the line, found by trying it on lines that repeat its beginning. Pure. */
#ifndef LINT_GROWTH_H
#define LINT_GROWTH_H

#include "codec/pattern.h"

#define GROWTH_SHOWN_MAX 60

struct growth {
    uint64_t steps[3];                /* on lines of GROWTH_BYTES, twice and four times as many */
    char again[GROWTH_SHOWN_MAX + 1]; /* what such a line repeats */
};
#define GROWTH_BYTES 512

/* True if there is such a line. */
bool growth_is_steep(struct pattern *pattern, struct growth *ret_growth);

#endif
