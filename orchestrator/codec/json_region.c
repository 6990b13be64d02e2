/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_region.h"

#include "codec/json_override.h"

/* A code point has one byte that does not continue another. */
static void advance(struct str text, size_t from, size_t end, int64_t *line, int64_t *column)
{
    for (size_t idx = from; idx < end; idx++) {
        if (text.ptr[idx] == '\n') {
            ++*line;
            *column = 1;
        } else {
            *column += ((unsigned char)text.ptr[idx] & 0xc0) != 0x80;
        }
    }
}

/* The end of a value; of an object or array, the end of its first line. */
static size_t end_of(struct str text, struct json_span place)
{
    char first = place.from < text.len ? text.ptr[place.from] : '\0';
    const char *newline = first == '{' || first == '['
                              ? memchr(text.ptr + place.from, '\n', place.to - place.from)
                              : NULL;
    return newline ? (size_t)(newline - text.ptr) : place.to;
}

/* Cuts ".key" or "[N]" off the place. */
static bool next_part(struct str *place, struct json_path_part *part)
{
    struct err ignored = {0};
    size_t len = 1;
    bool is_index = place->ptr[0] == '[';
    while (len < place->len &&
           (is_index ? place->ptr[len] != ']' : place->ptr[len] != '.' && place->ptr[len] != '[')) {
        len++;
    }
    struct str name = str_sub(*place, 1, len - 1);
    *place = str_sub(*place, len + is_index, SIZE_MAX);
    *part = (struct json_path_part){.key = is_index ? STR_EMPTY : name};
    return !is_index || str_to_i64(name, 0, INT32_MAX, &part->idx, &ignored) == 0;
}

struct json_region json_region_of(struct str text, struct str place)
{
    struct json_span found = {.to = text.len};
    struct json_path_part part;
    struct json_region ret = {1, 1, 1, 1};
    while (found.from < text.len && strchr(" \t\r\n", text.ptr[found.from]) &&
           text.ptr[found.from]) {
        found.from++;
    }
    place = str_sub(place, str_starts(place, STR_LIT("$")), SIZE_MAX);
    while (place.len > 0 && (place.ptr[0] == '.' || place.ptr[0] == '[')) {
        struct json_span next = found;
        if (!next_part(&place, &part) || !json_place_step(text, &part, &next)) {
            break;
        }
        found = next;
    }
    advance(text, 0, found.from, &ret.line, &ret.column);
    ret.end_line = ret.line;
    ret.end_column = ret.column;
    advance(text, found.from, end_of(text, found), &ret.end_line, &ret.end_column);
    return ret;
}
