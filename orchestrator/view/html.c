/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/html.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* U+FFFE and U+FFFF are well-formed UTF-8 that XML 1.0 does not allow. */
static bool is_noncharacter(struct str text)
{
    return str_starts(text, STR_LIT("\xef\xbf\xbe")) || str_starts(text, STR_LIT("\xef\xbf\xbf"));
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
    while (text.len) {
        size_t len = is_noncharacter(text) ? 0 : utf8_len(text);
        if (len == 1) {
            add_ascii(out, text.ptr[0]);
        } else if (len == 0) {
            strbuf_add_z(out, REPLACEMENT);
            len = 1;
        } else {
            strbuf_add(out, text.ptr, len);
        }
        text = str_sub(text, len, text.len);
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

void html_style(struct strbuf *out, struct str css)
{
    struct str line;
    strbuf_add_z(out, "<style>");
    while (str_next(&css, '\n', &line)) {
        strbuf_add_str(out, line);
    }
    strbuf_add_z(out, "</style>\n");
}
