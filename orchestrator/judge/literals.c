/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/literals.h"

#include <limits.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WINDOW_MAX  16
#define FINGERPRINT 4  /* bytes */
#define BLOCK       32 /* bytes a vector */
#define HEADS_LOG2  10

struct literals {
    const struct str *items; /* borrowed */
    size_t n;
    size_t window; /* bytes of the shortest literal, at most WINDOW_MAX */
    /* Literals by their bytes at `offset`: index and one of the first with a hash, and of the next; 0: none. */
    uint8_t heads[1u << HEADS_LOG2];
    uint8_t next[LITERALS_MAX];
    uint32_t prints[LITERALS_MAX];
    /* For the vector search: four bytes of each literal at `offset`, by the nibbles that may occur there. Literals that are
       similar there share one of eight bits. Source: the "Teddy" search of Hyperscan (W. Langdale, X. Wang et al., NSDI
       2019). */
    size_t offset;
    uint8_t low[FINGERPRINT][16];
    uint8_t high[FINGERPRINT][16];
    bool has_vectors;
};

static uint32_t print_at(const char *ptr)
{
    uint32_t bytes;
    memcpy(&bytes, ptr, sizeof(bytes));
    return bytes;
}

/* Multiplied by 2^32 over the golden ratio: the high bits depend on all four bytes. */
static size_t head_of(uint32_t print)
{
    return print * 0x9e3779b1u >> (32 - HEADS_LOG2);
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
    struct literals *literals = xcalloc(1, sizeof(*literals));
    ASSERT(n >= 1 && n <= LITERALS_MAX);
    literals->items = items;
    literals->n = n;
    literals->window = WINDOW_MAX;
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(items[idx].len >= LITERAL_LEN_MIN);
        literals->window = items[idx].len < literals->window ? items[idx].len : literals->window;
    }
    prepare_vectors(literals);
    for (size_t idx = 0; idx < n; idx++) {
        uint32_t print = print_at(items[idx].ptr + literals->offset);
        uint8_t *head = &literals->heads[head_of(print)];
        literals->prints[idx] = print;
        literals->next[idx] = *head;
        *head = (uint8_t)(idx + 1);
    }
    return literals;
}

void literals_free(struct literals *literals)
{
    free(literals);
}

/* The literals at `start`, from which a window has to lie in the text. */
static uint64_t found_at(const struct literals *literals, struct str text, size_t start)
{
    uint32_t print = print_at(text.ptr + start + literals->offset);
    uint64_t found = 0;
    for (size_t at = literals->heads[head_of(print)]; at > 0; at = literals->next[at - 1]) {
        const struct str *item = &literals->items[at - 1];
        if (literals->prints[at - 1] == print && text.len - start >= item->len &&
            memcmp(text.ptr + start, item->ptr, item->len) == 0) {
            found |= UINT64_C(1) << (at - 1);
        }
    }
    return found;
}

#if defined(__x86_64__)
static __attribute__((target("avx2"))) __m256i table_of(const uint8_t *nibbles)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)nibbles));
}

/* Which literals may have their byte number `at` in each of BLOCK places. */
static inline __attribute__((target("avx2"), always_inline)) __m256i
may_be(const char *text, __m256i low, __m256i high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i bytes = _mm256_loadu_si256((const __m256i *)text);
    __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
    __m256i lower = _mm256_and_si256(bytes, nibble);
    return _mm256_and_si256(_mm256_shuffle_epi8(low, lower), _mm256_shuffle_epi8(high, upper));
}

/* Searches whole blocks with vectors. *ret_from: where the search by bytes goes on. */
static __attribute__((target("avx2"))) size_t next_by_vectors(const struct literals *literals,
                                                              struct str text, size_t from,
                                                              uint64_t *ret_mask, size_t *ret_from)
{
    size_t margin = BLOCK + literals->offset + FINGERPRINT + WINDOW_MAX;
    size_t to = text.len > margin ? text.len - margin : 0;
    const __m256i low0 = table_of(literals->low[0]), high0 = table_of(literals->high[0]);
    const __m256i low1 = table_of(literals->low[1]), high1 = table_of(literals->high[1]);
    const __m256i low2 = table_of(literals->low[2]), high2 = table_of(literals->high[2]);
    const __m256i low3 = table_of(literals->low[3]), high3 = table_of(literals->high[3]);
    for (*ret_from = from; *ret_from < to; *ret_from += BLOCK) {
        const char *ptr = text.ptr + *ret_from + literals->offset;
        __m256i may = _mm256_and_si256(
            _mm256_and_si256(may_be(ptr, low0, high0), may_be(ptr + 1, low1, high1)),
            _mm256_and_si256(may_be(ptr + 2, low2, high2), may_be(ptr + 3, low3, high3)));
        uint32_t hits =
            ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(may, _mm256_setzero_si256()));
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
#if defined(__x86_64__)
    if (literals->has_vectors) {
        size_t hit = next_by_vectors(literals, text, from, ret_mask, &from);
        if (hit != SIZE_MAX) {
            return hit;
        }
    }
#endif
    for (; from + literals->window <= text.len; from++) {
        *ret_mask = found_at(literals, text, from);
        if (*ret_mask) {
            return from;
        }
    }
    return SIZE_MAX;
}
