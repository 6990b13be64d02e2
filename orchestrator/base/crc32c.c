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

#include <immintrin.h>

/* The instruction has a latency of three cycles and a throughput of one: three independent lanes, combined at the
   end. */
#define LANE_LONG  2048
#define LANE_SHORT 256

/* x^(8n - 33) modulo the polynomial, bits reversed, for n = two lanes and one: shifts a lane's value by the n bytes that follow
   it; 33 of the bits come from the product and from the instruction itself. */
struct crc_lane {
    size_t bytes;
    uint32_t by_two, by_one;
};
static const struct crc_lane LANES[] = {{LANE_LONG, 0x82f89c77u, 0xa51b6135u},
                                        {LANE_SHORT, 0xdd7e3b0cu, 0xb9e02b86u}};

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t times(uint64_t crc, uint32_t constant)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                           _mm_cvtsi32_si128((int)constant), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
with_instruction(uint32_t crc, const void *ptr, size_t len)
{
    const uint8_t *bytes = ptr;
    uint64_t state = (uint32_t)~crc;
    for (size_t idx = 0; idx < ARRAY_LEN(LANES); idx++) {
        const struct crc_lane lane = LANES[idx];
        for (; len >= 3 * lane.bytes; len -= 3 * lane.bytes, bytes += 3 * lane.bytes) {
            uint64_t second = 0, third = 0;
            for (size_t at = 0; at < lane.bytes; at += sizeof(uint64_t)) {
                state = _mm_crc32_u64(state, word_at(bytes + at));
                second = _mm_crc32_u64(second, word_at(bytes + lane.bytes + at));
                third = _mm_crc32_u64(third, word_at(bytes + 2 * lane.bytes + at));
            }
            state =
                third ^ _mm_crc32_u64(0, times(state, lane.by_two) ^ times(second, lane.by_one));
        }
    }
    for (; len >= sizeof(uint64_t); len -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
        state = _mm_crc32_u64(state, word_at(bytes));
    }
    for (; len > 0; len--, bytes++) {
        state = _mm_crc32_u8((uint32_t)state, *bytes);
    }
    return ~(uint32_t)state;
}

uint32_t crc32c(uint32_t crc, const void *ptr, size_t len)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")
               ? with_instruction(crc, ptr, len)
               : crc32c_table(crc, ptr, len);
}

#else

uint32_t crc32c(uint32_t crc, const void *ptr, size_t len)
{
    return crc32c_table(crc, ptr, len);
}

#endif
