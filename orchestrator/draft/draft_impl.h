/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of draft.c (tables) and draft_words.c (what a text says). */
#ifndef DRAFT_DRAFT_IMPL_H
#define DRAFT_DRAFT_IMPL_H

#include "draft/draft.h"

#include "base/map.h"
#include "codec/pattern.h"

/* Patterns of both. */
extern const char SHAPE_ACCURACY[], SHAPE_ANY_PER_SECOND[], SHAPE_FRAMEWORK[], SHAPE_GENERAL[],
    SHAPE_HARDWARE[], SHAPE_LATENCY[], SHAPE_PER_GPU[], SHAPE_RATE[], SHAPE_RATIO[],
    SHAPE_SETTING[], SHAPE_SIZED[], SHAPE_STATISTIC[], SHAPE_TIME[], SHAPE_WHOLE_TIME[];

enum draft_column {
    COLUMN_VALUE,
    COLUMN_GPUS,
    COLUMN_PER_NODE,
    COLUMN_NODES,
    COLUMN_BATCH,
    COLUMN_PRECISION,
    COLUMN_MODEL,
    COLUMN_FRAMEWORK,
    COLUMN_LABEL
};

struct draft_reader {
    struct arena *arena; /* borrowed */
    const struct vocabulary *vocabulary;
    struct str unit;   /* for speeds that name none; or empty */
    struct map tables; /* those that were read, by their text */
    struct patterns patterns;
};

bool draft_finds(struct draft_reader *r, const char *shape, struct str text);
struct str draft_lower(struct arena *arena, struct str text);
/* The first unit of a rate of items in a text; empty if there is none. */
struct str draft_unit(struct draft_reader *r, struct str text);
/* The unit of time in a text, as in the vocabulary; empty if there is none. */
struct str draft_time_unit(struct draft_reader *r, struct str text);
/* "1,234.5 img/s", "**117.2**": only the digits. What follows may be a unit, a bracket or a part of the row ("bs=96"), nothing else. */
bool draft_printed(struct draft_reader *r, struct str text, struct str *ret);
/* The same for "31.3 ms" and "76.1 %", whose unit must follow and is returned. */
bool draft_printed_with(struct draft_reader *r, struct str text, struct str *ret,
                        struct str *ret_rest);
/* Whether a text begins with a number, "nan", "-12.5 img/s", "0", that nothing printed here can be; *ret_as_if: the text with a number
   that can be in its place. */
bool draft_is_unusable(struct draft_reader *r, struct str text, struct str *ret_as_if);
/* "25.4k tokens/s", or "25.4" below "K tokens/s". */
bool draft_is_scaled(struct draft_reader *r, struct str head, struct str text);
/* A count, also in the form that CSV writers use: "8.0". */
bool draft_count(struct str text, int64_t *ret);
enum draft_column draft_column_of(struct draft_reader *r, struct str head);
bool draft_says_row(const struct draft_attrs *attrs);

#endif
