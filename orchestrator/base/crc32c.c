/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/crc32c.h"

#define POLYNOMIAL_REFLECTED 0x82F63B78u

static uint32_t table_row(uint32_t byte)
{
    for (int bit = 0; bit < 8; bit++) {
        byte = (byte >> 1) ^ ((byte & 1) ? POLYNOMIAL_REFLECTED : 0);
    }
    return byte;
}

uint32_t crc32c_table(uint32_t crc, const void *ptr, size_t len)
{
    const uint8_t *bytes = ptr;
    crc = ~crc;
    for (size_t idx = 0; idx < len; idx++) {
        crc = (crc >> 8) ^ table_row((crc ^ bytes[idx]) & 0xFF);
    }
    return ~crc;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t with_instruction(uint32_t crc, const void *ptr,
                                                                   size_t len)
{
    const uint8_t *bytes = ptr;
    uint64_t state = (uint32_t)~crc;
    for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        state = __builtin_ia32_crc32di(state, word);
    }
    for (; len > 0; len--, bytes++) {
        state = __builtin_ia32_crc32qi((uint32_t)state, *bytes);
    }
    return ~(uint32_t)state;
}

uint32_t crc32c(uint32_t crc, const void *ptr, size_t len)
{
    return __builtin_cpu_supports("sse4.2") ? with_instruction(crc, ptr, len)
                                            : crc32c_table(crc, ptr, len);
}

#else

uint32_t crc32c(uint32_t crc, const void *ptr, size_t len)
{
    return crc32c_table(crc, ptr, len);
}

#endif
