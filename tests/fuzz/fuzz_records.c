/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the other inputs of packing, by the first byte: a tf.Example or a TFRecord frame.
   Refused with a message, or numbers of the announced form, which written and read again are the same. */
#include "base/base.h"

#include "prep/tfrecord.h"

#define SEQUENCE    4
#define PREDICTIONS 2
#define ROW_LEN     (3 * SEQUENCE + 2 * PREDICTIONS + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void example(struct str data)
{
    const struct tokens_shape shape = {SEQUENCE, PREDICTIONS};
    CLEANUP(strbuf) struct strbuf text = {0};
    int32_t row[ROW_LEN] = {0}, again[ROW_LEN] = {0};
    struct err err = {0};
    uint64_t len = 0;
    if (tfrecord_example(data, &shape, row, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
        return;
    }
    strbuf_init(&text, TFRECORD_BYTES_MAX);
    tfrecord_append(&text, &shape, row);
    const uint8_t *bytes = (const uint8_t *)text.ptr;
    ASSERT(tfrecord_header(bytes, &len, &err) == 0 && len + TFRECORD_FRAME_BYTES == text.len);
    bytes += RECORD_HEAD_BYTES;
    ASSERT(tfrecord_check(bytes, (size_t)len, &err) == 0);
    ASSERT(tfrecord_example((struct str){(const char *)bytes, (size_t)len}, &shape, again, &err) ==
           0);
    ASSERT(memcmp(row, again, sizeof(row)) == 0);
}

static void frame(const uint8_t *data, size_t size)
{
    struct err err = {0};
    uint64_t len = 0;
    if (size < RECORD_HEAD_BYTES) {
        return;
    }
    if (tfrecord_header(data, &len, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY);
        return;
    }
    ASSERT(len <= TFRECORD_BYTES_MAX);
    if (len + TFRECORD_FRAME_BYTES <= size &&
        tfrecord_check(data + RECORD_HEAD_BYTES, (size_t)len, &err) == 0) {
        example((struct str){(const char *)data + RECORD_HEAD_BYTES, (size_t)len});
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct str rest = {(const char *)data + 1, size - 1};
    if (data[0] % 2) {
        frame(data + 1, size - 1);
    } else {
        example(rest);
    }
    return 0;
}
