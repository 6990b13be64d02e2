/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>

#include "view/chart.h"
#include "view/html.h"

static size_t count(const struct strbuf *buf, const char *what)
{
    size_t n = 0;
    for (const char *at = buf->ptr; (at = strstr(at, what)); at++) {
        n++;
    }
    return n;
}

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

TEST(spark_shades_what_is_left_out)
{
    const double values[] = {1, 100, 101, 102, 5000};
    const bool is_used[] = {false, true, true, true, false};
    struct spark spark = {
        .title = STR_LIT("s"), .values = values, .is_used = is_used, .n = 5, .level = 101};
    CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 16);
    double low;
    double high;
    chart_spark(&out, &spark, &low, &high);
    assert_int_equal(count(&out, "class=\"out\""), 2);
    assert_int_equal(count(&out, "class=\"level\""), 1);
    /* What is left out does not stretch the scale. */
    assert_true(low > 95 && low < 100);
    assert_true(high > 102 && high < 107);
}

TEST(a_long_series_keeps_its_extremes)
{
    enum { N = 100000 };
    double *values = xcalloc(N, sizeof(*values));
    struct spark spark = {.title = STR_LIT("s"), .values = values, .n = N, .level = NAN};
    CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 20);
    double low;
    double high;
    for (size_t idx = 0; idx < N; idx++) {
        values[idx] = 10;
    }
    values[N / 2 + 1] = 20; /* one outlier among 100000 */
    chart_spark(&out, &spark, &low, &high);
    assert_true(out.len < 32768);
    assert_true(high > 20);
    double y = 72 - 2 - (20 - low) / (high - low) * 68;
    char top[16];
    snprintf(top, sizeof(top), " %.1fL", y);
    assert_true(count(&out, top) == 1);
    free(values);
}

TEST(flat_and_empty_series_have_a_scale)
{
    const double flat[] = {7, 7};
    const double none[] = {NAN, NAN};
    struct spark spark = {.title = STR_LIT("s"), .values = flat, .n = 2, .level = NAN};
    CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 16);
    double low;
    double high;
    chart_spark(&out, &spark, &low, &high);
    assert_true(low < 7 && high > 7);
    spark.values = none;
    chart_spark(&out, &spark, &low, &high);
    assert_true(low < high);
    assert_int_equal(count(&out, "nan"), 0);
}
