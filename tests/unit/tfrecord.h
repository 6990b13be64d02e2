/* SPDX-License-Identifier: Apache-2.0 */
/* Records as TensorFlow writes them. Source: tensorflow/core/lib/io/record_writer.h. */
#pragma once

#include "base/base.h"

#include "base/crc32c.h"

static inline uint32_t masked_crc(const void *ptr, size_t len)
{
    uint32_t crc = crc32c(0, ptr, len);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* Returns its length. */
static inline size_t add_record(uint8_t *to, const char *text)
{
    uint64_t len = strlen(text);
    memcpy(to, &len, 8);
    uint32_t crc = masked_crc(to, 8);
    memcpy(to + 8, &crc, 4);
    memcpy(to + 12, text, len);
    crc = masked_crc(text, len);
    memcpy(to + 12 + len, &crc, 4);
    return 16 + len;
}
