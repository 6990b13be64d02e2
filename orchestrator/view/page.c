/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/page.h"

#include "base/embed.h"

#define PLAIN           "\033[0m"
#define BOLD            "\033[1m"
#define ITEM_INDENT_MAX 4

EMBED(page_css, "orchestrator/view/page.css");

static const struct look {
    const char *word, *color, *css; /* in a terminal; on a page */
} LOOKS[] = {
    {"exact", "\033[32m", "good"},  {"match", "\033[33m", "near"}, {"differs", "\033[31m", "bad"},
    {"no_log", "\033[90m", "none"}, {"error", "\033[31m", "bad"},  {"warning", "\033[33m", "doubt"},
    {"note", "", "none"},           {"reproduced", "", "good"},    {"faster", "", "near"},
    {"slower", "", "bad"},          {"failed", "", "bad"},         {"not_run", "", "doubt"},
    {"not_comparable", "", "none"}, {"outlier", "", "bad"},
};
#define N_VERDICTS 4 /* the first of them are painted in tables of text */

/* The look of a word, or of the first of several; NULL: none. */
static const struct look *look_of(struct str text)
{
    struct str word = str_sub(text, 0, str_cspan(text, 0, " ,"));
    return Z_NAMED(LOOKS, ARRAY_LEN(LOOKS), word, word);
}

/* ---- the frame ---- */

void page_begin(struct page *page, struct str title, struct str headline)
{
    if (page->form != PAGE_HTML) {
        return;
    }
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
         "<header><h1>{}</h1>\n<p class=\"headline\">{}</p></header>\n<main id=\"main\">\n",
         title, headline);
}

static void end_list(struct page *page)
{
    strbuf_add_z(page->out, page->is_listing && page->form == PAGE_HTML ? "</ul>\n" : "");
    page->is_listing = false;
}

void page_end(struct page *page)
{
    end_list(page);
    strbuf_add_z(page->out, page->form == PAGE_HTML
                                ? "</main>\n<footer><p>Made by reperf " REPERF_VERSION
                                  ". This page is self-contained and requests nothing from the "
                                  "network.</p></footer>\n</body>\n</html>\n"
                                : "");
    arena_release(&page->arena);
}

/* ---- lines ---- */

void page_heading(struct page *page, int level, struct str id, struct str text)
{
    end_list(page);
    if (page->form == PAGE_HTML) {
        strbuf_printf(page->out, "<h%d", level);
        if (id.len) {
            HTML(page->out, " id=\"{}\"", id);
        }
        HTML(page->out, ">{}", text);
        strbuf_printf(page->out, "</h%d>\n", level);
    } else if (page->form == PAGE_MARKDOWN) {
        strbuf_printf(page->out, "%s%.*s ", page->out->len ? "\n" : "", level, "####");
        markdown_text(page->out, text);
        strbuf_add_char(page->out, '\n');
    } else {
        bool is_bold = page->is_colored && level == 2;
        strbuf_printf(page->out, "%s%s%.*s%s\n", page->out->len ? "\n" : "", is_bold ? BOLD : "",
                      STR_ARG(text), is_bold ? PLAIN : "");
    }
}

static void add_html_line(struct page *page, size_t indent, struct str text, struct str url)
{
    if (!indent) {
        end_list(page);
    }
    strbuf_add_z(page->out, !indent ? "<p>" : page->is_listing ? "" : "<ul>\n");
    strbuf_add_z(page->out, !indent                     ? ""
                            : indent <= ITEM_INDENT_MAX ? "<li>"
                                                        : "<li class=\"sub\">");
    if (url.len) {
        HTML(page->out, "<a href=\"{}\" rel=\"noreferrer\">{}</a>", url, text);
    } else {
        html_text(page->out, text);
    }
    strbuf_add_z(page->out, indent ? "</li>\n" : "</p>\n");
    page->is_listing = indent;
}

static void add_markdown_line(struct page *page, size_t indent, struct str text, struct str url)
{
    strbuf_add_z(page->out, indent && page->is_listing ? "" : "\n");
    strbuf_add_z(page->out, !indent ? "" : indent <= ITEM_INDENT_MAX ? "- " : "  - ");
    strbuf_add_z(page->out, url.len ? "[" : "");
    markdown_text(page->out, text);
    strbuf_printf(page->out, url.len ? "](<%.*s>)\n" : "\n", STR_ARG(url));
    page->is_listing = indent;
}

void page_line(struct page *page, size_t indent, struct str text, struct str url)
{
    if (page->form == PAGE_HTML) {
        add_html_line(page, indent, text, url);
    } else if (page->form == PAGE_MARKDOWN) {
        add_markdown_line(page, indent, text, url);
    } else {
        strbuf_printf(page->out, "%*s", (int)indent, "");
        strbuf_add_plain(page->out, text);
        strbuf_add_char(page->out, '\n');
    }
}

void page_lines(struct page *page, struct str lines)
{
    struct str line;
    if (page->form == PAGE_TEXT) {
        strbuf_add_str(page->out, lines);
        return;
    }
    while (str_next(&lines, '\n', &line)) {
        size_t indent = str_span(line, 0, " ");
        if (line.len && !indent && str_starts(lines, STR_LIT("  "))) {
            page_heading(page, 3, STR_EMPTY, line);
        } else if (line.len) {
            page_line(page, indent, str_sub(line, indent, SIZE_MAX), STR_EMPTY);
        }
    }
}

/* ---- tables ---- */

/* A table's text, the words of verdicts between blanks in colour. */
static void add_painted(struct strbuf *out, struct str text)
{
    struct str line;
    while (str_next(&text, '\n', &line)) {
        const struct look *look = NULL;
        int64_t at = -1;
        for (size_t idx = 0; idx < N_VERDICTS && at < 0; idx++) {
            char padded[16];
            look = &LOOKS[idx];
            snprintf(padded, sizeof(padded), " %s ", look->word);
            at = str_find(line, str_of(padded));
        }
        size_t len = at < 0 ? 0 : strlen(look->word) + 2;
        size_t from = at < 0 ? line.len : (size_t)at;
        strbuf_add_str(out, str_sub(line, 0, from));
        if (at >= 0) {
            strbuf_printf(out, "%s%.*s" PLAIN, look->color, (int)len, line.ptr + from);
            strbuf_add_str(out, str_sub(line, from + len, SIZE_MAX));
        }
        strbuf_add_z(out, text.ptr ? "\n" : "");
    }
}

/* It may be broken behind its slashes. */
static void add_html_text(struct strbuf *out, struct str text)
{
    struct str part;
    while (str_next(&text, '/', &part)) {
        html_text(out, part);
        strbuf_add_z(out, text.ptr ? "/<wbr>" : "");
    }
}

/* Its column's heading goes with each cell: a phone shows a row as a list. */
static void add_html_cell(struct strbuf *out, const struct table_column *column, struct str text)
{
    const struct look *look = str_starts(column->head, STR_LIT("verdict")) ? look_of(text) : NULL;
    HTML(out, "<td data-h=\"{}\"", column->head);
    if (look || column->is_right) {
        strbuf_printf(out, " class=\"%s%s\"", look ? "v " : "n", look ? look->css : "");
    }
    strbuf_add_char(out, '>');
    add_html_text(out, text);
    strbuf_add_z(out, "</td>");
}

static void add_html_table(struct strbuf *out, struct str caption, const struct table *table)
{
    HTML(out,
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>"
         "<caption>{}</caption><thead><tr>",
         caption, caption);
    for (size_t idx = 0; idx < table->n_columns; idx++) {
        strbuf_printf(out, "<th scope=\"col\"%s>",
                      table->columns[idx].is_right ? " class=\"n\"" : "");
        HTML(out, "{}</th>", table->columns[idx].head);
    }
    strbuf_add_z(out, "</tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < table->n_cells; row += table->n_columns) {
        strbuf_add_z(out, "<tr><th scope=\"row\">");
        add_html_text(out, table->cells[row]);
        strbuf_add_z(out, "</th>");
        for (size_t idx = 1; idx < table->n_columns; idx++) {
            add_html_cell(out, &table->columns[idx], table->cells[row + idx]);
        }
        strbuf_add_z(out, "</tr>\n");
    }
    strbuf_add_z(out, "</tbody></table></div>\n");
}

void page_table(struct page *page, struct str caption, const struct table *table)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(page->out->cap_bytes);
    end_list(page);
    if (page->form == PAGE_HTML) {
        add_html_table(page->out, caption, table);
    } else if (page->form == PAGE_MARKDOWN) {
        strbuf_add_z(page->out, page->out->len ? "\n" : "");
        table_render_markdown(table, page->out);
    } else if (page->is_colored) {
        table_render(table, &text);
        add_painted(page->out, strbuf_str(&text));
    } else {
        table_render(table, page->out);
    }
}

/* ---- folds ---- */

void page_fold(struct page *page, const char *word, struct str text, bool is_open)
{
    const struct look *look = look_of(str_of(word));
    end_list(page);
    if (page->form == PAGE_HTML) {
        strbuf_printf(page->out, "<details%s><summary><span class=\"v %s\">%s</span> ",
                      is_open ? " open" : "", look ? look->css : "", word);
        HTML(page->out, "{}</summary>\n", text);
    } else if (page->form == PAGE_MARKDOWN) {
        page_heading(page, 3, STR_EMPTY, text_of(page, "%s %.*s", word, STR_ARG(text)));
    } else {
        const char *color = page->is_colored && look ? look->color : "";
        strbuf_printf(page->out, "%s%s%s %.*s\n", color, word, *color ? PLAIN : "", STR_ARG(text));
    }
}

void page_fold_end(struct page *page)
{
    end_list(page);
    strbuf_add_z(page->out, page->form == PAGE_HTML ? "</details>\n" : "");
}
