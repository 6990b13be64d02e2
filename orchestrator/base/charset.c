/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/charset.h"

static bool is_in_set(char c, const char *set)
{
    for (; *set; set++) {
        bool is_range = set[1] == '-' && set[2];
        if (is_range ? c >= set[0] && c <= set[2] : c == set[0]) {
            return true;
        }
        set += is_range ? 2 : 0;
    }
    return false;
}

bool str_is_made_of(struct str s, const char *set)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        if (!is_in_set(s.ptr[idx], set)) {
            return false;
        }
    }
    return s.len > 0;
}

int word_at(struct str word, const char *words)
{
    for (int n = 0;; n++) {
        size_t len = strcspn(words, " ");
        if (len == word.len && memcmp(words, word.ptr, len) == 0) {
            return n;
        }
        if (!words[len]) {
            return -1;
        }
        words += len + 1;
    }
}

size_t ends_with_any(struct str text, const char *words)
{
    for (struct str rest = str_of(words), word; str_next(&rest, ' ', &word);) {
        if (str_ends(text, word)) {
            return word.len;
        }
    }
    return 0;
}
