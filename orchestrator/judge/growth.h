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

/* Formats that were read when the program was built, and whose patterns, tried with the library that it was built with, are not steep:
   keys of their files, ascending. Made by orchestrator/growth_main.c of the shipped ones; empty in what is linked without it. */
#define GROWTH_KEY_BYTES 16
struct growth_tried {
    const char *library;
    const uint8_t *keys; /* n of GROWTH_KEY_BYTES each */
    size_t n;
};
extern const struct growth_tried GROWTH_TRIED;
/* id: the file's name without ".json"; text: its bytes. */
void growth_key(struct str id, struct str text, uint8_t *ret_key);
/* Whether the file, byte for byte, is one of them. */
bool growth_was_tried(const struct growth_tried *tried, struct str id, struct str text);

#endif
