/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as plain text: columns as wide as their widest cell, numbers to the right. Control characters in a cell become "?",
   so that outside text cannot drive the terminal. Owns copies of its cells; single thread. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/strbuf.h"

#define TABLE_COLUMNS_MAX 24

struct table_column {
    const char *head;
    bool is_right;
};

struct table {
    const struct table_column *columns; /* borrowed */
    size_t n_columns;
    struct arena arena;
    struct str *cells; /* row after row */
    size_t n_cells;
    size_t n_max;
};

#define TABLE(of) ((struct table){.columns = (of), .n_columns = ARRAY_LEN(of)})
void table_init(struct table *table, const struct table_column *columns, size_t n_columns);
void table_release(struct table *table);
CLEANUP_BY(table, struct table, table_release);

/* Cells are added row by row, left to right. */
void table_add(struct table *table, struct str text);
void table_addf(struct table *table, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A dash where it is not known, or the text is empty. */
void table_addf_if(struct table *table, bool is_known, const char *fmt, ...) PRINTF_LIKE(3, 4);
void table_add_or_dash(struct table *table, struct str text);
/* All digits; nothing where it is not finite. */
void table_add_f64(struct table *table, double value);

/* Header, rule of dashes, rows; whole rows only. Columns are separated by two blanks; no blanks at the end of a
   line. Where that is wider than columns_max, what is the same in every row is said once above the table, text is folded at blanks, and
   the columns that still do not fit stand below their row, each with its heading. */
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
/* How many bytes of it stand in one line: to a blank, else to a mark between words, else as many as there is room for; with keeps_words
   only to a blank, so that a path or a digest stays whole. Colours take no room. */
size_t text_fit(struct str text, size_t columns_max, bool keeps_words);
/* Lines that are longer go on in the next, indented; a command ("$ ") is left whole. */
void text_wrap(struct str text, size_t columns_max, struct strbuf *out);

#endif
