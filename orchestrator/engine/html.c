/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "engine/html.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the well-formed UTF-8 sequence at text[at], or 0. Source: Unicode table 3-7. */
static size_t utf8_len(struct str text, size_t at)
{
    const unsigned char *p = (const unsigned char *)text.ptr + at;
    size_t left = text.len - at;
    if (p[0] < 0x80) {
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        return left >= 2 && is_tail(p[1]) ? 2 : 0;
    }
    if ((p[0] & 0xf0) == 0xe0) {
        bool is_good = left >= 3 && is_tail(p[1]) && is_tail(p[2]) &&
                       !(p[0] == 0xe0 && p[1] < 0xa0) && !(p[0] == 0xed && p[1] > 0x9f) &&
                       !(p[0] == 0xef && p[1] == 0xbf && p[2] >= 0xbe);
        return is_good ? 3 : 0;
    }
    if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        bool is_good = left >= 4 && is_tail(p[1]) && is_tail(p[2]) && is_tail(p[3]) &&
                       !(p[0] == 0xf0 && p[1] < 0x90) && !(p[0] == 0xf4 && p[1] > 0x8f);
        return is_good ? 4 : 0;
    }
    return 0;
}

static void add_ascii(struct strbuf *out, char c)
{
    switch (c) {
    case '&':
        strbuf_add_z(out, "&amp;");
        break;
    case '<':
        strbuf_add_z(out, "&lt;");
        break;
    case '>':
        strbuf_add_z(out, "&gt;");
        break;
    case '"':
        strbuf_add_z(out, "&quot;");
        break;
    case '\'':
        strbuf_add_z(out, "&#39;");
        break;
    case '\t':
    case '\n':
        strbuf_add_char(out, c);
        break;
    default:
        if ((unsigned char)c < 0x20 || c == 0x7f) {
            strbuf_add_z(out, REPLACEMENT);
        } else {
            strbuf_add_char(out, c);
        }
    }
}

void html_text(struct strbuf *out, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        size_t len = utf8_len(text, at);
        if (len == 1) {
            add_ascii(out, text.ptr[at]);
        } else if (len == 0) {
            strbuf_add_z(out, REPLACEMENT);
            len = 1;
        } else {
            strbuf_add(out, text.ptr + at, len);
        }
        at += len;
    }
}

void html_fill(struct strbuf *out, const char *markup, const struct str *args, size_t n_args)
{
    size_t n_used = 0;
    const char *hole;
    while ((hole = strstr(markup, "{}"))) {
        ASSERT(n_used < n_args);
        strbuf_add(out, markup, (size_t)(hole - markup));
        html_text(out, args[n_used++]);
        markup = hole + 2;
    }
    ASSERT(n_used == n_args);
    strbuf_add_z(out, markup);
}

struct str textf(struct arena *arena, const char *fmt, ...)
{
    char small[512];
    va_list args;
    int len;
    va_start(args, fmt);
    len = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    ASSERT(len >= 0);
    if ((size_t)len < sizeof(small)) {
        return str_of(arena_strndup(arena, small, (size_t)len));
    }
    char *big = arena_alloc(arena, (size_t)len + 1, 1);
    va_start(args, fmt);
    vsnprintf(big, (size_t)len + 1, fmt, args);
    va_end(args);
    return (struct str){big, (size_t)len};
}
