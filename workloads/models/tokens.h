/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of networks for token sequences: six int64 inputs, in the order in which a packed sample has them (data/shard.h). N
   sequences of S tokens, P of them to be predicted; an unused prediction is position 0, id 0. */
#pragma once

#include "base/err.h"

enum token_part {
    TOKENS_IDS,       /* (N, S) */
    TOKENS_SEGMENTS,  /* (N, S) */
    TOKENS_MASK,      /* (N, S): 0 where there is no token */
    TOKENS_POSITIONS, /* (N, P) */
    TOKENS_MASKED,    /* (N, P): the original ids */
    TOKENS_NEXT,      /* (N) */
    TOKEN_PARTS
};

#define TOKEN_UNUSED 0 /* the id of an unused prediction */

struct token_form {
    int64_t sequence, predictions, vocabulary;
};

const char *token_part_name(enum token_part part); /* of the input: "input_ids" */

/* Elements that one sample has of a part. */
int64_t token_part_count(const struct token_form *form, enum token_part part);

/* All of 0 to below what the form allows; else ERR_INTEGRITY, which names the part and the element. */
MUST_CHECK int tokens_within(const struct token_form *form, enum token_part part,
                             const int64_t *values, int64_t count, struct err *err);
