/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as plain text: columns as wide as their widest cell, numbers to the right. Control characters in a cell become "?",
   so that outside text cannot drive the terminal. Owns copies of its cells; single thread. */
#pragma once

#include "base/strbuf.h"

#define TABLE_COLUMNS_MAX 24

struct table_column {
    struct str head; /* borrowed */
    bool is_right;
};

struct table {
    struct table_column columns[TABLE_COLUMNS_MAX];
    size_t n_columns;
    struct arena arena;
    struct str *cells; /* row after row */
    size_t n_cells;
    size_t n_max;
};

/* Its columns by their headings, parted by "|", with ">" before one whose cells go to the right: "case|>value|note". */
struct table table_of(const char *heads);
void table_add_column(struct table *table, struct str head, bool is_right);
void table_release(struct table *table);
CLEANUP_BY(table, struct table, table_release);

/* Cells are added row by row, left to right: TABLE_ADD(&table, name, str_of("none"), table_text(&table, "%zu", n)). */
void table_add(struct table *table, struct str text);
void table_addf(struct table *table, const char *fmt, ...) PRINTF_LIKE(2, 3);
void table_add_all(struct table *table, const struct str *cells, size_t n);
#define TABLE_ADD(table, ...)                                                                      \
    table_add_all(table, (const struct str[]){__VA_ARGS__},                                        \
                  sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

/* Texts for cells, in the table's arena; table_text_if is a dash where it is not known. */
struct str table_text(struct table *table, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct str table_text_if(struct table *table, bool is_known, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* All digits; nothing where it is not finite. */
struct str table_f64(struct table *table, double value);
/* A dash where it is empty. */
struct str table_or_dash(struct str text);

/* Header, rule of dashes, rows; whole rows only. Columns are separated by two blanks; no blanks at the end of a line. Where
   that is wider than columns_max, what is the same in every row is said once above the table, text is folded at blanks, and the
   columns that still do not fit stand below their row, each with its heading. */
void table_render_in(const struct table *table, size_t columns_max, struct strbuf *out);
/* As wide as the terminal that standard output is; in a file or pipe as wide as it is. */
void table_render(const struct table *table, struct strbuf *out);

/* RFC 4180: CRLF, quoted where needed; a cell that a spreadsheet would take for a formula gets a ' in front. */
void table_render_csv(const struct table *table, struct strbuf *out);
/* A table of GitHub's Markdown; and text with everything escaped that has a meaning in it. */
void table_render_markdown(const struct table *table, struct strbuf *out);
void markdown_text(struct strbuf *out, struct str text);

/* How many columns of a terminal UTF-8 text takes (1 a code point, 2 for East Asian wide ones). */
size_t text_columns(struct str text);
/* How many bytes of it stand in one line: to a blank, else to a mark between words, else as many as there is room for; with
   keeps_words only to a blank, so that a path or a digest stays whole. Colours take no room. */
size_t text_fit(struct str text, size_t columns_max, bool keeps_words);
/* Lines that are longer go on in the next, indented; a command ("$ ") is left whole. */
void text_wrap(struct str text, size_t columns_max, struct strbuf *out);
