/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/crc32c.h"
#include "base/rng.h"

/* Source: RFC 3720, appendix B.4. */
TEST(test_published_vectors)
{
    uint8_t bytes[32] = {0};
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x8A9136AA);
    memset(bytes, 0xFF, sizeof(bytes));
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x62A8AB43);
    for (size_t idx = 0; idx < sizeof(bytes); idx++) {
        bytes[idx] = (uint8_t)idx;
    }
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x46DD794E);
}

TEST(test_both_ways_agree)
{
    static uint8_t bytes[15000]; /* over two rounds of the longest lanes */
    struct rng rng;
    rng_init(&rng, 7);
    for (size_t idx = 0; idx < sizeof(bytes); idx++) {
        bytes[idx] = (uint8_t)rng_u64(&rng);
    }
    for (size_t len = 0; len <= sizeof(bytes); len += len < 1600 ? 1 : 97) {
        size_t cut = len / 3;
        uint32_t whole = crc32c(0, bytes, len);
        assert_int_equal(whole, crc32c_table(0, bytes, len));
        assert_int_equal(whole, crc32c(crc32c(0, bytes, cut), bytes + cut, len - cut));
    }
}
