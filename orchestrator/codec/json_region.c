/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_region.h"

struct scan {
    struct str text;
    size_t at;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char peek(const struct scan *s)
{
    return s->at < s->text.len ? s->text.ptr[s->at] : '\0';
}

static void skip_blank(struct scan *s)
{
    while (s->at < s->text.len && is_blank(s->text.ptr[s->at])) {
        s->at++;
    }
}

/* At a quotation mark: what is between it and the next unescaped one. */
static struct str take_string(struct scan *s)
{
    size_t from = ++s->at;
    size_t end;
    while (s->at < s->text.len && s->text.ptr[s->at] != '"') {
        s->at += s->text.ptr[s->at] == '\\' ? 2 : 1;
    }
    s->at = s->at < s->text.len ? s->at : s->text.len;
    end = s->at;
    s->at += s->at < s->text.len;
    return str_sub(s->text, from, end - from);
}

/* A value: to its end, or to what ends its parent. */
static void skip_value(struct scan *s)
{
    size_t depth = 0;
    skip_blank(s);
    while (s->at < s->text.len) {
        char c = peek(s);
        if (c == '"') {
            (void)take_string(s);
        } else if (c == '{' || c == '[') {
            depth++;
            s->at++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
            s->at++;
        } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            return;
        } else {
            s->at++;
            continue; /* a number, a word, a blank */
        }
        if (depth == 0) {
            return;
        }
    }
}

static bool next_item(struct scan *s)
{
    skip_blank(s);
    if (peek(s) != ',') {
        return false;
    }
    s->at++;
    skip_blank(s);
    return true;
}

/* At an object: moves to the key's value; false where it has none. */
static bool enter_key(struct scan *s, struct str key)
{
    bool more = peek(s) == '{';
    s->at += more;
    skip_blank(s);
    while (more && peek(s) == '"') {
        bool is_it = str_eq(take_string(s), key);
        skip_blank(s);
        s->at += peek(s) == ':';
        skip_blank(s);
        if (is_it) {
            return true;
        }
        skip_value(s);
        more = next_item(s);
    }
    return false;
}

static bool enter_index(struct scan *s, int64_t idx)
{
    bool more = peek(s) == '[';
    s->at += more;
    skip_blank(s);
    while (more && idx > 0 && s->at < s->text.len) {
        skip_value(s);
        more = next_item(s);
        idx--;
    }
    return more && idx == 0 && s->at < s->text.len && peek(s) != ']';
}

/* Cuts ".key" or "[N]" off the place. */
static bool enter_part(struct scan *s, struct str *place)
{
    struct err ignored = {0};
    int64_t idx = 0;
    size_t len = 1;
    bool is_index = place->ptr[0] == '[';
    while (len < place->len &&
           (is_index ? place->ptr[len] != ']' : place->ptr[len] != '.' && place->ptr[len] != '[')) {
        len++;
    }
    struct str name = str_sub(*place, 1, len - 1);
    *place = str_sub(*place, len + is_index, SIZE_MAX);
    if (!is_index) {
        return enter_key(s, name);
    }
    return str_to_i64(name, 0, INT32_MAX, &idx, &ignored) == 0 && enter_index(s, idx);
}

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

/* The end of the value that begins there; for an object or array, the end of its first line. */
static size_t end_of(struct scan s)
{
    char first = peek(&s);
    size_t from = s.at;
    skip_value(&s);
    if (first == '{' || first == '[') {
        const char *newline = memchr(s.text.ptr + from, '\n', s.at - from);
        return newline ? (size_t)(newline - s.text.ptr) : s.at;
    }
    while (s.at > from && is_blank(s.text.ptr[s.at - 1])) {
        s.at--;
    }
    return s.at;
}

struct json_region json_region_of(struct str text, struct str place)
{
    struct scan s = {text, 0};
    struct scan found;
    struct json_region ret = {1, 1, 1, 1};
    skip_blank(&s);
    place = str_sub(place, str_starts(place, STR_LIT("$")), SIZE_MAX);
    found = s;
    while (place.len > 0 && (place.ptr[0] == '.' || place.ptr[0] == '[') &&
           enter_part(&s, &place)) {
        found = s;
    }
    advance(text, 0, found.at, &ret.line, &ret.column);
    ret.end_line = ret.line;
    ret.end_column = ret.column;
    advance(text, found.at, end_of(found), &ret.end_line, &ret.end_column);
    return ret;
}
