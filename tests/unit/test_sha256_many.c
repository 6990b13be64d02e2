/* SPDX-License-Identifier: Apache-2.0 */
/* Two messages at once by the processor's SHA instructions, against OpenSSL. */
#include "base/base.h"

#include "codec/sha256_many.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#define NOISE_BYTES ((size_t)200000)
#define LENGTH_MAX  ((size_t)10 * SHA256_BLOCK_BYTES)

static uint8_t noise[NOISE_BYTES];

static int setup(void **state UNUSED)
{
    struct rng rng;
    rng_init(&rng, 6);
    for (size_t idx = 0; idx < NOISE_BYTES; idx++) {
        noise[idx] = (uint8_t)rng_u64(&rng);
    }
    return 0;
}

/* One message in a lane, another in the other: their common blocks first, then each alone beside bytes that do not count. */
static void hash_two(const uint8_t *const *ptrs, const size_t *lens, uint8_t (*ret)[SHA256_BYTES])
{
    struct sha256_many many;
    uint8_t tails[SHA256_LANES][2 * SHA256_BLOCK_BYTES];
    size_t n[SHA256_LANES], common;
    const uint8_t *at[SHA256_LANES];
    for (size_t lane = 0; lane < SHA256_LANES; lane++) {
        size_t tail_len = lens[lane] % SHA256_BLOCK_BYTES;
        sha256_many_start(&many, lane);
        n[lane] = lens[lane] / SHA256_BLOCK_BYTES;
        memcpy(tails[lane], ptrs[lane] + (lens[lane] - tail_len), tail_len);
        at[lane] = ptrs[lane];
    }
    common = n[0] < n[1] ? n[0] : n[1];
    sha256_many_blocks(&many, at, common);
    for (size_t lane = 0; lane < SHA256_LANES; lane++) {
        const struct sha256_many kept = many;
        const uint8_t *rest = ptrs[lane] + common * SHA256_BLOCK_BYTES;
        const uint8_t *both[SHA256_LANES] = {rest, rest};
        size_t n_tail = sha256_many_pad(tails[lane], lens[lane] % SHA256_BLOCK_BYTES, lens[lane]);
        sha256_many_blocks(&many, both, n[lane] - common);
        both[0] = both[1] = tails[lane];
        sha256_many_blocks(&many, both, n_tail);
        sha256_many_value(&many, lane, ret[lane]);
        many = kept;
    }
}

static void check(const uint8_t *const *ptrs, const size_t *lens)
{
    uint8_t got[SHA256_LANES][SHA256_BYTES], wanted[SHA256_BYTES];
    struct err err = {0};
    hash_two(ptrs, lens, got);
    for (size_t lane = 0; lane < SHA256_LANES; lane++) {
        struct str bytes = {(const char *)ptrs[lane], lens[lane]};
        assert_int_equal(sha256_of(bytes, wanted, &err), 0);
        if (memcmp(got[lane], wanted, SHA256_BYTES) != 0) {
            fail_msg("lane %zu: %zu bytes beside %zu", lane, lens[lane], lens[1 - lane]);
        }
    }
}

static void need_instructions(void)
{
    if (!sha256_many_has()) {
        print_message("# not on this processor\n");
        skip();
    }
}

static void test_each_length(void **state UNUSED)
{
    need_instructions();
    for (size_t len = 0; len <= LENGTH_MAX; len++) {
        const uint8_t *const ptrs[] = {noise + len, noise + 3 * len};
        const size_t lens[] = {len, LENGTH_MAX - len};
        check(ptrs, lens);
    }
}

static void test_random_and_large(void **state UNUSED)
{
    struct rng rng;
    need_instructions();
    rng_init(&rng, 4);
    for (size_t idx = 0; idx < 200; idx++) {
        const size_t lens[] = {rng_below(&rng, NOISE_BYTES), rng_below(&rng, 5000)};
        const uint8_t *const ptrs[] = {noise + rng_below(&rng, NOISE_BYTES - lens[0]),
                                       noise + rng_below(&rng, NOISE_BYTES - lens[1])};
        check(ptrs, lens);
    }
}

/* The length field has 64 bits, big-endian. */
static void test_padding(void **state UNUSED)
{
    uint8_t tail[2 * SHA256_BLOCK_BYTES];
    for (size_t len = 0; len < SHA256_BLOCK_BYTES; len++) {
        uint64_t message_bytes = (UINT64_C(5) << 30) + len, n_bits = 0;
        memset(tail, 0xff, sizeof(tail));
        size_t n_blocks = sha256_many_pad(tail, len, message_bytes);
        assert_int_equal(n_blocks, len <= 55 ? 1 : 2);
        assert_int_equal(tail[len], 0x80);
        for (size_t idx = 0; idx < 8; idx++) {
            n_bits = n_bits << 8 | tail[n_blocks * SHA256_BLOCK_BYTES - 8 + idx];
        }
        assert_int_equal(n_bits, message_bytes * 8);
        for (size_t idx = len + 1; idx < n_blocks * SHA256_BLOCK_BYTES - 8; idx++) {
            assert_int_equal(tail[idx], 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_length),
        cmocka_unit_test(test_random_and_large),
        cmocka_unit_test(test_padding),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, NULL);
}
