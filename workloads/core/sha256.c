/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/sha256.h"

#define BLOCK_BYTES 64

/* The first 32 bits of the fractions of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* The message schedule (section 6.2.2, step 1). */
static void schedule(const uint8_t *block, uint32_t w[64])
{
    for (size_t t = 0; t < 16; t++) {
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    }
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    uint32_t v[8];
    schedule(block, w);
    memcpy(v, state, sizeof(v));
    for (int t = 0; t < 64; t++) {
        uint32_t sum1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + sum1 + choice + K[t] + w[t];
        uint32_t sum0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void sha256_init(struct sha256 *sha)
{
    *sha = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sha, const void *ptr, size_t len)
{
    const uint8_t *bytes = ptr;
    size_t waiting = (size_t)(sha->n_bytes % BLOCK_BYTES);
    sha->n_bytes += len;
    while (len > 0) {
        if (waiting == 0 && len >= BLOCK_BYTES) {
            compress(sha->state, bytes);
            bytes += BLOCK_BYTES;
            len -= BLOCK_BYTES;
            continue;
        }
        size_t n = len < BLOCK_BYTES - waiting ? len : BLOCK_BYTES - waiting;
        memcpy(sha->block + waiting, bytes, n);
        bytes += n;
        len -= n;
        waiting += n;
        if (waiting == BLOCK_BYTES) {
            compress(sha->state, sha->block);
            waiting = 0;
        }
    }
}

void sha256_hex(struct sha256 *sha, char ret_hex[SHA256_HEX_LEN + 1])
{
    static const uint8_t padding[BLOCK_BYTES] = {0x80};
    uint64_t n_bits = sha->n_bytes * 8;
    uint8_t length[8];
    size_t waiting = (size_t)(sha->n_bytes % BLOCK_BYTES);
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
    }
    sha256_add(sha, padding, waiting < 56 ? 56 - waiting : 56 + BLOCK_BYTES - waiting);
    sha256_add(sha, length, sizeof(length));
    for (int i = 0; i < 8; i++) {
        snprintf(ret_hex + (size_t)i * 8, 9, "%08" PRIx32, sha->state[i]);
    }
}
