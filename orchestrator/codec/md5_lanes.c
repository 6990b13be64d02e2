/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name functions that base/banned.h poisons. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "base/base.h"

#include "codec/md5_lanes.h"

/* function, a, b, c, d, word of the block, bits to rotate by, constant: floor(2^32 |sin(step)|).
   Source: RFC 1321, section 3.4 and appendix A.3. */
/* clang-format off */
#define MD5_STEPS \
    STEP(F, a, b, c, d, 0, 7, 0xd76aa478) \
    STEP(F, d, a, b, c, 1, 12, 0xe8c7b756) \
    STEP(F, c, d, a, b, 2, 17, 0x242070db) \
    STEP(F, b, c, d, a, 3, 22, 0xc1bdceee) \
    STEP(F, a, b, c, d, 4, 7, 0xf57c0faf) \
    STEP(F, d, a, b, c, 5, 12, 0x4787c62a) \
    STEP(F, c, d, a, b, 6, 17, 0xa8304613) \
    STEP(F, b, c, d, a, 7, 22, 0xfd469501) \
    STEP(F, a, b, c, d, 8, 7, 0x698098d8) \
    STEP(F, d, a, b, c, 9, 12, 0x8b44f7af) \
    STEP(F, c, d, a, b, 10, 17, 0xffff5bb1) \
    STEP(F, b, c, d, a, 11, 22, 0x895cd7be) \
    STEP(F, a, b, c, d, 12, 7, 0x6b901122) \
    STEP(F, d, a, b, c, 13, 12, 0xfd987193) \
    STEP(F, c, d, a, b, 14, 17, 0xa679438e) \
    STEP(F, b, c, d, a, 15, 22, 0x49b40821) \
    STEP(G, a, b, c, d, 1, 5, 0xf61e2562) \
    STEP(G, d, a, b, c, 6, 9, 0xc040b340) \
    STEP(G, c, d, a, b, 11, 14, 0x265e5a51) \
    STEP(G, b, c, d, a, 0, 20, 0xe9b6c7aa) \
    STEP(G, a, b, c, d, 5, 5, 0xd62f105d) \
    STEP(G, d, a, b, c, 10, 9, 0x02441453) \
    STEP(G, c, d, a, b, 15, 14, 0xd8a1e681) \
    STEP(G, b, c, d, a, 4, 20, 0xe7d3fbc8) \
    STEP(G, a, b, c, d, 9, 5, 0x21e1cde6) \
    STEP(G, d, a, b, c, 14, 9, 0xc33707d6) \
    STEP(G, c, d, a, b, 3, 14, 0xf4d50d87) \
    STEP(G, b, c, d, a, 8, 20, 0x455a14ed) \
    STEP(G, a, b, c, d, 13, 5, 0xa9e3e905) \
    STEP(G, d, a, b, c, 2, 9, 0xfcefa3f8) \
    STEP(G, c, d, a, b, 7, 14, 0x676f02d9) \
    STEP(G, b, c, d, a, 12, 20, 0x8d2a4c8a) \
    STEP(H, a, b, c, d, 5, 4, 0xfffa3942) \
    STEP(H, d, a, b, c, 8, 11, 0x8771f681) \
    STEP(H, c, d, a, b, 11, 16, 0x6d9d6122) \
    STEP(H, b, c, d, a, 14, 23, 0xfde5380c) \
    STEP(H, a, b, c, d, 1, 4, 0xa4beea44) \
    STEP(H, d, a, b, c, 4, 11, 0x4bdecfa9) \
    STEP(H, c, d, a, b, 7, 16, 0xf6bb4b60) \
    STEP(H, b, c, d, a, 10, 23, 0xbebfbc70) \
    STEP(H, a, b, c, d, 13, 4, 0x289b7ec6) \
    STEP(H, d, a, b, c, 0, 11, 0xeaa127fa) \
    STEP(H, c, d, a, b, 3, 16, 0xd4ef3085) \
    STEP(H, b, c, d, a, 6, 23, 0x04881d05) \
    STEP(H, a, b, c, d, 9, 4, 0xd9d4d039) \
    STEP(H, d, a, b, c, 12, 11, 0xe6db99e5) \
    STEP(H, c, d, a, b, 15, 16, 0x1fa27cf8) \
    STEP(H, b, c, d, a, 2, 23, 0xc4ac5665) \
    STEP(I, a, b, c, d, 0, 6, 0xf4292244) \
    STEP(I, d, a, b, c, 7, 10, 0x432aff97) \
    STEP(I, c, d, a, b, 14, 15, 0xab9423a7) \
    STEP(I, b, c, d, a, 5, 21, 0xfc93a039) \
    STEP(I, a, b, c, d, 12, 6, 0x655b59c3) \
    STEP(I, d, a, b, c, 3, 10, 0x8f0ccc92) \
    STEP(I, c, d, a, b, 10, 15, 0xffeff47d) \
    STEP(I, b, c, d, a, 1, 21, 0x85845dd1) \
    STEP(I, a, b, c, d, 8, 6, 0x6fa87e4f) \
    STEP(I, d, a, b, c, 15, 10, 0xfe2ce6e0) \
    STEP(I, c, d, a, b, 6, 15, 0xa3014314) \
    STEP(I, b, c, d, a, 13, 21, 0x4e0811a1) \
    STEP(I, a, b, c, d, 4, 6, 0xf7537e82) \
    STEP(I, d, a, b, c, 11, 10, 0xbd3af235) \
    STEP(I, c, d, a, b, 2, 15, 0x2ad7d2bb) \
    STEP(I, b, c, d, a, 9, 21, 0xeb86d391)
/* clang-format on */

/* ---- AVX2: two groups of 8 lanes, whose steps do not depend on each other ---- */

#define GROUP   ((size_t)8)
#define FN_AVX2 __attribute__((target("avx2"))) static inline

/* Eight rows of eight words become eight columns. */
FN_AVX2 void transpose_8(const uint8_t *const *ptrs, size_t at, __m256i *ret_words)
{
    __m256i row[8], pair[8], quad[8];
    for (size_t lane = 0; lane < 8; lane++) {
        row[lane] = _mm256_loadu_si256((const __m256i_u *)(const void *)(ptrs[lane] + at));
    }
    for (size_t idx = 0; idx < 4; idx++) {
        pair[2 * idx] = _mm256_unpacklo_epi32(row[2 * idx], row[2 * idx + 1]);
        pair[2 * idx + 1] = _mm256_unpackhi_epi32(row[2 * idx], row[2 * idx + 1]);
    }
    for (size_t idx = 0; idx < 2; idx++) {
        const __m256i *four = pair + 4 * idx;
        quad[4 * idx] = _mm256_unpacklo_epi64(four[0], four[2]);
        quad[4 * idx + 1] = _mm256_unpackhi_epi64(four[0], four[2]);
        quad[4 * idx + 2] = _mm256_unpacklo_epi64(four[1], four[3]);
        quad[4 * idx + 3] = _mm256_unpackhi_epi64(four[1], four[3]);
    }
    for (size_t idx = 0; idx < 4; idx++) {
        ret_words[idx] = _mm256_permute2x128_si256(quad[idx], quad[idx + 4], 0x20);
        ret_words[idx + 4] = _mm256_permute2x128_si256(quad[idx], quad[idx + 4], 0x31);
    }
}

#define ADD8(x, y)  _mm256_add_epi32(x, y)
#define AND8(x, y)  _mm256_and_si256(x, y)
#define XOR8(x, y)  _mm256_xor_si256(x, y)
#define ROL8(x, s)  _mm256_or_si256(_mm256_slli_epi32(x, s), _mm256_srli_epi32(x, 32 - (s)))
#define ONES8       _mm256_set1_epi32(-1)
#define F8(b, c, d) XOR8(d, AND8(b, XOR8(c, d)))
/* The two halves have no bit in common: an addition, of which the half without b is ready early. */
#define G8(b, c, d) ADD8(_mm256_andnot_si256(d, c), AND8(b, d))
#define H8(b, c, d) XOR8(b, XOR8(c, d))
#define I8(b, c, d) XOR8(c, _mm256_or_si256(b, XOR8(d, ONES8)))

#define STEP_1(fn, n, a, b, c, d, word, bits, k)                                                   \
    a##n = ADD8(ADD8(a##n, ADD8(words[n][word], k)), fn##8(b##n, c##n, d##n));                     \
    a##n = ADD8(ROL8(a##n, bits), b##n);
#define STEP(fn, a, b, c, d, word, bits, constant)                                                 \
    {                                                                                              \
        const __m256i k = _mm256_set1_epi32((int)(constant));                                      \
        STEP_1(fn, 0, a, b, c, d, word, bits, k)                                                   \
        STEP_1(fn, 1, a, b, c, d, word, bits, k)                                                   \
    }

#define LOAD8(word, n)                                                                             \
    _mm256_loadu_si256((const __m256i_u *)(const void *)(state[word] + GROUP * (n)))
#define STORE8(word, n, value)                                                                     \
    _mm256_storeu_si256((__m256i_u *)(void *)(state[word] + GROUP * (n)), value)

__attribute__((target("avx2"))) void md5_blocks_avx2(uint32_t (*state)[MD5_LANES_MAX],
                                                     const uint8_t *const *ptrs, size_t n_blocks)
{
    __m256i words[2][16];
    __m256i a0 = LOAD8(0, 0), b0 = LOAD8(1, 0), c0 = LOAD8(2, 0), d0 = LOAD8(3, 0);
    __m256i a1 = LOAD8(0, 1), b1 = LOAD8(1, 1), c1 = LOAD8(2, 1), d1 = LOAD8(3, 1);
    for (size_t block = 0; block < n_blocks; block++) {
        const __m256i a0_in = a0, b0_in = b0, c0_in = c0, d0_in = d0;
        const __m256i a1_in = a1, b1_in = b1, c1_in = c1, d1_in = d1;
        for (size_t group = 0; group < 2; group++) {
            transpose_8(ptrs + GROUP * group, MD5_BLOCK_BYTES * block, words[group]);
            transpose_8(ptrs + GROUP * group, MD5_BLOCK_BYTES * block + 32, words[group] + 8);
        }
        MD5_STEPS
        a0 = ADD8(a0, a0_in);
        b0 = ADD8(b0, b0_in);
        c0 = ADD8(c0, c0_in);
        d0 = ADD8(d0, d0_in);
        a1 = ADD8(a1, a1_in);
        b1 = ADD8(b1, b1_in);
        c1 = ADD8(c1, c1_in);
        d1 = ADD8(d1, d1_in);
    }
    STORE8(0, 0, a0);
    STORE8(1, 0, b0);
    STORE8(2, 0, c0);
    STORE8(3, 0, d0);
    STORE8(0, 1, a1);
    STORE8(1, 1, b1);
    STORE8(2, 1, c1);
    STORE8(3, 1, d1);
}

#undef STEP

/* ---- AVX-512: 16 lanes; rotation and any function of three bits are one instruction each ---- */

#define FN_AVX512 __attribute__((target("avx512f"))) static inline

/* Sixteen rows of sixteen words become sixteen columns. */
FN_AVX512 void transpose_16(const uint8_t *const *ptrs, size_t at, __m512i *ret_words)
{
    __m512i row[16], pair[16], quad[16];
    for (size_t lane = 0; lane < 16; lane++) {
        row[lane] = _mm512_loadu_si512(ptrs[lane] + at);
    }
    for (size_t idx = 0; idx < 8; idx++) {
        pair[2 * idx] = _mm512_unpacklo_epi32(row[2 * idx], row[2 * idx + 1]);
        pair[2 * idx + 1] = _mm512_unpackhi_epi32(row[2 * idx], row[2 * idx + 1]);
    }
    for (size_t idx = 0; idx < 4; idx++) {
        const __m512i *four = pair + 4 * idx;
        quad[4 * idx] = _mm512_unpacklo_epi64(four[0], four[2]);
        quad[4 * idx + 1] = _mm512_unpackhi_epi64(four[0], four[2]);
        quad[4 * idx + 2] = _mm512_unpacklo_epi64(four[1], four[3]);
        quad[4 * idx + 3] = _mm512_unpackhi_epi64(four[1], four[3]);
    }
    /* quad[4g + i] has, in its 128-bit part p, word 4p + i of lanes 4g to 4g + 3. */
    for (size_t idx = 0; idx < 4; idx++) {
        const __m512i even_low = _mm512_shuffle_i32x4(quad[idx], quad[idx + 4], 0x88);
        const __m512i odd_low = _mm512_shuffle_i32x4(quad[idx], quad[idx + 4], 0xdd);
        const __m512i even_high = _mm512_shuffle_i32x4(quad[idx + 8], quad[idx + 12], 0x88);
        const __m512i odd_high = _mm512_shuffle_i32x4(quad[idx + 8], quad[idx + 12], 0xdd);
        ret_words[idx] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
        ret_words[idx + 8] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
        ret_words[idx + 4] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
        ret_words[idx + 12] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
    }
}

#define ADD16(x, y) _mm512_add_epi32(x, y)
/* The truth table's bit 4x + 2y + z is the function's value for b = x, c = y, d = z. */
#define F_TABLE 0xca /* b ? c : d */
#define G_TABLE 0xe4 /* d ? b : c */
#define H_TABLE 0x96 /* b ^ c ^ d */
#define I_TABLE 0x39 /* c ^ (b | ~d) */

#define STEP(fn, a, b, c, d, word, bits, constant)                                                 \
    a = ADD16(ADD16(a, ADD16(words[word], _mm512_set1_epi32((int)(constant)))),                    \
              _mm512_ternarylogic_epi32(b, c, d, fn##_TABLE));                                     \
    a = ADD16(_mm512_rol_epi32(a, bits), b);

__attribute__((target("avx512f"))) void
md5_blocks_avx512f(uint32_t (*state)[MD5_LANES_MAX], const uint8_t *const *ptrs, size_t n_blocks)
{
    __m512i a = _mm512_loadu_si512(state[0]), b = _mm512_loadu_si512(state[1]);
    __m512i c = _mm512_loadu_si512(state[2]), d = _mm512_loadu_si512(state[3]);
    for (size_t block = 0; block < n_blocks; block++) {
        __m512i words[16];
        const __m512i a_in = a, b_in = b, c_in = c, d_in = d;
        transpose_16(ptrs, MD5_BLOCK_BYTES * block, words);
        MD5_STEPS
        a = ADD16(a, a_in);
        b = ADD16(b, b_in);
        c = ADD16(c, c_in);
        d = ADD16(d, d_in);
    }
    _mm512_storeu_si512(state[0], a);
    _mm512_storeu_si512(state[1], b);
    _mm512_storeu_si512(state[2], c);
    _mm512_storeu_si512(state[3], d);
}

#else
#include "codec/md5_lanes.h"
#endif
