/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "view/html.h"

TEST(outside_text_is_escaped)
{
    const struct {
        struct str text;
        const char *want;
    } CASES[] = {
        {STR_LIT("<script>a&b</script>"), "&lt;script&gt;a&amp;b&lt;/script&gt;"},
        {STR_LIT("\" onload='x'"), "&quot; onload=&#39;x&#39;"},
        {STR_LIT("a\tb\nc"), "a\tb\nc"},
        {STR_LIT("\x1b[0m\r"), "\xef\xbf\xbd[0m\xef\xbf\xbd"},
        {{"a\0b", 3}, "a\xef\xbf\xbd\x62"},
        {STR_LIT("\xc3\xa9 \xe5\x8d\xa1 \xf0\x9f\x98\x80"),
         "\xc3\xa9 \xe5\x8d\xa1 \xf0\x9f\x98\x80"},
        {STR_LIT("\xff"), "\xef\xbf\xbd"},
        {STR_LIT("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {STR_LIT("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
        {STR_LIT("\xef\xbf\xbf"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* U+FFFF: not in XML */
        {STR_LIT("\xf4\x90\x80\x80"),
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* over U+10FFFF */
        {STR_LIT("\xe5\x8d"), "\xef\xbf\xbd\xef\xbf\xbd"},    /* cut */
        {STR_EMPTY, ""},
    };
    for (EACH(row, CASES)) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(1024);
        html_text(&out, row->text);
        assert_string_equal(out.ptr, row->want);
    }
}

TEST(holes_are_filled_in_order_and_escaped)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1024);
    HTML(&out, "<td title=\"{}\">{}</td>", STR_LIT("\"{}"), STR_LIT("<b>"));
    assert_string_equal(out.ptr, "<td title=\"&quot;{}\">&lt;b&gt;</td>");
}
