/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams at once against OpenSSL: every length around the blocks, random lengths in random portions. */
#include "unit.h"

#include "base/rng.h"
#include "base/sha256_pair.h"
#include "codec/digest.h"

#define BYTES 300000

static uint8_t bytes[BYTES];

static void expect(struct sha256_lane *lane, size_t from, size_t len)
{
    uint8_t found[SHA256_BYTES], expected[SHA256_BYTES];
    sha256_lane_finish(lane, found);
    sha256_of((struct str){(const char *)bytes + from, len}, expected);
    assert_memory_equal(found, expected, SHA256_BYTES);
}

TEST(test_lengths)
{
    if (!sha256_pair_is_there()) {
        skip();
    }
    for (size_t one_len = 0; one_len < 200; one_len++) {
        for (size_t other_len = 0; other_len < 200; other_len += 7) {
            struct sha256_lane one, other;
            sha256_lane_start(&one);
            sha256_lane_start(&other);
            sha256_pair_add(&one, bytes, one_len, &other, bytes + 1000, other_len);
            expect(&one, 0, one_len);
            expect(&other, 1000, other_len);
        }
    }
}

TEST(test_portions)
{
    struct rng rng;
    rng_init(&rng, 7);
    if (!sha256_pair_is_there()) {
        skip();
    }
    for (int round = 0; round < 300; round++) {
        size_t len[2] = {rng_below(&rng, BYTES / 2), rng_below(&rng, BYTES / 2)}, at[2] = {0, 0};
        struct sha256_lane lane[2];
        sha256_lane_start(&lane[0]);
        sha256_lane_start(&lane[1]);
        while (at[0] < len[0] || at[1] < len[1]) {
            size_t n[2], idx = rng_below(&rng, 3);
            for (size_t k = 0; k < 2; k++) {
                n[k] = rng_below(&rng, 1u << rng_below(&rng, 17)) + 1;
                n[k] = n[k] < len[k] - at[k] ? n[k] : len[k] - at[k];
            }
            if (idx == 2) {
                sha256_pair_add(&lane[0], bytes + at[0], n[0], &lane[1], bytes + 100 + at[1], n[1]);
                at[0] += n[0];
                at[1] += n[1];
            } else {
                sha256_lane_add(&lane[idx], bytes + 100 * idx + at[idx], n[idx]);
                at[idx] += n[idx];
            }
        }
        expect(&lane[0], 0, len[0]);
        expect(&lane[1], 100, len[1]);
    }
}

/* The plain code, also tested on processors that have the instructions. */
TEST(test_plain)
{
    for (size_t len = 0; len < 200; len++) {
        struct sha256_lane plain, any;
        sha256_lane_start(&plain);
        plain.is_plain = true;
        sha256_lane_start_any(&any);
        sha256_lane_add(&plain, bytes + len, len / 3);
        sha256_lane_add(&plain, bytes + len + len / 3, len - len / 3);
        sha256_lane_add(&any, bytes + len, len);
        expect(&plain, len, len);
        expect(&any, len, len);
    }
}

static int fill(void **state UNUSED)
{
    struct rng rng;
    rng_init(&rng, 1);
    for (size_t idx = 0; idx < BYTES; idx++) {
        bytes[idx] = (uint8_t)rng_u64(&rng);
    }
    return 0;
}

UNIT_MAIN(fill, NULL)
