/* SPDX-License-Identifier: Apache-2.0 */
/* What people read, written once and given as text, as Markdown, or as a self-contained HTML page: no script, no request to
   anywhere, readable without colour, on paper and on a phone. It is headings, lines, tables, folds and, in HTML, figures. Pure:
   equal data, equal bytes (no clock). All text from outside is escaped. */
#pragma once

#include "base/table.h"
#include "view/html.h"

enum page_form { PAGE_TEXT, PAGE_MARKDOWN, PAGE_HTML };

struct page {
    enum page_form form;
    bool is_colored; /* text: words of verdicts and levels */
    struct strbuf *out;
    struct arena arena;
    bool is_listing; /* the last line was an item */
};

/* A formatted text in the page's arena. */
#define text_of(page, ...) str_printf(&(page)->arena, __VA_ARGS__)

/* The frame of an HTML page; the headline is the result in a sentence. */
void page_begin(struct page *page, struct str title, struct str headline);
void page_end(struct page *page); /* in every form; releases it */

/* Level 2 has an id, for links on the page; in text it is bold. */
void page_heading(struct page *page, int level, struct str id, struct str text);
/* In Markdown and HTML one with an indent is an item of a list, one with more than ITEM_INDENT_MAX belongs to the item above it.
   url: where it leads, or empty. */
void page_line(struct page *page, size_t indent, struct str text, struct str url);
/* Several such lines; one without indent is the heading of those that follow it with one. Text gets them as they are. */
void page_lines(struct page *page, struct str lines);
/* The caption is for HTML. A cell below "verdict" is coloured. */
void page_table(struct page *page, struct str caption, const struct table *table);
/* What can be opened: a word that is coloured, and what it is about. In text and Markdown a heading. */
void page_fold(struct page *page, const char *word, struct str text, bool is_open);
void page_fold_end(struct page *page);
