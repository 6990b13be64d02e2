/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord files with tf.Example messages of BERT's inputs, or of images, as they are written.
   Source: tensorflow/core/example/{example,feature}.proto. */
#pragma once

#include "base/strbuf.h"
#include "prep/bert_tokens.h"

/* One framed record with the sample, or with an image's file as it is and its class. */
void tfrecord_append(struct strbuf *out, const struct tokens_shape *shape, const int32_t *row);
void tfrecord_append_image(struct strbuf *out, struct str file, uint64_t label);
