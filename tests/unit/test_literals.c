/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/rarity.h"
#include "log/literals.h"

/* Against memmem, over text made of few letters so that near misses abound: in one search each is seen as often as the text holds it. */
TEST(literals_are_all_found)
{
    const struct str items[] = {STR_LIT("abca"), STR_LIT("cabca"), STR_LIT("aaaa"), STR_LIT("bcbc"),
                                STR_LIT("bcabcab")};
    struct literals *literals = literals_new(items, ARRAY_LEN(items));
    char text[4000];
    uint64_t seed = 7;
    for (size_t idx = 0; idx < sizeof(text); idx++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text[idx] = (char)('a' + (seed >> 33) % 3);
    }
    for (size_t len = 0; len <= sizeof(text); len += len < 100 ? 1 : 97) {
        size_t seen[ARRAY_LEN(items)] = {0};
        uint64_t mask;
        for (size_t at = 0; (at = literals_next(literals, (struct str){text, len}, at, UINT64_MAX,
                                                &mask)) != SIZE_MAX;
             at++) {
            for (size_t idx = 0; idx < ARRAY_LEN(items); idx++) {
                seen[idx] += mask >> idx & 1;
            }
        }
        for (size_t idx = 0; idx < ARRAY_LEN(items); idx++) {
            size_t wanted = 0;
            for (size_t at = 0; at + items[idx].len <= len; at++) {
                wanted += memcmp(text + at, items[idx].ptr, items[idx].len) == 0;
            }
            assert_int_equal(seen[idx], wanted);
            assert_true(len < 3900 || wanted > 0);
        }
    }
    literals_free(literals);
}

/* Of what many lines hold, and of a rare text, the latter is worth looking for. */
TEST(rare_texts_are_told_from_common_ones)
{
    static const struct {
        const char *rare, *common;
    } PAIRS[] = {{"END epoch:", " images/sec"},     {"global_step: ", "INFO"},
                 {"Epoch: ", " images/s"},          {" images/s", "INFO"},
                 {":INFO: Epoch[", " samples/sec"}, {"SamplesPerSec=", " time "}};
    for (EACH(row, PAIRS)) {
        size_t offset;
        assert_true(rarity_common(str_of(row->rare), &offset) <
                    rarity_common(str_of(row->common), &offset));
    }
}

/* More than the vectors have bits for, each alone and with only some of them wanted. */
TEST(only_the_wanted_are_found)
{
    char texts[LITERALS_MAX][8];
    struct str items[LITERALS_MAX];
    struct literals *literals;
    for (size_t idx = 0; idx < LITERALS_MAX; idx++) {
        snprintf(texts[idx], sizeof(texts[idx]), "%c%c.%zu=", (int)('A' + idx % 26),
                 (int)('a' + idx / 26), idx);
        items[idx] = str_of(texts[idx]);
    }
    literals = literals_new(items, LITERALS_MAX);
    for (size_t idx = 0; idx < LITERALS_MAX; idx++) {
        for (size_t before = 0; before < 80; before += 13) {
            char line[200];
            uint64_t mask = 0;
            size_t len =
                (size_t)snprintf(line, sizeof(line), "%*s%s%70s", (int)before, "", texts[idx], "");
            struct str text = {line, len};
            size_t at = literals_next(literals, text, 0, UINT64_MAX, &mask);
            assert_true(at >= before && at < before + items[idx].len);
            assert_true(mask == UINT64_C(1) << idx);
            assert_true(literals_next(literals, text, at + 1, UINT64_MAX, &mask) == SIZE_MAX);
            assert_true(literals_next(literals, text, 0, ~(UINT64_C(1) << idx), &mask) == SIZE_MAX);
        }
    }
    literals_free(literals);
}
