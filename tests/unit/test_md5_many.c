/* SPDX-License-Identifier: Apache-2.0 */
/* Each vector way that this processor has, against OpenSSL. That files of other lengths come and go in the lanes: test_tree.c. */
#include "unit.h"

#include "base/rng.h"
#include "codec/digest.h"
#include "codec/md5_many.h"

#define NOISE_BYTES (1u << 20)

/* In each lane another part of the noise, all of one length. A lane that is started forgets what it had. */
static void hold(enum md5_way way, const uint8_t *noise, size_t len)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    const uint8_t *ptrs[MD5_LANES_MAX];
    uint8_t tails[MD5_LANES_MAX][2 * MD5_BLOCK_BYTES];
    size_t tail_len = len % MD5_BLOCK_BYTES;
    size_t n_blocks = 0;
    struct md5_many many;
    md5_many_init(&many, way);
    for (size_t lane = 0; lane < MD5_LANES_MAX; lane++) {
        ptrs[lane] = noise + 977 * lane;
    }
    md5_many_blocks(&many, ptrs, 3);
    for (size_t lane = 0; lane < MD5_LANES_MAX; lane++) {
        md5_many_start(&many, lane);
        memset(tails[lane], 0xff, sizeof(tails[lane]));
        memcpy(tails[lane], ptrs[lane] + len - tail_len, tail_len);
        n_blocks = md5_many_pad(tails[lane], tail_len, len);
    }
    md5_many_blocks(&many, ptrs, len / MD5_BLOCK_BYTES);
    for (size_t lane = 0; lane < MD5_LANES_MAX; lane++) {
        ptrs[lane] = tails[lane];
    }
    md5_many_blocks(&many, ptrs, n_blocks);
    for (size_t lane = 0; lane < MD5_LANES_MAX; lane++) {
        uint8_t md5[MD5_BYTES];
        md5_many_value(&many, lane, md5);
        digest_start(&digest, DIGEST_MD5);
        digest_update(&digest, noise + 977 * lane, len);
        assert_memory_equal(md5, digest_finish(&digest).md5, MD5_BYTES);
    }
}

/* 0 to 10 blocks, each length: all borders of 55, 56, 63 and 64 bytes; and a long one. */
TEST(each_way_is_openssls)
{
    uint8_t *noise = arena_alloc(ARENA, NOISE_BYTES, 1);
    struct rng rng;
    rng_init(&rng, 5);
    for (size_t idx = 0; idx < NOISE_BYTES; idx++) {
        noise[idx] = (uint8_t)rng_u64(&rng);
    }
    assert_true(md5_many_has(md5_many_way()));
    for (unsigned way = MD5_WAY_AVX2; way <= MD5_WAY_AVX512F; way++) {
        bool is_here = md5_many_has((enum md5_way)way);
        print_message("# way %u: %s\n", way, is_here ? "here" : "not on this processor");
        for (size_t len = 0; is_here && len <= 10 * MD5_BLOCK_BYTES; len++) {
            hold((enum md5_way)way, noise, len);
        }
        if (is_here) {
            hold((enum md5_way)way, noise, NOISE_BYTES - 977 * MD5_LANES_MAX);
        }
    }
}

/* The length field has 64 bits. */
TEST(the_padding_has_all_bits_of_the_length)
{
    uint8_t tail[2 * MD5_BLOCK_BYTES];
    uint64_t n_bits = 0;
    assert_int_equal(md5_many_pad(tail, 55, (UINT64_C(5) << 30) + 55), 1);
    memcpy(&n_bits, tail + MD5_BLOCK_BYTES - 8, 8);
    assert_int_equal(n_bits, ((UINT64_C(5) << 30) + 55) * 8);
}
