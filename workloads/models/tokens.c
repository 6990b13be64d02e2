/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "models/tokens.h"

static const char *const NAMES[TOKEN_PARTS] = {
    [TOKENS_IDS] = "input_ids",        [TOKENS_SEGMENTS] = "segment_ids",
    [TOKENS_MASK] = "input_mask",      [TOKENS_POSITIONS] = "masked_lm_positions",
    [TOKENS_MASKED] = "masked_lm_ids", [TOKENS_NEXT] = "next_sentence_labels",
};

const char *token_part_name(enum token_part part)
{
    return NAMES[part];
}

int64_t token_part_count(const struct token_form *form, enum token_part part)
{
    switch (part) {
    case TOKENS_IDS:
    case TOKENS_SEGMENTS:
    case TOKENS_MASK:
        return form->sequence;
    case TOKENS_POSITIONS:
    case TOKENS_MASKED:
        return form->predictions;
    case TOKENS_NEXT:
    case TOKEN_PARTS:
        break;
    }
    return 1;
}

static int64_t limit(const struct token_form *form, enum token_part part)
{
    bool is_id = part == TOKENS_IDS || part == TOKENS_MASKED;
    return is_id ? form->vocabulary : part == TOKENS_POSITIONS ? form->sequence : 2;
}

int tokens_within(const struct token_form *form, enum token_part part, const int64_t *values,
                  int64_t count, struct err *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (values[i] < 0 || values[i] >= limit(form, part)) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: element %" PRId64 " is %" PRId64 ", expected 0 to %" PRId64,
                           NAMES[part], i, values[i], limit(form, part) - 1);
        }
    }
    return 0;
}
