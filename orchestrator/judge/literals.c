/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/literals.h"

#include <limits.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BIGRAMS     65536
#define WINDOW_MAX  16
#define FINGERPRINT 4  /* bytes */
#define BLOCK       32 /* bytes a vector */
#define ENDS        0x80

struct literals {
    const struct str *items; /* borrowed */
    size_t n;
    size_t window;                  /* bytes of the shortest literal, at most WINDOW_MAX */
    uint64_t buckets[LITERALS_MAX]; /* literals whose window ends in the same pair of bytes */
    size_t n_buckets;
    /* For the vector search: four bytes of each literal at `offset`, by the nibbles that may occur there. Literals that are
       similar there share one of eight bits. Source: the "Teddy" search of Hyperscan (W. Langdale, X. Wang et al., NSDI
       2019). */
    size_t offset;
    uint8_t low[FINGERPRINT][16];
    uint8_t high[FINGERPRINT][16];
    bool has_vectors;
    /* How far the window may move when it ends in this pair; from ENDS on: the bucket. */
    uint8_t step[BIGRAMS];
};

static uint16_t bigram_at(const char *ptr)
{
    uint16_t pair;
    memcpy(&pair, ptr, sizeof(pair));
    return pair;
}

static void add_bucket(struct literals *literals, uint16_t bigram, size_t idx)
{
    uint8_t *step = &literals->step[bigram];
    if (*step < ENDS) {
        *step = (uint8_t)(ENDS + literals->n_buckets++);
        literals->buckets[*step - ENDS] = 0;
    }
    literals->buckets[*step - ENDS] |= UINT64_C(1) << idx;
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

/* The offset in the window at which the literals' three bytes are rarest. */
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

static int compare_there(const void *a, const void *b, void *literals)
{
    const struct literals *all = literals;
    const struct str *items = all->items;
    return memcmp(items[*(const uint8_t *)a].ptr + all->offset,
                  items[*(const uint8_t *)b].ptr + all->offset, FINGERPRINT);
}

static void prepare_vectors(struct literals *literals)
{
    uint8_t order[LITERALS_MAX];
    for (size_t idx = 0; idx < literals->n; idx++) {
        order[idx] = (uint8_t)idx;
    }
    literals->offset = best_offset(literals);
    qsort_r(order, literals->n, sizeof(*order), compare_there, literals);
    for (size_t rank = 0; rank < literals->n; rank++) {
        uint8_t bit = (uint8_t)(1u << rank * 8 / literals->n);
        for (size_t at = 0; at < FINGERPRINT; at++) {
            unsigned char byte =
                (unsigned char)literals->items[order[rank]].ptr[literals->offset + at];
            literals->low[at][byte & 15] |= bit;
            literals->high[at][byte >> 4] |= bit;
        }
    }
#if defined(__x86_64__)
    literals->has_vectors = __builtin_cpu_supports("avx2");
#endif
}

struct literals *literals_new(const struct str *items, size_t n)
{
    struct literals *literals = xmalloc(sizeof(*literals));
    ASSERT(n >= 1 && n <= LITERALS_MAX);
    memset(literals, 0, offsetof(struct literals, step));
    literals->items = items;
    literals->n = n;
    literals->window = WINDOW_MAX;
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(items[idx].len >= LITERAL_LEN_MIN);
        literals->window = items[idx].len < literals->window ? items[idx].len : literals->window;
    }
    memset(literals->step, (int)(literals->window - 1), sizeof(literals->step));
    for (size_t idx = 0; idx < n; idx++) {
        for (size_t end = 1; end + 1 < literals->window; end++) {
            uint8_t *step = &literals->step[bigram_at(items[idx].ptr + end - 1)];
            uint8_t most = (uint8_t)(literals->window - 1 - end);
            *step = most < *step ? most : *step;
        }
    }
    for (size_t idx = 0; idx < n; idx++) {
        add_bucket(literals, bigram_at(items[idx].ptr + literals->window - 2), idx);
    }
    prepare_vectors(literals);
    return literals;
}

void literals_free(struct literals *literals)
{
    free(literals);
}

static uint32_t first_bytes(const char *ptr)
{
    uint32_t bytes;
    memcpy(&bytes, ptr, sizeof(bytes));
    return bytes;
}

/* The literals that are found at `start`, among those whose window ends like the one there; the window must lie in the
   text. */
static uint64_t found_at(const struct literals *literals, struct str text, size_t start)
{
    uint8_t step = literals->step[bigram_at(text.ptr + start + literals->window - 2)];
    uint64_t found = 0;
    for (uint64_t rest = step < ENDS ? 0 : literals->buckets[step - ENDS]; rest; rest &= rest - 1) {
        const struct str *item = &literals->items[__builtin_ctzll(rest)];
        if (first_bytes(text.ptr + start) == first_bytes(item->ptr) &&
            text.len - start >= item->len && memcmp(text.ptr + start, item->ptr, item->len) == 0) {
            found |= rest & -rest;
        }
    }
    return found;
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) __m256i table_of(const uint8_t *nibbles)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)nibbles));
}

/* At which of BLOCK places a literal may begin. */
static inline __attribute__((target("avx2"))) uint32_t
candidates(const char *text, const __m256i *low, const __m256i *high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i may = _mm256_set1_epi8(-1);
    for (size_t at = 0; at < FINGERPRINT; at++) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(text + at));
        __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
        __m256i lower = _mm256_and_si256(bytes, nibble);
        may = _mm256_and_si256(may, _mm256_and_si256(_mm256_shuffle_epi8(low[at], lower),
                                                     _mm256_shuffle_epi8(high[at], upper)));
    }
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(may, _mm256_setzero_si256()));
}

/* Searches whole blocks with vectors. *ret_from: where the search by bytes goes on. */
static __attribute__((target("avx2"))) size_t next_by_vectors(const struct literals *literals,
                                                              struct str text, size_t from,
                                                              uint64_t *ret_mask, size_t *ret_from)
{
    size_t margin = BLOCK + literals->offset + FINGERPRINT + WINDOW_MAX;
    size_t to = text.len > margin ? text.len - margin : 0;
    __m256i low[FINGERPRINT];
    __m256i high[FINGERPRINT];
    for (size_t at = 0; at < FINGERPRINT; at++) {
        low[at] = table_of(literals->low[at]);
        high[at] = table_of(literals->high[at]);
    }
    for (*ret_from = from; *ret_from < to; *ret_from += BLOCK) {
        uint32_t hits = candidates(text.ptr + *ret_from + literals->offset, low, high);
        for (; hits; hits &= hits - 1) {
            size_t place = *ret_from + (size_t)__builtin_ctz(hits);
            *ret_mask = found_at(literals, text, place);
            if (*ret_mask) {
                return place;
            }
        }
    }
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
        uint8_t step = literals->step[bigram_at(text.ptr + end - 1)];
        if (step < ENDS) {
            end += step;
            continue;
        }
        *ret_mask = found_at(literals, text, end - (literals->window - 1));
        if (*ret_mask) {
            return end - (literals->window - 1);
        }
        end++;
    }
    return SIZE_MAX;
}
