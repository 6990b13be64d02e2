/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/bert_tokens.h"

#include "base/rng.h"

/* Source: vocabulary of bert-base-uncased: [CLS], [SEP], [MASK], and where whole words begin. */
#define TOKEN_CLS  101
#define TOKEN_SEP  102
#define TOKEN_MASK 103
#define WORD_FIRST 1996
#define WORDS      997

static const struct part {
    const char *name;
    bool is_sequence, is_prediction;
    int32_t max;
} PARTS[TOKENS_PARTS] = {
    [TOKENS_INPUT] = {"input_ids", true, false, TOKENS_VOCABULARY_MAX - 1},
    [TOKENS_SEGMENT] = {"segment_ids", true, false, 1},
    [TOKENS_MASK] = {"input_mask", true, false, 1},
    [TOKENS_POSITIONS] = {"masked_lm_positions", false, true, 0 /* below the sequence */},
    [TOKENS_IDS] = {"masked_lm_ids", false, true, TOKENS_VOCABULARY_MAX - 1},
    [TOKENS_NEXT] = {"next_sentence_labels", false, false, 1},
};

const char *tokens_part_name(enum tokens_part part)
{
    return PARTS[part].name;
}

size_t tokens_part_len(const struct tokens_shape *shape, enum tokens_part part)
{
    return PARTS[part].is_sequence     ? shape->sequence
           : PARTS[part].is_prediction ? shape->predictions
                                       : 1;
}

size_t tokens_part_at(const struct tokens_shape *shape, enum tokens_part part)
{
    size_t at = 0;
    for (enum tokens_part idx = TOKENS_INPUT; idx < part; idx++) {
        at += tokens_part_len(shape, idx);
    }
    return at;
}

size_t tokens_len(const struct tokens_shape *shape)
{
    return tokens_part_at(shape, TOKENS_PARTS);
}

int tokens_check(const struct tokens_shape *shape, const int32_t *row, struct err *err)
{
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        int32_t max = part == TOKENS_POSITIONS ? (int32_t)shape->sequence - 1 : PARTS[part].max;
        for (size_t idx = 0; idx < tokens_part_len(shape, part); idx++, row++) {
            if (*row < 0 || *row > max) {
                return err_set(err, ERR_INTEGRITY, "%s[%zu] is %d, expected 0 to %d",
                               PARTS[part].name, idx, *row, max);
            }
        }
    }
    return 0;
}

void tokens_draw(uint64_t seed, const struct tokens_shape *shape, int32_t *row)
{
    int32_t *input = row + tokens_part_at(shape, TOKENS_INPUT);
    int32_t *positions = row + tokens_part_at(shape, TOKENS_POSITIONS);
    int32_t *ids = row + tokens_part_at(shape, TOKENS_IDS);
    uint32_t n_masked = 0;
    struct rng rng;
    rng_init(&rng, seed);
    uint32_t used = shape->sequence / 2 + (uint32_t)rng_below(&rng, shape->sequence / 2 + 1);
    uint32_t middle = used / 3 + (uint32_t)rng_below(&rng, used / 3 + 1);
    uint64_t word = rng_below(&rng, WORDS);
    memset(row, 0, tokens_len(shape) * sizeof(*row));
    for (uint32_t idx = 0; idx < used; idx++) {
        bool is_word = idx != 0 && idx != middle && idx + 1 != used;
        word = rng_below(&rng, 10) ? (word * 31 + 7) % WORDS : rng_below(&rng, WORDS);
        input[idx] = idx == 0 ? TOKEN_CLS : is_word ? WORD_FIRST + (int32_t)word : TOKEN_SEP;
        row[tokens_part_at(shape, TOKENS_SEGMENT) + idx] = idx > middle;
        row[tokens_part_at(shape, TOKENS_MASK) + idx] = 1;
        if (is_word && n_masked < shape->predictions && rng_below(&rng, 100) < 15) {
            positions[n_masked] = (int32_t)idx;
            ids[n_masked++] = input[idx];
            input[idx] = rng_below(&rng, 10) < 8 ? TOKEN_MASK : input[idx];
        }
    }
    row[tokens_part_at(shape, TOKENS_NEXT)] = (int32_t)rng_below(&rng, 2);
}
