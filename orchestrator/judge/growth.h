/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pattern's steps grow faster than the length of the line, found by trying it on lines that repeat its beginning. Pure. */
#ifndef JUDGE_GROWTH_H
#define JUDGE_GROWTH_H

#include "codec/pattern.h"

#define GROWTH_SHOWN_MAX 60

struct growth {
    uint64_t steps[3];                /* on lines of GROWTH_BYTES, twice and four times as many */
    char again[GROWTH_SHOWN_MAX + 1]; /* what such a line repeats */
};
#define GROWTH_BYTES 512

/* True if there is such a line. */
bool growth_is_steep(struct pattern *pattern, struct growth *ret_growth);

/* Patterns that were tried when the program was built, with the library that it was built with, and are not steep: the beginnings of
   their sources' SHA-256, ascending. Made by orchestrator/growth_main.c from the shipped formats; empty in what is linked without it. */
#define GROWTH_KEY_BYTES 16
struct growth_tried {
    const char *library;
    const uint8_t *keys; /* n of GROWTH_KEY_BYTES each */
    size_t n;
};
extern const struct growth_tried GROWTH_TRIED;
void growth_key(struct str source, uint8_t *ret_key);
/* Whether the pattern, byte for byte, is one of them. */
bool growth_was_tried(const struct growth_tried *tried, const struct pattern *pattern);

#endif
