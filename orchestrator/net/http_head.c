/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/http_head.h"

static bool take_number(struct str text, int64_t *ret_value)
{
    return str_to_i64(text, 0, INT64_MAX, ret_value, ERR_IGNORED) == 0;
}

bool content_range_parse(struct str value, struct content_range *ret_range)
{
    struct content_range range = {.total_bytes = -1};
    struct str rest = str_trim(value);
    struct str span, first;
    int64_t from, to;
    if (rest.len < 6 || strncasecmp(rest.ptr, "bytes ", 6) != 0) {
        return false;
    }
    rest = str_trim(str_sub(rest, 6, rest.len));
    if (!str_next(&rest, '/', &span) || !rest.ptr) {
        return false;
    }
    if (!str_eq_z(rest, "*") && !take_number(rest, &range.total_bytes)) {
        return false;
    }
    if (str_eq_z(span, "*") && range.total_bytes >= 0) {
        *ret_range = range;
        return true;
    }
    if (!str_next(&span, '-', &first) || !span.ptr || !take_number(first, &from) ||
        !take_number(span, &to) || from > to ||
        (range.total_bytes >= 0 && to >= range.total_bytes)) {
        return false;
    }
    range.has_range = true;
    range.first = (uint64_t)from;
    range.last = (uint64_t)to;
    *ret_range = range;
    return true;
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
