/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/csv.h"

/* The length of a field that begins with a quote, both quotes counted; 0 where none closes it. */
static size_t quoted_len(struct str text)
{
    for (size_t at = 1; at < text.len; at++) {
        if (text.ptr[at] == '"' && (at + 1 == text.len || text.ptr[at + 1] != '"')) {
            return at + 1;
        }
        at += text.ptr[at] == '"'; /* a doubled one */
    }
    return 0;
}

static struct str unquoted(struct arena *arena, struct str quoted)
{
    char *copy = arena_strndup(arena, quoted.ptr, quoted.len);
    size_t len = 0;
    for (size_t at = 1; at + 1 < quoted.len; at++) {
        copy[len++] = quoted.ptr[at];
        at += quoted.ptr[at] == '"';
    }
    return (struct str){copy, len};
}

bool csv_row(struct csv *csv, struct arena *arena, struct str *fields, size_t max, size_t *ret_n)
{
    bool is_end = false;
    *ret_n = 0;
    if (csv->rest.len == 0) {
        return false;
    }
    while (!is_end) {
        struct str rest = csv->rest;
        size_t quoted = rest.len && rest.ptr[0] == '"' ? quoted_len(rest) : 0;
        size_t end = quoted;
        csv->is_open = csv->is_open || (rest.len && rest.ptr[0] == '"' && quoted == 0);
        while (end < rest.len && rest.ptr[end] != csv->delimiter && rest.ptr[end] != '\n') {
            end++;
        }
        if ((*ret_n)++ < max) {
            struct str field = str_trim(str_sub(rest, quoted, end - quoted));
            fields[*ret_n - 1] = quoted ? unquoted(arena, str_sub(rest, 0, quoted)) : field;
        }
        for (size_t at = 0; at < end; at++) {
            csv->line += rest.ptr[at] == '\n';
        }
        is_end = end == rest.len || rest.ptr[end] == '\n';
        csv->line += end < rest.len && is_end;
        csv->rest = str_sub(rest, end + 1, rest.len);
    }
    return true;
}
