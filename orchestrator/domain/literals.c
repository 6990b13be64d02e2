/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "domain/literals.h"

#define BIGRAMS    65536
#define WINDOW_MAX 16

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

size_t literals_next(const struct literals *literals, struct str text, size_t from,
                     uint64_t *ret_mask)
{
    size_t end = from + literals->window - 1; /* of the window: its last byte */
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
