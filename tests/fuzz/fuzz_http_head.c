/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a Content-Range, a header's value, and a URL to be shown: ranges make sense, and what is shown has no control
   bytes and nothing of the user info, the query or the fragment. */
#include "net/http.h"
#include "net/http_head.h"
#include "tests/fuzz/fuzz.h"

static void check_range(struct str value)
{
    struct content_range range;
    if (!content_range_parse(value, &range)) {
        return;
    }
    ASSERT(range.total_bytes >= -1);
    if (!range.has_range) {
        ASSERT(range.total_bytes >= 0);
        return;
    }
    ASSERT(range.first <= range.last);
    ASSERT(range.total_bytes < 0 || range.last < (uint64_t)range.total_bytes);
}

static void check_shown(struct arena *arena, const char *url)
{
    const char *shown = http_url_shown(arena, url);
    const char *host = strstr(shown, "://");
    /* libcurl writes a byte of a host that is no ASCII as three. */
    ASSERT(strlen(shown) <= 3 * strlen(url) + sizeof("(no URL)"));
    for (const char *c = shown; *c; c++) {
        ASSERT(*c >= ' ' || (*c & 0x80));
        ASSERT(*c != 0x7f && *c != '#');
    }
    if (!host) {
        ASSERT(strcmp(shown, "(no URL)") == 0);
        return;
    }
    /* An @ may be in the path, never before it. */
    ASSERT(memchr(host + 3, '@', strcspn(host + 3, "/\\")) == NULL);
}

FUZZ(arena, text)
{
    check_range(text);
    ASSERT(!header_value_is_plain(text) || text.len <= HTTP_VALUE_MAX);
    (void)content_encoding_changes(text);
    check_shown(arena, arena_strndup(arena, text.ptr, text.len));
}
