/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of documents: Markdown, HTML (also within Markdown) and CSV, as rows of plain text. Any bytes are a document; what
   exceeds a limit is left out and counted. Pure. */
#pragma once

#include "base/str.h"

#define DOC_TABLES_MAX 256
#define DOC_ROWS_MAX   16384 /* of a table */
#define DOC_COLS_MAX   48
#define DOC_BEFORE_MAX 600 /* bytes */

enum doc_kind { DOC_MARKDOWN, DOC_HTML, DOC_CSV, DOC_KINDS };

struct doc_cell {
    struct str text; /* without markup, blanks trimmed */
    struct str link; /* the first one in it; ptr NULL: none */
};
struct doc_row {
    struct doc_cell *cells;
    size_t n;
};
struct doc_table {
    struct str heading;   /* the nearest heading above it, or empty */
    struct str outer;     /* the parent of that heading, or empty; never the title */
    struct str before;    /* the text above it, up to the heading or DOC_BEFORE_MAX */
    int64_t line;         /* of its first row, from 1 */
    struct doc_row *rows; /* the first is the header */
    size_t n_rows;
};
struct doc_tables {
    struct str title; /* the first heading, or empty */
    struct doc_table *items;
    size_t n;
    size_t n_left_out; /* tables, rows and cells over the limits */
};

void doc_tables_read(struct arena *arena, struct str text, enum doc_kind kind,
                     struct doc_tables *ret);
