/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/http_head.h"

#include "codec/pattern.h"

static bool take_number(struct str text, int64_t *ret_value)
{
    return str_to_i64(text, 0, INT64_MAX, ret_value, ERR_IGNORED) == 0;
}

bool content_range_parse(struct str value, struct content_range *ret_range)
{
    static const char FORM[] = "(?i)\\A\\s*bytes\\s+(?:(\\d+)-(\\d+)/(\\d+|\\*)|\\*/(\\d+))\\s*\\z";
    struct content_range range = {.total_bytes = -1};
    struct patterns patterns = {0};
    struct str parts[5] = {STR_EMPTY};
    int64_t from = 0, to = 0;
    bool is_good = patterns_find(&patterns, FORM, value, parts, ARRAY_LEN(parts));
    patterns_release(&patterns);
    struct str total = parts[1].ptr ? parts[3] : parts[4];
    is_good = is_good && (str_eq_z(total, "*") || take_number(total, &range.total_bytes));
    if (is_good && parts[1].ptr) {
        is_good = take_number(parts[1], &from) && take_number(parts[2], &to) && from <= to &&
                  (range.total_bytes < 0 || to < range.total_bytes);
        range.has_range = true;
        range.first = (uint64_t)from;
        range.last = (uint64_t)to;
    }
    *ret_range = is_good ? range : *ret_range;
    return is_good;
}

bool content_encoding_changes(struct str value)
{
    value = str_trim(value);
    return value.len > 0 && !(value.len == 8 && strncasecmp(value.ptr, "identity", 8) == 0);
}

bool header_value_is_plain(struct str value)
{
    return value.len == 0 || (value.len <= HTTP_VALUE_MAX && str_is_made_of(value, " -~"));
}
