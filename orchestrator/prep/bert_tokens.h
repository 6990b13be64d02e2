/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's inputs: one sample as it lies in a shard (data/shard.h), int32 throughout: input_ids (S), segment_ids (S),
   input_mask (S), masked_lm_positions (P), masked_lm_ids (P), next_sentence_label (1). */
#pragma once

#include "base/err.h"

#define TOKENS_SEQUENCE_MAX    4096
#define TOKENS_PREDICTIONS_MAX 1024
#define TOKENS_VOCABULARY_MAX  (1 << 20)

struct tokens_shape {
    uint32_t sequence, predictions;
};

/* The parts of a sample, as the files name them. */
enum tokens_part {
    TOKENS_INPUT,
    TOKENS_SEGMENT,
    TOKENS_MASK,
    TOKENS_POSITIONS,
    TOKENS_IDS,
    TOKENS_NEXT,
    TOKENS_PARTS
};
const char *tokens_part_name(enum tokens_part part);
size_t tokens_part_len(const struct tokens_shape *shape, enum tokens_part part);
size_t tokens_part_at(const struct tokens_shape *shape, enum tokens_part part);
/* Numbers in one sample. */
size_t tokens_len(const struct tokens_shape *shape);

/* ERR_INTEGRITY for a number that cannot be: naming the part, its place and the number. */
MUST_CHECK int tokens_check(const struct tokens_shape *shape, const int32_t *row, struct err *err);

/* A synthetic sample: in most places a token follows from the previous one, so that there is something to learn. */
void tokens_draw(uint64_t seed, const struct tokens_shape *shape, int32_t *row);
