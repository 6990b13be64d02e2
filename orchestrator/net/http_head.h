/* SPDX-License-Identifier: Apache-2.0 */
/* What net/http.c reads of single header values: pure, on outside data, fuzzed. */
#pragma once

#include "base/str.h"

struct content_range {
    bool has_range;       /* false: "bytes *" and a total, of a 416 */
    uint64_t first, last; /* inclusive */
    int64_t total_bytes;  /* -1: "*" */
};

/* Source: RFC 9110 section 14.4. False for anything else, first > last, or last outside the total. */
bool content_range_parse(struct str value, struct content_range *ret_range);

/* True if the coding changes the bytes: anything except empty or identity. */
bool content_encoding_changes(struct str value);

/* Printable ASCII of at most HTTP_VALUE_MAX bytes: what may be kept, sent back and shown. */
#define HTTP_VALUE_MAX 1024
bool header_value_is_plain(struct str value);
