/* SPDX-License-Identifier: Apache-2.0 */
/* TFRecord files with tf.Example messages of BERT's inputs, or of images. Of protocol buffers only what an Example needs, read strictly:
   a field that does not belong there, a length past the end or a feature of another kind is ERR_INTEGRITY.
   Source: tensorflow/core/example/{example,feature}.proto. */
#ifndef PREP_TFRECORD_H
#define PREP_TFRECORD_H

#include "codec/proto.h"
#include "prep/bert_tokens.h"

#define TFRECORD_BYTES_MAX   (1u << 20) /* of one record */
#define TFRECORD_FRAME_BYTES (RECORD_HEAD_BYTES + RECORD_CRC_BYTES)

/* The length out of a header of RECORD_HEAD_BYTES. */
MUST_CHECK int tfrecord_header(const uint8_t *header, uint64_t *ret_len, struct err *err);
/* data: len bytes, then the four of its CRC. */
MUST_CHECK int tfrecord_check(const uint8_t *data, size_t len, struct err *err);
/* One tf.Example into a sample's numbers. Values beyond int32, a part that is missing, twice there or of another length: an error. Of
   features besides these only masked_lm_weights is known, and not kept: it is 1 where a prediction is used. */
MUST_CHECK int tfrecord_example(struct str data, const struct tokens_shape *shape, int32_t *row,
                                struct err *err);

/* One framed record with the sample, or with an image's file as it is and its class. */
void tfrecord_append(struct strbuf *out, const struct tokens_shape *shape, const int32_t *row);
void tfrecord_append_image(struct strbuf *out, struct str file, uint64_t label);

#endif
