/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of doc_table.c (Markdown, HTML, CSV) and doc_table_rst.c (reStructuredText, notebooks). */
#ifndef DRAFT_DOC_TABLE_IMPL_H
#define DRAFT_DOC_TABLE_IMPL_H

#include "codec/pattern.h"
#include "draft/doc_table.h"

#define DOC_LEVELS 6

struct doc_reader {
    struct arena *arena;
    struct str text;
    struct doc_tables *out;
    struct patterns patterns; /* owned */
    struct str heading;
    struct str levels[DOC_LEVELS + 1]; /* the headings that enclose it, by level */
    int level;                         /* of heading */
    size_t heading_end;
    size_t counted; /* lines are counted up to here */
    int64_t line;
};

/* Without markup. */
struct doc_cell doc_clean_cell(struct arena *arena, struct str text);
/* The line that begins at `at`, without its end. */
struct str doc_line_at(struct str text, size_t at);
/* NULL if there are too many. */
struct doc_table *doc_new_table(struct doc_reader *r, size_t at);
void doc_add_row(struct doc_reader *r, struct doc_table *table, const struct doc_cell *cells,
                 size_t n);

void doc_read_rst(struct doc_reader *r);
/* The strings of a notebook's JSON, one per line: its Markdown and the HTML of its outputs. */
struct str doc_notebook_text(struct arena *arena, struct str json);

#endif
