/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's pre-training network in any size: models/bert.c has those that reperf-train knows. */
#pragma once

#include "models/model.h"

struct bert_size {
    int64_t layers, width, heads, inner, vocabulary, positions;
};

/* Inputs as in models/tokens.h, and "step" with dropout; output "loss"; with opts->has_logits also "logits" (N * P, vocabulary) and
   "next_sentence_logits" (N, 2). */
void bert_build(struct graph *graph, const struct bert_size *size, const struct model_opts *opts);
