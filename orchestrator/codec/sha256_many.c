/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name functions that base/banned.h poisons. */
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/base.h"

#include "codec/sha256_many.h"

/* Source: FIPS 180-4, section 5.3.3: the first 32 bits of the fractional parts of the square roots of the first 8 primes. */
static const uint32_t START[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

void sha256_many_start(struct sha256_many *many, size_t lane)
{
    memcpy(many->state[lane], START, sizeof(START));
}

static void put_be(uint8_t *to, uint64_t value, size_t n_bytes)
{
    for (size_t idx = 0; idx < n_bytes; idx++) {
        to[idx] = (uint8_t)(value >> (8 * (n_bytes - 1 - idx)));
    }
}

/* Source: FIPS 180-4, section 5.1.1: a one bit, zeros, the number of bits. */
size_t sha256_many_pad(uint8_t *tail, size_t tail_len, uint64_t message_bytes)
{
    size_t n_blocks = tail_len + 1 + sizeof(uint64_t) <= SHA256_BLOCK_BYTES ? 1 : 2;
    size_t len = n_blocks * SHA256_BLOCK_BYTES;
    ASSERT(tail_len < SHA256_BLOCK_BYTES);
    memset(tail + tail_len, 0, len - tail_len);
    tail[tail_len] = 0x80;
    put_be(tail + len - sizeof(uint64_t), message_bytes << 3, sizeof(uint64_t));
    return n_blocks;
}

void sha256_many_value(const struct sha256_many *many, size_t lane, uint8_t *ret_sha256)
{
    for (size_t word = 0; word < 8; word++) {
        put_be(ret_sha256 + 4 * word, many->state[lane][word], 4);
    }
}

#if defined(__x86_64__)

/* Source: Intel SDM, CPUID leaf 7: EBX bit 29 is SHA. gcc 12's __builtin_cpu_supports does not know it. */
bool sha256_many_has(void)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __builtin_cpu_init();
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx >> 29 & 1) &&
           __builtin_cpu_supports("sse4.1");
}

/* Source: FIPS 180-4, section 4.2.2: as above, of the cube roots of the first 64 primes. */
/* clang-format off */
static const alignas(16) uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
/* clang-format on */

#define FN_SHA __attribute__((target("sha,sse4.1"))) static inline

struct half { /* the instructions' own order of a state */
    __m128i abef, cdgh;
};

FN_SHA struct half load_state(const uint32_t *state)
{
    const __m128i dcba = _mm_loadu_si128((const __m128i_u *)(const void *)state);
    const __m128i hgfe = _mm_loadu_si128((const __m128i_u *)(const void *)(state + 4));
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    return (struct half){_mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xf0)};
}

FN_SHA void store_state(struct half half, uint32_t *state)
{
    const __m128i feba = _mm_shuffle_epi32(half.abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(half.cdgh, 0xb1);
    _mm_storeu_si128((__m128i_u *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i_u *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Four words of the block, big-endian. */
FN_SHA __m128i load_words(const uint8_t *block, size_t idx)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u *)(const void *)(block + 16 * idx)),
                            swap);
}

/* The four words after w[0..3]. Source: FIPS 180-4, section 6.2.2, step 1. */
#define NEXT(w0, w1, w2, w3)                                                                       \
    _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4)),  \
                         w3)

/* Four rounds of both lanes, whose instructions lie side by side. */
#define ROUNDS_4(x, y, idx)                                                                        \
    {                                                                                              \
        const __m128i k = _mm_load_si128((const __m128i *)(const void *)(K + (size_t)4 * (idx)));  \
        const __m128i xk = _mm_add_epi32(x, k), yk = _mm_add_epi32(y, k);                          \
        a.cdgh = _mm_sha256rnds2_epu32(a.cdgh, a.abef, xk);                                        \
        b.cdgh = _mm_sha256rnds2_epu32(b.cdgh, b.abef, yk);                                        \
        a.abef = _mm_sha256rnds2_epu32(a.abef, a.cdgh, _mm_shuffle_epi32(xk, 0x0e));               \
        b.abef = _mm_sha256rnds2_epu32(b.abef, b.cdgh, _mm_shuffle_epi32(yk, 0x0e));               \
    }

/* Sixteen rounds with the words that are there; each four are replaced by the words 16 rounds on. */
#define ROUNDS_16(idx)                                                                             \
    ROUNDS_4(x0, y0, idx)                                                                          \
    x0 = NEXT(x0, x1, x2, x3);                                                                     \
    y0 = NEXT(y0, y1, y2, y3);                                                                     \
    ROUNDS_4(x1, y1, (idx) + 1)                                                                    \
    x1 = NEXT(x1, x2, x3, x0);                                                                     \
    y1 = NEXT(y1, y2, y3, y0);                                                                     \
    ROUNDS_4(x2, y2, (idx) + 2)                                                                    \
    x2 = NEXT(x2, x3, x0, x1);                                                                     \
    y2 = NEXT(y2, y3, y0, y1);                                                                     \
    ROUNDS_4(x3, y3, (idx) + 3)                                                                    \
    x3 = NEXT(x3, x0, x1, x2);                                                                     \
    y3 = NEXT(y3, y0, y1, y2);

__attribute__((target("sha,sse4.1"))) void
sha256_many_blocks(struct sha256_many *many, const uint8_t *const *ptrs, size_t n_blocks)
{
    struct half a = load_state(many->state[0]), b = load_state(many->state[1]);
    for (size_t block = 0; block < n_blocks; block++) {
        const struct half a_in = a, b_in = b;
        const uint8_t *x = ptrs[0] + SHA256_BLOCK_BYTES * block;
        const uint8_t *y = ptrs[1] + SHA256_BLOCK_BYTES * block;
        __m128i x0 = load_words(x, 0), x1 = load_words(x, 1), x2 = load_words(x, 2);
        __m128i y0 = load_words(y, 0), y1 = load_words(y, 1), y2 = load_words(y, 2);
        __m128i x3 = load_words(x, 3), y3 = load_words(y, 3);
        ROUNDS_16(0)
        ROUNDS_16(4)
        ROUNDS_16(8)
        ROUNDS_4(x0, y0, 12)
        ROUNDS_4(x1, y1, 13)
        ROUNDS_4(x2, y2, 14)
        ROUNDS_4(x3, y3, 15)
        a.abef = _mm_add_epi32(a.abef, a_in.abef);
        a.cdgh = _mm_add_epi32(a.cdgh, a_in.cdgh);
        b.abef = _mm_add_epi32(b.abef, b_in.abef);
        b.cdgh = _mm_add_epi32(b.cdgh, b_in.cdgh);
    }
    store_state(a, many->state[0]);
    store_state(b, many->state[1]);
}

#else

bool sha256_many_has(void)
{
    return false;
}

void sha256_many_blocks(struct sha256_many *many UNUSED, const uint8_t *const *ptrs UNUSED,
                        size_t n_blocks UNUSED)
{
    ASSERT(sha256_many_has());
}

#endif
