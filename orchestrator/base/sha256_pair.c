/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/sha256_pair.h"

/* Source: FIPS 180-4, section 4.2.2. */
static const uint32_t K[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* ---- without the instructions. Source: FIPS 180-4, sections 4.1.2 and 6.2.2. ---- */

static inline uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void expand(const uint8_t *ptr, uint32_t *w)
{
    for (size_t t = 0; t < 16; t++) {
        w[t] = (uint32_t)ptr[4 * t] << 24 | (uint32_t)ptr[4 * t + 1] << 16 |
               (uint32_t)ptr[4 * t + 2] << 8 | ptr[4 * t + 3];
    }
    for (size_t t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

/* Variable a, b, c... of round t: names rotate instead of values. */
#define V(i) v[((i)-t) & 7]

static void compress_plain(uint32_t *state, const uint8_t *ptr, size_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--, ptr += SHA256_BLOCK) {
        uint32_t w[64], v[8];
        expand(ptr, w);
        memcpy(v, state, sizeof(v));
#pragma GCC unroll 8 /* V's indices are constants then */
        for (size_t t = 0; t < 64; t++) {
            uint32_t s1 = rotr(V(4), 6) ^ rotr(V(4), 11) ^ rotr(V(4), 25);
            uint32_t s0 = rotr(V(0), 2) ^ rotr(V(0), 13) ^ rotr(V(0), 22);
            uint32_t t1 = V(7) + s1 + ((V(4) & V(5)) ^ (~V(4) & V(6))) + K[t] + w[t];
            uint32_t t2 = s0 + ((V(0) & V(1)) ^ (V(0) & V(2)) ^ (V(1) & V(2)));
            V(3) += t1;
            V(7) = t1 + t2;
        }
        for (size_t idx = 0; idx < 8; idx++) {
            state[idx] += v[idx];
        }
    }
}

/* ---- with them ---- */

#if defined(__x86_64__)

#include <immintrin.h>

#define SHA_TARGET __attribute__((target("sha,sse4.1,ssse3")))
/* Four rounds, and the message words for the four rounds that come twelve later. abef and cdgh: the state in the order of the
   instructions. */
#define ROUNDS(i, abef, cdgh, w)                                                                   \
    do {                                                                                           \
        __m128i sum_ = _mm_add_epi32(                                                              \
            (w)[(i)&3], _mm_load_si128((const __m128i *)(const void *)&K[(size_t)4 * (i)]));       \
        (cdgh) = _mm_sha256rnds2_epu32((cdgh), (abef), sum_);                                      \
        (abef) = _mm_sha256rnds2_epu32((abef), (cdgh), _mm_shuffle_epi32(sum_, 0x0e));             \
        if ((i) < 12) {                                                                            \
            __m128i word_ = _mm_sha256msg1_epu32((w)[(i)&3], (w)[((i) + 1) & 3]);                  \
            word_ =                                                                                \
                _mm_add_epi32(word_, _mm_alignr_epi8((w)[((i) + 3) & 3], (w)[((i) + 2) & 3], 4));  \
            (w)[(i)&3] = _mm_sha256msg2_epu32(word_, (w)[((i) + 3) & 3]);                          \
        }                                                                                          \
    } while (0)
#define ONE(i) ROUNDS(i, a0, a1, aw)
#define TWO(i)                                                                                     \
    do {                                                                                           \
        ROUNDS(i, a0, a1, aw);                                                                     \
        ROUNDS(i, b0, b1, bw);                                                                     \
    } while (0)
#define ALL_OF(step)                                                                               \
    do {                                                                                           \
        step(0);                                                                                   \
        step(1);                                                                                   \
        step(2);                                                                                   \
        step(3);                                                                                   \
        step(4);                                                                                   \
        step(5);                                                                                   \
        step(6);                                                                                   \
        step(7);                                                                                   \
        step(8);                                                                                   \
        step(9);                                                                                   \
        step(10);                                                                                  \
        step(11);                                                                                  \
        step(12);                                                                                  \
        step(13);                                                                                  \
        step(14);                                                                                  \
        step(15);                                                                                  \
    } while (0)

static inline SHA_TARGET __m128i load(const void *ptr)
{
    return _mm_loadu_si128((const __m128i *)ptr);
}

static inline SHA_TARGET void load_words(const uint8_t *ptr, __m128i *w)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    for (size_t idx = 0; idx < 4; idx++) {
        w[idx] = _mm_shuffle_epi8(load(ptr + 16 * idx), big_endian);
    }
}

/* a b c d, e f g h in memory, to and from the order of the instructions. */
static inline SHA_TARGET void load_state(const uint32_t *state, __m128i *abef, __m128i *cdgh)
{
    __m128i badc = _mm_shuffle_epi32(load(state), 0xb1);
    __m128i hgfe = _mm_shuffle_epi32(load(state + 4), 0x1b);
    *abef = _mm_alignr_epi8(badc, hgfe, 8);
    *cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
}

static inline SHA_TARGET void store_state(uint32_t *state, __m128i abef, __m128i cdgh)
{
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static SHA_TARGET void compress(uint32_t *state, const uint8_t *ptr, size_t n_blocks)
{
    __m128i a0, a1, aw[4];
    load_state(state, &a0, &a1);
    for (; n_blocks > 0; n_blocks--, ptr += SHA256_BLOCK) {
        const __m128i a0_was = a0, a1_was = a1;
        load_words(ptr, aw);
        ALL_OF(ONE);
        a0 = _mm_add_epi32(a0, a0_was);
        a1 = _mm_add_epi32(a1, a1_was);
    }
    store_state(state, a0, a1);
}

static SHA_TARGET void compress_two(uint32_t *a, const uint8_t *a_ptr, uint32_t *b,
                                    const uint8_t *b_ptr, size_t n_blocks)
{
    __m128i a0, a1, aw[4], b0, b1, bw[4];
    load_state(a, &a0, &a1);
    load_state(b, &b0, &b1);
    for (; n_blocks > 0; n_blocks--, a_ptr += SHA256_BLOCK, b_ptr += SHA256_BLOCK) {
        const __m128i a0_was = a0, a1_was = a1, b0_was = b0, b1_was = b1;
        load_words(a_ptr, aw);
        load_words(b_ptr, bw);
        ALL_OF(TWO);
        a0 = _mm_add_epi32(a0, a0_was);
        a1 = _mm_add_epi32(a1, a1_was);
        b0 = _mm_add_epi32(b0, b0_was);
        b1 = _mm_add_epi32(b1, b1_was);
    }
    store_state(a, a0, a1);
    store_state(b, b0, b1);
}

bool sha256_pair_is_there(void)
{
    /* Leaf 7, EBX bit 29: SHA. Source: Intel SDM volume 2, CPUID. */
    unsigned eax = 7, ebx, ecx = 0, edx;
    if (!__builtin_cpu_supports("sse4.1")) {
        return false;
    }
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return ebx >> 29 & 1;
}

#else

static void compress(uint32_t *state UNUSED, const uint8_t *ptr UNUSED, size_t n_blocks UNUSED)
{
    ASSERT(false);
}

static void compress_two(uint32_t *a UNUSED, const uint8_t *a_ptr UNUSED, uint32_t *b UNUSED,
                         const uint8_t *b_ptr UNUSED, size_t n_blocks UNUSED)
{
    ASSERT(false);
}

bool sha256_pair_is_there(void)
{
    return false;
}

#endif

void sha256_lane_start(struct sha256_lane *lane)
{
    /* Source: FIPS 180-4, section 5.3.3. */
    static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(lane->state, START, sizeof(START));
    lane->n_bytes = 0;
    lane->is_plain = false;
}

void sha256_lane_start_any(struct sha256_lane *lane)
{
    sha256_lane_start(lane);
    lane->is_plain = !sha256_pair_is_there();
}

static void compress_lane(struct sha256_lane *lane, const uint8_t *ptr, size_t n_blocks)
{
    if (lane->is_plain) {
        compress_plain(lane->state, ptr, n_blocks);
    } else {
        compress(lane->state, ptr, n_blocks);
    }
}

/* Completes the partial block; then the rest starts at a block, or is less than one. */
static void align(struct sha256_lane *lane, const uint8_t **ptr, size_t *len)
{
    size_t n_part = lane->n_bytes % SHA256_BLOCK;
    size_t n = SHA256_BLOCK - n_part < *len ? SHA256_BLOCK - n_part : *len;
    if (n_part == 0) {
        return;
    }
    memcpy(lane->part + n_part, *ptr, n);
    lane->n_bytes += n;
    *ptr += n;
    *len -= n;
    if (lane->n_bytes % SHA256_BLOCK == 0) {
        compress_lane(lane, lane->part, 1);
    }
}

static void add_rest(struct sha256_lane *lane, const uint8_t *ptr, size_t len)
{
    size_t n_blocks = len / SHA256_BLOCK;
    if (len == 0) {
        return;
    }
    compress_lane(lane, ptr, n_blocks);
    memcpy(lane->part, ptr + n_blocks * SHA256_BLOCK, len % SHA256_BLOCK);
    lane->n_bytes += len;
}

void sha256_lane_add(struct sha256_lane *lane, const void *ptr, size_t len)
{
    const uint8_t *at = ptr;
    align(lane, &at, &len);
    add_rest(lane, at, len);
}

void sha256_pair_add(struct sha256_lane *one, const void *one_ptr, size_t one_len,
                     struct sha256_lane *other, const void *other_ptr, size_t other_len)
{
    const uint8_t *one_at = one_ptr, *other_at = other_ptr;
    align(one, &one_at, &one_len);
    align(other, &other_at, &other_len);
    size_t n_blocks = (one_len < other_len ? one_len : other_len) / SHA256_BLOCK;
    if (n_blocks > 0) {
        compress_two(one->state, one_at, other->state, other_at, n_blocks);
        one->n_bytes += n_blocks * SHA256_BLOCK;
        other->n_bytes += n_blocks * SHA256_BLOCK;
        one_at += n_blocks * SHA256_BLOCK;
        other_at += n_blocks * SHA256_BLOCK;
        one_len -= n_blocks * SHA256_BLOCK;
        other_len -= n_blocks * SHA256_BLOCK;
    }
    add_rest(one, one_at, one_len);
    add_rest(other, other_at, other_len);
}

void sha256_lane_finish(struct sha256_lane *lane, uint8_t *ret_sha256)
{
    uint8_t end[2 * SHA256_BLOCK] = {0x80};
    uint64_t n_bits = lane->n_bytes * 8;
    size_t n = SHA256_BLOCK - (lane->n_bytes + 8) % SHA256_BLOCK;
    for (size_t idx = 0; idx < 8; idx++) {
        end[n + idx] = (uint8_t)(n_bits >> (56 - 8 * idx));
    }
    sha256_lane_add(lane, end, n + 8);
    ASSERT(lane->n_bytes % SHA256_BLOCK == 0);
    for (size_t idx = 0; idx < SHA256_BYTES; idx++) {
        ret_sha256[idx] = (uint8_t)(lane->state[idx / 4] >> (24 - 8 * (idx % 4)));
    }
}
