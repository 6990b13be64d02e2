/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/literals.h"

#include <limits.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define FRAGMENT   4
#define BUCKETS    8
#define BLOCK      32 /* bytes a vector */
#define HEADS_LOG2 10

#define OFFSET_MAX 255

/* Bytes in a thousand of logs, roughly. Source: the published logs, each counted alike; read 2026-11-26. */
static uint32_t rarity_weight(unsigned char c)
{
    static const char COMMON[] = " 0e:ts12oarin.lcp3-46,d587/_9mu'hbg]fIy[vwLDN)=(<T|kFSM>P";
    const char *hit = c ? strchr(COMMON, c) : NULL;
    size_t rank = hit ? (size_t)(hit - COMMON) : sizeof(COMMON);
    return rank < 1    ? 138
           : rank < 9  ? 40
           : rank < 20 ? 22
           : rank < 32 ? 13
           : rank < 43 ? 5
           : hit       ? 3
                       : 1;
}

/* Words of many lines in many logs, however rare their letters are; the commonest first. Where a fragment is among them, or
   -1. */
static int64_t common_at(const char *fragment)
{
    static const char WORDS[] =
        " - INFO - [INFO]: |DLL 20|ips: | samples/sec| images/sec|time: | loss: |_loss: | total|"
        "memory: |batch |train |Train: |[TRAIN] | step: | iter: |Iteration: | Iter: [| epoch: [|"
        " Epoch: [|";
    const char *hit = memmem(WORDS, sizeof(WORDS) - 1, fragment, FRAGMENT);
    return hit ? hit - WORDS : -1;
}

static uint32_t rarity_common(struct str text, size_t *ret_offset)
{
    uint32_t least = UINT32_MAX;
    *ret_offset = 0;
    for (size_t at = 0; at + FRAGMENT <= text.len && at <= OFFSET_MAX; at++) {
        int64_t word = common_at(text.ptr + at);
        uint32_t product = word < 0 ? 1 : UINT32_MAX - (uint32_t)word;
        for (size_t idx = 0; word < 0 && idx < FRAGMENT; idx++) {
            product *= rarity_weight((unsigned char)text.ptr[at + idx]);
        }
        if (product < least) {
            least = product;
            *ret_offset = at;
        }
    }
    return least;
}

struct literals {
    const struct str *items; /* borrowed */
    size_t n;
    /* A literal is looked for by its rarest four bytes. Literals by these: index and one of the first with a hash, and of the
       next; 0: none. */
    uint8_t heads[1u << HEADS_LOG2];
    uint8_t next[LITERALS_MAX];
    uint32_t fragments[LITERALS_MAX];
    uint8_t offsets[LITERALS_MAX]; /* of the fragment in its literal */
    /* For the vector search: the fragments' bytes, by the nibbles that may occur there. Fragments that are similar share one of
       eight bits. Source: the "Teddy" search of Hyperscan (W. Langdale, X. Wang et al., NSDI 2019). */
    uint8_t low[FRAGMENT][16];
    uint8_t high[FRAGMENT][16];
    bool has_vectors;
};

static uint32_t fragment_at(const char *ptr)
{
    uint32_t bytes;
    memcpy(&bytes, ptr, sizeof(bytes));
    return bytes;
}

/* Multiplied by 2^32 over the golden ratio: the high bits depend on all four bytes. */
static size_t head_of(uint32_t fragment)
{
    return fragment * 0x9e3779b1u >> (32 - HEADS_LOG2);
}

/* Bytes in a thousand that have one of these nibbles below and one of those above. */
static double share_of(uint32_t (*weights)[16], uint32_t low, uint32_t high)
{
    uint32_t sum = 0;
    for (uint32_t uppers = high; uppers; uppers &= uppers - 1) {
        const uint32_t *row = weights[__builtin_ctz(uppers)];
        for (uint32_t lowers = low; lowers; lowers &= lowers - 1) {
            sum += row[__builtin_ctz(lowers)];
        }
    }
    return sum;
}

struct bucket { /* fragments that share a bit */
    uint32_t low[FRAGMENT], high[FRAGMENT];
    double hits; /* places that look like one of them */
};

static struct bucket with_fragment(const struct bucket *bucket, uint32_t (*weights)[16],
                                   const char *fragment)
{
    struct bucket more = *bucket;
    more.hits = 1;
    for (size_t at = 0; at < FRAGMENT; at++) {
        unsigned char byte = (unsigned char)fragment[at];
        more.low[at] |= 1u << (byte & 15);
        more.high[at] |= 1u << (byte >> 4);
        more.hits *= share_of(weights, more.low[at], more.high[at]);
    }
    return more;
}

/* Each literal into the bucket in which its fragment makes the fewest places look like a hit. */
static void prepare_vectors(struct literals *literals)
{
    struct bucket buckets[BUCKETS] = {0};
    uint32_t weights[16][16];
    for (unsigned c = 0; c <= UCHAR_MAX; c++) {
        weights[c >> 4][c & 15] = rarity_weight((unsigned char)c);
    }
    for (size_t idx = 0; idx < literals->n; idx++) {
        const char *fragment = literals->items[idx].ptr + literals->offsets[idx];
        struct bucket best = {.hits = 0};
        size_t chosen = BUCKETS;
        for (size_t at = 0; at < BUCKETS; at++) {
            struct bucket more = with_fragment(&buckets[at], weights, fragment);
            if (chosen == BUCKETS ||
                more.hits - buckets[at].hits < best.hits - buckets[chosen].hits) {
                chosen = at;
                best = more;
            }
        }
        buckets[chosen] = best;
    }
    for (size_t at = 0; at < FRAGMENT; at++) {
        for (size_t nibble = 0; nibble < 16; nibble++) {
            for (size_t idx = 0; idx < BUCKETS; idx++) {
                literals->low[at][nibble] |= (uint8_t)((buckets[idx].low[at] >> nibble & 1) << idx);
                literals->high[at][nibble] |=
                    (uint8_t)((buckets[idx].high[at] >> nibble & 1) << idx);
            }
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
    for (size_t idx = 0; idx < n; idx++) {
        size_t offset = 0;
        ASSERT(items[idx].len >= LITERAL_LEN_MIN);
        (void)rarity_common(items[idx], &offset);
        literals->offsets[idx] = (uint8_t)offset;
        literals->fragments[idx] = fragment_at(items[idx].ptr + offset);
        uint8_t *head = &literals->heads[head_of(literals->fragments[idx])];
        literals->next[idx] = *head;
        *head = (uint8_t)(idx + 1);
    }
    prepare_vectors(literals);
    return literals;
}

void literals_free(struct literals *literals)
{
    free(literals);
}

static uint64_t eight_at(const char *ptr)
{
    uint64_t bytes;
    memcpy(&bytes, ptr, sizeof(bytes));
    return bytes;
}

/* len is LITERAL_LEN_MIN or more: a short text is its first and its last bytes. */
static bool is_same(const char *a, const char *b, size_t len)
{
    if (len <= 8) {
        return fragment_at(a) == fragment_at(b) &&
               fragment_at(a + len - 4) == fragment_at(b + len - 4);
    }
    if (len <= 16) {
        return eight_at(a) == eight_at(b) && eight_at(a + len - 8) == eight_at(b + len - 8);
    }
    return memcmp(a, b, len) == 0;
}

/* The literals whose fragments are at text[place], which may hold one. */
static inline uint64_t found_at(const struct literals *literals, struct str text, size_t place)
{
    uint32_t fragment = fragment_at(text.ptr + place);
    uint64_t found = 0;
    for (size_t at = literals->heads[head_of(fragment)]; at > 0; at = literals->next[at - 1]) {
        const struct str *item = &literals->items[at - 1];
        size_t offset = literals->offsets[at - 1];
        if (literals->fragments[at - 1] == fragment && place >= offset &&
            text.len - (place - offset) >= item->len &&
            is_same(text.ptr + place - offset, item->ptr, item->len)) {
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

/* Searches whole blocks with vectors. *from: then where the search by bytes goes on. */
static __attribute__((target("avx2"))) size_t next_by_vectors(const struct literals *literals,
                                                              struct str text, size_t *from,
                                                              uint64_t live, uint64_t *ret_mask)
{
    size_t to = text.len > BLOCK + FRAGMENT ? text.len - BLOCK - FRAGMENT : 0;
    const __m256i low0 = table_of(literals->low[0]), high0 = table_of(literals->high[0]);
    const __m256i low1 = table_of(literals->low[1]), high1 = table_of(literals->high[1]);
    const __m256i low2 = table_of(literals->low[2]), high2 = table_of(literals->high[2]);
    const __m256i low3 = table_of(literals->low[3]), high3 = table_of(literals->high[3]);
    size_t at = *from;
    for (; at < to; at += BLOCK) {
        const char *ptr = text.ptr + at;
        __m256i may = _mm256_and_si256(
            _mm256_and_si256(may_be(ptr, low0, high0), may_be(ptr + 1, low1, high1)),
            _mm256_and_si256(may_be(ptr + 2, low2, high2), may_be(ptr + 3, low3, high3)));
        uint32_t hits =
            ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(may, _mm256_setzero_si256()));
        for (; hits; hits &= hits - 1) {
            size_t place = at + (size_t)__builtin_ctz(hits);
            *ret_mask = found_at(literals, text, place) & live;
            if (*ret_mask) {
                return place;
            }
        }
    }
    *from = at;
    return SIZE_MAX;
}
#endif

size_t literals_next(const struct literals *literals, struct str text, size_t from, uint64_t live,
                     uint64_t *ret_mask)
{
#if defined(__x86_64__)
    if (literals->has_vectors) {
        size_t hit = next_by_vectors(literals, text, &from, live, ret_mask);
        if (hit != SIZE_MAX) {
            return hit;
        }
    }
#endif
    for (; from + FRAGMENT <= text.len; from++) {
        *ret_mask = found_at(literals, text, from) & live;
        if (*ret_mask) {
            return from;
        }
    }
    return SIZE_MAX;
}
