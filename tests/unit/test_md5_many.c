/* SPDX-License-Identifier: Apache-2.0 */
/* Each vector way that this processor has, against OpenSSL. */
#include "unit.h"

#include "codec/md5_many.h"

#include "base/rng.h"
#include "codec/digest.h"

static const char *md5_way_name(enum md5_way way)
{
    static const char *const NAMES[] = {"OpenSSL", "AVX2", "AVX-512F"};
    return NAMES[way];
}

/* Messages already in memory, in the best way available. */
struct md5_message {
    struct str bytes;
    uint8_t md5[MD5_BYTES]; /* out */
};
/* ---- messages in memory ---- */

struct lane {
    struct md5_message *message; /* NULL: free */
    const uint8_t *at;
    size_t n_blocks; /* left at `at` */
    bool is_padded;
    uint8_t tail[2 * MD5_BLOCK_BYTES];
};

/* From the message's whole blocks to its end; false when that is done too. */
static bool lane_go_on(struct lane *lane)
{
    struct str bytes = lane->message->bytes;
    size_t tail_len = bytes.len % MD5_BLOCK_BYTES;
    if (lane->is_padded) {
        return false;
    }
    if (tail_len) {
        memcpy(lane->tail, bytes.ptr + (bytes.len - tail_len), tail_len);
    }
    lane->n_blocks = md5_many_pad(lane->tail, tail_len, bytes.len);
    lane->at = lane->tail;
    lane->is_padded = true;
    return true;
}

static void lane_begin(struct lane *lane, struct md5_message *message)
{
    lane->message = message;
    lane->at = (const uint8_t *)message->bytes.ptr;
    lane->n_blocks = message->bytes.len / MD5_BLOCK_BYTES;
    lane->is_padded = false;
    if (lane->n_blocks == 0) {
        lane_go_on(lane);
    }
}

/* Feeds as many blocks as every lane in use has. */
static void feed(struct md5_many *many, struct lane *lanes)
{
    const uint8_t *ptrs[MD5_LANES_MAX];
    const uint8_t *any = NULL;
    size_t n_blocks = SIZE_MAX;
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        if (lanes[idx].message && lanes[idx].n_blocks < n_blocks) {
            n_blocks = lanes[idx].n_blocks;
            any = lanes[idx].at;
        }
    }
    ASSERT(any != NULL);
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        ptrs[idx] = lanes[idx].message ? lanes[idx].at : any;
    }
    md5_many_blocks(many, ptrs, n_blocks);
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        if (lanes[idx].message) {
            lanes[idx].at += n_blocks * MD5_BLOCK_BYTES;
            lanes[idx].n_blocks -= n_blocks;
        }
    }
}

static void in_lanes(struct md5_message *messages, size_t n, enum md5_way way)
{
    struct md5_many many;
    struct lane lanes[MD5_LANES_MAX] = {0};
    size_t next_idx = 0;
    size_t n_done = 0;
    md5_many_init(&many, way);
    while (n_done < n) {
        for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
            if (!lanes[idx].message && next_idx < n) {
                md5_many_start(&many, idx);
                lane_begin(&lanes[idx], &messages[next_idx++]);
            }
        }
        feed(&many, lanes);
        for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
            if (lanes[idx].message && lanes[idx].n_blocks == 0 && !lane_go_on(&lanes[idx])) {
                md5_many_value(&many, idx, lanes[idx].message->md5);
                lanes[idx].message = NULL;
                n_done++;
            }
        }
    }
}

static void md5_of_many(struct md5_message *messages, size_t n, enum md5_way way)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct digest_value value;
    if (way != MD5_WAY_NONE) {
        in_lanes(messages, n, way);
        return;
    }
    for (size_t idx = 0; idx < n; idx++) {
        digest_start(&digest, DIGEST_MD5);
        digest_update(&digest, messages[idx].bytes.ptr, messages[idx].bytes.len);
        value = digest_finish(&digest);
        memcpy(messages[idx].md5, value.md5, MD5_BYTES);
    }
}

#define POOL_BYTES (3u << 20)
#define N_MESSAGES 400

static struct arena arena;
static char *bytes; /* POOL_BYTES of noise */

static int setup(void **state UNUSED)
{
    struct rng rng;
    rng_init(&rng, 5);
    bytes = arena_alloc(&arena, POOL_BYTES, 1);
    for (size_t idx = 0; idx < POOL_BYTES; idx++) {
        bytes[idx] = (char)rng_u64(&rng);
    }
    return 0;
}

static int teardown(void **state UNUSED)
{
    arena_release(&arena);
    return 0;
}

static void check(struct md5_message *messages, size_t n)
{
    struct md5_message *wanted = arena_array(&arena, struct md5_message, n);
    memcpy(wanted, messages, n * sizeof(*messages));
    md5_of_many(wanted, n, MD5_WAY_NONE);
    for (unsigned way = MD5_WAY_AVX2; way <= MD5_WAY_AVX512F; way++) {
        if (!md5_many_has((enum md5_way)way)) {
            continue;
        }
        for (size_t idx = 0; idx < n; idx++) {
            memset(messages[idx].md5, 0xee, MD5_BYTES);
        }
        md5_of_many(messages, n, (enum md5_way)way);
        for (size_t idx = 0; idx < n; idx++) {
            if (memcmp(messages[idx].md5, wanted[idx].md5, MD5_BYTES) != 0) {
                fail_msg("%s: message %zu of %zu, %zu bytes", md5_way_name((enum md5_way)way), idx,
                         n, messages[idx].bytes.len);
            }
        }
    }
}

TEST(test_what_is_tested)
{
    assert_true(md5_many_has(MD5_WAY_NONE));
    assert_true(md5_many_has(md5_many_way()));
    for (unsigned way = MD5_WAY_NONE; way <= MD5_WAY_AVX512F; way++) {
        print_message("# %s: %s\n", md5_way_name((enum md5_way)way),
                      md5_many_has((enum md5_way)way) ? "here" : "not on this processor");
    }
}

/* Source: RFC 1321, appendix A.5. */
TEST(test_published_vectors)
{
    static const char *const ROWS[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"}};
    for (unsigned way = MD5_WAY_NONE; way <= MD5_WAY_AVX512F; way++) {
        struct md5_message messages[ARRAY_LEN(ROWS)];
        if (!md5_many_has((enum md5_way)way)) {
            continue;
        }
        for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
            messages[idx].bytes = str_of(ROWS[idx][0]);
        }
        md5_of_many(messages, ARRAY_LEN(ROWS), (enum md5_way)way);
        for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
            char hex[MD5_HEX_SIZE];
            hex_encode(messages[idx].md5, MD5_BYTES, hex);
            assert_string_equal(hex, ROWS[idx][1]);
        }
    }
}

/* 0 to 10 blocks, each length: all borders of 55, 56, 63 and 64 bytes, whatever is in the other lanes. */
TEST(test_each_length)
{
    struct md5_message messages[10 * MD5_BLOCK_BYTES + 1];
    for (size_t idx = 0; idx < ARRAY_LEN(messages); idx++) {
        messages[idx].bytes = (struct str){bytes + idx, idx};
    }
    check(messages, ARRAY_LEN(messages));
    for (size_t idx = 0; idx < ARRAY_LEN(messages); idx++) { /* mixed: long next to short */
        messages[idx].bytes = (struct str){bytes + idx, idx * 397 % ARRAY_LEN(messages)};
    }
    check(messages, ARRAY_LEN(messages));
}

/* Fewer messages than lanes, as many, one more. */
TEST(test_each_number)
{
    struct md5_message messages[2 * MD5_LANES_MAX + 1];
    for (size_t n = 1; n <= ARRAY_LEN(messages); n++) {
        for (size_t idx = 0; idx < n; idx++) {
            messages[idx].bytes = (struct str){bytes + 77 * idx, 1000 + 131 * idx};
        }
        check(messages, n);
    }
}

TEST(test_random_and_large)
{
    struct md5_message messages[N_MESSAGES];
    struct rng rng;
    rng_init(&rng, 9);
    for (size_t idx = 0; idx < N_MESSAGES; idx++) {
        size_t len = rng_below(&rng, idx % 50 == 0 ? POOL_BYTES : 9000);
        messages[idx].bytes = (struct str){bytes + rng_below(&rng, POOL_BYTES - len + 1), len};
    }
    check(messages, N_MESSAGES);
}

/* The length field has 64 bits. */
TEST(test_padding)
{
    uint8_t tail[2 * MD5_BLOCK_BYTES];
    for (size_t len = 0; len < MD5_BLOCK_BYTES; len++) {
        memset(tail, 0xff, sizeof(tail));
        size_t n_blocks = md5_many_pad(tail, len, (UINT64_C(5) << 30) + len);
        uint64_t n_bits = 0;
        assert_int_equal(n_blocks, len <= 55 ? 1 : 2);
        assert_int_equal(tail[len], 0x80);
        memcpy(&n_bits, tail + n_blocks * MD5_BLOCK_BYTES - 8, 8);
        assert_int_equal(n_bits, ((UINT64_C(5) << 30) + len) * 8);
        for (size_t idx = len + 1; idx < n_blocks * MD5_BLOCK_BYTES - 8; idx++) {
            assert_int_equal(tail[idx], 0);
        }
    }
}

UNIT_MAIN(setup, teardown)
