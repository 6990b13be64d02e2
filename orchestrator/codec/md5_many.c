/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/md5_many.h"

#include "base/bytes.h"
#include "codec/md5_lanes.h"

/* ---- the processor ---- */

bool md5_many_has(enum md5_way way)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    switch (way) {
    case MD5_WAY_AVX512F:
        return __builtin_cpu_supports("avx512f");
    case MD5_WAY_AVX2:
        return __builtin_cpu_supports("avx2");
    case MD5_WAY_NONE:
        break;
    }
#endif
    return way == MD5_WAY_NONE;
}

enum md5_way md5_many_way(void)
{
    if (md5_many_has(MD5_WAY_AVX512F)) {
        return MD5_WAY_AVX512F;
    }
    return md5_many_has(MD5_WAY_AVX2) ? MD5_WAY_AVX2 : MD5_WAY_NONE;
}

/* ---- lanes ---- */

void md5_many_init(struct md5_many *many, enum md5_way way)
{
    ASSERT(way != MD5_WAY_NONE);
    ASSERT(md5_many_has(way));
    many->way = way;
    for (size_t lane = 0; lane < MD5_LANES_MAX; lane++) {
        md5_many_start(many, lane);
    }
}

/* Source: RFC 1321, section 3.3. */
void md5_many_start(struct md5_many *many, size_t lane)
{
    many->state[0][lane] = 0x67452301;
    many->state[1][lane] = 0xefcdab89;
    many->state[2][lane] = 0x98badcfe;
    many->state[3][lane] = 0x10325476;
}

void md5_many_blocks(struct md5_many *many, const uint8_t *const *ptrs, size_t n_blocks)
{
#if defined(__x86_64__)
    if (many->way == MD5_WAY_AVX512F) {
        md5_blocks_avx512f(many->state, ptrs, n_blocks);
    } else {
        md5_blocks_avx2(many->state, ptrs, n_blocks);
    }
#else
    (void)ptrs;
    (void)n_blocks;
    ASSERT(many->way == MD5_WAY_NONE); /* md5_many_init has refused the others */
#endif
}

/* Source: RFC 1321, sections 3.1 and 3.2: a one bit, zeros, the number of bits. */
size_t md5_many_pad(uint8_t *tail, size_t tail_len, uint64_t message_bytes)
{
    size_t n_blocks = tail_len + 1 + sizeof(uint64_t) <= MD5_BLOCK_BYTES ? 1 : 2;
    size_t len = n_blocks * MD5_BLOCK_BYTES;
    ASSERT(tail_len < MD5_BLOCK_BYTES);
    memset(tail + tail_len, 0, len - tail_len);
    tail[tail_len] = 0x80;
    put_le32(tail + len - 8, (uint32_t)(message_bytes << 3));
    put_le32(tail + len - 4, (uint32_t)(message_bytes >> 29));
    return n_blocks;
}

void md5_many_value(const struct md5_many *many, size_t lane, uint8_t *ret_md5)
{
    for (size_t word = 0; word < 4; word++) {
        put_le32(ret_md5 + 4 * word, many->state[word][lane]);
    }
}
