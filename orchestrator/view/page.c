/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/page.h"
#include "view/page_parts.h"

#include <math.h>

#include "base/embed.h"

#define SHADE_MAX 45.0 /* percent: text on it keeps a contrast of 4.5 */

EMBED(page_css, "orchestrator/view/page.css");

void page_begin(struct page *page, struct str title)
{
    HTML(page->out,
         "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'\">\n<title>{} \xc2\xb7 reperf</title>\n",
         title);
    html_style(page->out, embedded_body(EMBEDDED(page_css)));
    HTML(page->out,
         "</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the results</a>\n"
         "<header><h1>{}</h1>\n",
         title);
}

void page_end(struct page *page)
{
    strbuf_add_z(
        page->out,
        "</main>\n<footer><p>Made by reperf " REPERF_VERSION
        ". This page is self-contained and requests nothing from the network.</p></footer>\n"
        "</body>\n</html>\n");
    arena_release(&page->arena);
    VEC_RELEASE(&page->css);
}

void page_section(struct page *page, const char *id, struct str title)
{
    bool is_part = page->prefix.len > 0;
    struct str full = is_part ? text_of(page, "%.*s-%s", STR_ARG(page->prefix), id) : str_of(id);
    HTML(page->out, "<section class=\"card\" id=\"{}\">", full);
    HTML(page->out, is_part ? "<h3>{}</h3>\n" : "<h2 class=\"first\">{}</h2>\n", title);
    if (page->nav) {
        HTML(page->nav, "<li><a href=\"#{}\">{}</a></li>", full, title);
    }
}

void page_section_end(struct page *page)
{
    strbuf_add_z(page->out, "</section>\n");
}

/* ---- tables ---- */

static void add_class(struct page *page, const char *css)
{
    if (css && *css) {
        strbuf_printf(page->out, " class=\"%s\"", css);
    }
}

void page_column(struct page *page, struct str head, const char *css)
{
    VEC_PUSH(&page->css, css);
    strbuf_add_z(page->out, "<th scope=\"col\"");
    add_class(page, css);
    HTML(page->out, ">{}</th>", head);
}

void page_table(struct page *page, struct str caption, const char *heads)
{
    struct str rest = str_of(heads), head;
    page->css.n = 0;
    page->is_head_open = true;
    HTML(page->out,
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>"
         "<caption>{}</caption><thead><tr>",
         caption, caption);
    while (str_next(&rest, '|', &head)) {
        int64_t colon = str_find(head, STR_LIT(":"));
        page_column(page, str_sub(head, (size_t)(colon + 1), SIZE_MAX),
                    colon < 0 ? NULL : str_z(&page->arena, str_sub(head, 0, (size_t)colon)));
    }
}

/* Or the head, before the first. */
static void close_row(struct page *page)
{
    strbuf_add_z(page->out, page->is_head_open ? "</tr></thead>\n<tbody>\n" : "");
    page->is_head_open = false;
    if (page->is_row_open) {
        ASSERT(page->column == page->css.n);
        strbuf_add_z(page->out, page->css.n == 1 ? "</th></tr>\n" : "</td></tr>\n");
    }
    page->is_row_open = false;
}

void page_row(struct page *page, const char *css, struct str id)
{
    close_row(page);
    page->is_row_open = true;
    page->column = 0;
    strbuf_add_z(page->out, "<tr");
    add_class(page, css);
    if (id.len) {
        HTML(page->out, " data-cell=\"{}\"", id);
    }
    strbuf_add_char(page->out, '>');
}

void page_cell(struct page *page, struct str text)
{
    size_t column = page->column++;
    ASSERT(page->is_row_open);
    ASSERT(column < page->css.n);
    strbuf_add_z(page->out, column == 0   ? "<th scope=\"row\""
                            : column == 1 ? "</th><td"
                                          : "</td><td");
    add_class(page, page->css.items[column]);
    HTML(page->out, ">{}", text);
}

void page_shaded(struct page *page, double share, struct str text)
{
    ASSERT(page->column > 0);
    strbuf_add_z(page->out, page->column++ == 1 ? "</th>" : "</td>");
    HTML(page->out, "<td style=\"--p:{}%\">{}",
         text_of(page, "%.0f", SHADE_MAX * fmin(fmax(share, 0), 1)), text);
}

void page_cells(struct page *page, const struct str *texts, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        page_cell(page, texts[idx]);
    }
}

void page_table_end(struct page *page)
{
    close_row(page);
    strbuf_add_z(page->out, "</tbody></table></div>\n");
}

/* ---- texts ---- */

void page_note(struct page *page, struct str text)
{
    if (text.len) {
        HTML(page->out, "<small>{}</small>", text);
    }
}

void page_soft(struct page *page, struct str text)
{
    if (text.len) {
        HTML(page->out, "<p class=\"soft\">{}</p>\n", text);
    }
}

void page_case_id(struct page *page, struct str id)
{
    strbuf_add_z(page->out, "<code>");
    for (size_t at = 0, from = 0; at < id.len; at++) {
        if (id.ptr[at] == '/' || at + 1 == id.len) {
            html_text(page->out, str_sub(id, from, at + 1 - from));
            strbuf_add_z(page->out, at + 1 < id.len ? "<wbr>" : "");
            from = at + 1;
        }
    }
    strbuf_add_z(page->out, "</code>");
}

void page_link(struct page *page, struct str url, struct str text)
{
    if (url.len) {
        HTML(page->out, "<a href=\"{}\" rel=\"noreferrer\"><code>{}</code></a>", url, text);
    } else {
        HTML(page->out, "<code>{}</code>", text);
    }
}

void page_verdict(struct page *page, const char *css, const char *icon, const char *word)
{
    strbuf_printf(page->out, "<span class=\"v %s\"><i aria-hidden=\"true\">%s</i> %s</span>", css,
                  icon, word);
}

struct str percent_text(struct page *page, double share)
{
    double percent = share * 100;
    if (!isfinite(percent)) {
        return STR_EMPTY;
    }
    return fabs(percent) < 0.005 ? STR_LIT("0.00\xc2\xa0%")
                                 : text_of(page, "%s%.2f\xc2\xa0%%",
                                           percent < 0 ? "\xe2\x88\x92" : "+", fabs(percent));
}

struct str fixed_text(struct page *page, double value, int decimals)
{
    return isfinite(value) ? text_of(page, "%.*f", decimals, value) : STR_EMPTY;
}

struct str number_text(struct page *page, double value)
{
    return isfinite(value) ? text_of(page, "%.6g", value) : STR_EMPTY;
}

struct str count_text(struct page *page, size_t n)
{
    return text_of(page, "%zu", n);
}

struct str gpus_text(struct page *page, int64_t n)
{
    return text_of(page, "%" PRId64 " GPU%s", n, n == 1 ? "" : "s");
}
