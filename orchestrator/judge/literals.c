/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/literals.h"

#include <limits.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BIGRAMS     65536
#define WINDOW_MAX  16
#define FINGERPRINT 4  /* bytes */
#define BLOCK       32 /* bytes a vector */

struct bucket { /* literals whose window ends in this pair of bytes */
    uint16_t bigram;
    uint64_t mask;
};

struct literals {
    const struct str *items; /* borrowed */
    size_t n;
    size_t window; /* bytes of the shortest literal, at most WINDOW_MAX */
    struct bucket buckets[LITERALS_MAX];
    size_t n_buckets;
    uint8_t shift[BIGRAMS]; /* how far the window may move when it ends in this pair */
    /* For the vector search: three bytes of each literal at `offset`, by the nibbles that may occur there; literal i is bit
       i % 8. Source: the "Teddy" search of Hyperscan (W. Langdale, X. Wang et al., NSDI 2019). */
    size_t offset;
    uint8_t low[FINGERPRINT][16];
    uint8_t high[FINGERPRINT][16];
    bool has_vectors;
};

static uint16_t bigram_at(const char *ptr)
{
    uint16_t pair;
    memcpy(&pair, ptr, sizeof(pair));
    return pair;
}

static void add_bucket(struct literals *literals, uint16_t bigram, size_t idx)
{
    size_t at = 0;
    while (at < literals->n_buckets && literals->buckets[at].bigram != bigram) {
        at++;
    }
    if (at == literals->n_buckets) {
        literals->buckets[literals->n_buckets++] = (struct bucket){bigram, 0};
    }
    literals->buckets[at].mask |= UINT64_C(1) << idx;
}

/* How common a byte is in logs, roughly. */
static unsigned weight(char c)
{
    if (c == ' ') {
        return 16;
    }
    if ((c >= '0' && c <= '9') || strchr("aeinort", c)) {
        return 8;
    }
    return c >= 'a' && c <= 'z' ? 4 : 2;
}

/* The place in the window at which the literals' three bytes are rarest. */
static size_t best_offset(const struct literals *literals)
{
    size_t best = 0;
    unsigned least = UINT_MAX;
    for (size_t offset = 0; offset + FINGERPRINT <= literals->window; offset++) {
        unsigned all = 0;
        for (size_t idx = 0; idx < literals->n; idx++) {
            const char *ptr = literals->items[idx].ptr + offset;
            unsigned product = 1;
            for (size_t at = 0; at < FINGERPRINT; at++) {
                product *= weight(ptr[at]);
            }
            all += product;
        }
        if (all < least) {
            least = all;
            best = offset;
        }
    }
    return best;
}

static void prepare_vectors(struct literals *literals)
{
    literals->offset = best_offset(literals);
    for (size_t idx = 0; idx < literals->n; idx++) {
        for (size_t at = 0; at < FINGERPRINT; at++) {
            unsigned char byte = (unsigned char)literals->items[idx].ptr[literals->offset + at];
            literals->low[at][byte & 15] |= (uint8_t)(1u << idx % 8);
            literals->high[at][byte >> 4] |= (uint8_t)(1u << idx % 8);
        }
    }
#if defined(__x86_64__)
    literals->has_vectors = __builtin_cpu_supports("avx2");
#endif
}

struct literals *literals_new(const struct str *items, size_t n)
{
    struct literals *literals = xcalloc(1, sizeof(*literals));
    ASSERT(n >= 1 && n <= LITERALS_MAX);
    literals->items = items;
    literals->n = n;
    literals->window = WINDOW_MAX;
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(items[idx].len >= LITERAL_LEN_MIN);
        literals->window = items[idx].len < literals->window ? items[idx].len : literals->window;
    }
    memset(literals->shift, (int)(literals->window - 1), sizeof(literals->shift));
    for (size_t idx = 0; idx < n; idx++) {
        for (size_t end = 1; end < literals->window; end++) {
            uint8_t *shift = &literals->shift[bigram_at(items[idx].ptr + end - 1)];
            uint8_t most = (uint8_t)(literals->window - 1 - end);
            *shift = most < *shift ? most : *shift;
        }
        add_bucket(literals, bigram_at(items[idx].ptr + literals->window - 2), idx);
    }
    prepare_vectors(literals);
    return literals;
}

void literals_free(struct literals *literals)
{
    free(literals);
}

static uint64_t verify(const struct literals *literals, struct str text, size_t start,
                       uint16_t bigram)
{
    uint64_t found = 0;
    for (size_t at = 0; at < literals->n_buckets; at++) {
        if (literals->buckets[at].bigram != bigram) {
            continue;
        }
        for (uint64_t rest = literals->buckets[at].mask; rest; rest &= rest - 1) {
            const struct str *item = &literals->items[__builtin_ctzll(rest)];
            if (text.len - start >= item->len &&
                memcmp(text.ptr + start, item->ptr, item->len) == 0) {
                found |= rest & -rest;
            }
        }
        break;
    }
    return found;
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) __m256i table_of(const uint8_t *nibbles)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)nibbles));
}

/* First place in [from, to) where a literal may begin, or `to`, or a little past it: BLOCK places are looked at together.
   text is readable up to to + BLOCK + offset + FINGERPRINT. */
static __attribute__((target("avx2"))) size_t
next_candidate(const struct literals *literals, const char *text, size_t from, size_t to)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low[FINGERPRINT];
    __m256i high[FINGERPRINT];
    for (size_t at = 0; at < FINGERPRINT; at++) {
        low[at] = table_of(literals->low[at]);
        high[at] = table_of(literals->high[at]);
    }
    for (size_t place = from; place < to; place += BLOCK) {
        __m256i may = _mm256_set1_epi8(-1);
        for (size_t at = 0; at < FINGERPRINT; at++) {
            __m256i bytes =
                _mm256_loadu_si256((const __m256i *)(text + place + literals->offset + at));
            __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
            __m256i lower = _mm256_and_si256(bytes, nibble);
            may = _mm256_and_si256(may, _mm256_and_si256(_mm256_shuffle_epi8(low[at], lower),
                                                         _mm256_shuffle_epi8(high[at], upper)));
        }
        may = _mm256_cmpeq_epi8(may, _mm256_setzero_si256());
        uint32_t hits = ~(uint32_t)_mm256_movemask_epi8(may);
        if (hits) {
            return place + (size_t)__builtin_ctz(hits);
        }
    }
    return to;
}

/* Vectors as far as whole blocks go. *ret_from: where the search by bytes goes on. */
static size_t next_by_vectors(const struct literals *literals, struct str text, size_t from,
                              uint64_t *ret_mask, size_t *ret_from)
{
    size_t margin = BLOCK + literals->offset + FINGERPRINT + WINDOW_MAX;
    size_t to = text.len > margin ? text.len - margin : 0;
    size_t place = from;
    while (place < to) {
        place = next_candidate(literals, text.ptr, place, to);
        if (place >= to) {
            break;
        }
        uint16_t bigram = bigram_at(text.ptr + place + literals->window - 2);
        if (literals->shift[bigram] == 0) {
            *ret_mask = verify(literals, text, place, bigram);
            if (*ret_mask) {
                return place;
            }
        }
        place++;
    }
    *ret_from = place < to || from > to ? place : to;
    return SIZE_MAX;
}
#endif

size_t literals_next(const struct literals *literals, struct str text, size_t from,
                     uint64_t *ret_mask)
{
    size_t end; /* of the window: its last byte */
#if defined(__x86_64__)
    if (literals->has_vectors) {
        size_t hit = next_by_vectors(literals, text, from, ret_mask, &from);
        if (hit != SIZE_MAX) {
            return hit;
        }
    }
#endif
    end = from + literals->window - 1;
    while (end < text.len) {
        uint16_t bigram = bigram_at(text.ptr + end - 1);
        uint8_t shift = literals->shift[bigram];
        if (shift) {
            end += shift;
            continue;
        }
        *ret_mask = verify(literals, text, end - (literals->window - 1), bigram);
        if (*ret_mask) {
            return end - (literals->window - 1);
        }
        end++;
    }
    return SIZE_MAX;
}
