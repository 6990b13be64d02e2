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
