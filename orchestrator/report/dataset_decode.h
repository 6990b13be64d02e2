/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the decoder of datasets (dataset.c, dataset_groups.c). Nobody else includes this. */
#ifndef REPORT_DATASET_DECODE_H
#define REPORT_DATASET_DECODE_H

#include "report/dataset.h"

#define DATASET_BYTES_MAX (1LL << 53)
#define DATASET_SIDE_MAX  65536

/* The index of a word; key is for the message. -1 with *err filled. */
MUST_CHECK int dataset_decode_word(const struct json *at, const char *key, struct str word,
                                   const char *const *words, size_t n_words, struct err *err);
bool dataset_has_split(const struct dataset *dataset, struct str name);
/* The splits must be decoded already. */
MUST_CHECK int dataset_decode_groups(const struct json *at, struct arena *arena,
                                     struct dataset *ret, struct err *err);

#endif
