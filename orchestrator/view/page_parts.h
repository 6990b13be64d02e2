/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page, for page*.c only. A page is sections; a section has a heading, texts, tables and charts. */
#ifndef VIEW_PAGE_PARTS_H
#define VIEW_PAGE_PARTS_H

#include "base/vec.h"
#include "view/address.h"
#include "view/audit_out.h"
#include "view/chart.h"
#include "view/page.h"

struct page {
    struct strbuf *out;
    struct arena arena;
    struct strbuf *nav; /* a link to each section; NULL: to none */
    struct str prefix;  /* of the ids of its sections: the report's; empty: of the whole page */
    /* Of the table that is open. */
    VEC(const char *) css; /* of each column */
    size_t column;         /* that comes next */
    bool is_head_open, is_row_open;
    size_t n_charts; /* for ids */
};

/* A formatted text in the page's arena. */
#define text_of(page, ...) str_printf(&(page)->arena, __VA_ARGS__)

/* page.c */
void page_begin(struct page *page, struct str title);
void page_end(struct page *page); /* releases it */
void page_section(struct page *page, const char *id, struct str title);
void page_section_end(struct page *page);
/* A table is its caption and columns, then rows, each of as many cells as there are columns; the first heads the row. What is
   written to `out` after a cell goes on in it. heads: parted by "|", each behind the classes of its cells ("n": numbers, "desk": not on a
   phone, ...): "Framework|n desk:GPUs"; page_column adds one. css: classes of the row; id: of the cell that it shows, or empty. */
void page_table(struct page *page, struct str caption, const char *heads);
void page_column(struct page *page, struct str head, const char *css);
void page_row(struct page *page, const char *css, struct str id);
void page_cell(struct page *page, struct str text);
/* Not the first of its row; its colour adds nothing that the text does not say. share: of the full shade. */
void page_shaded(struct page *page, double share, struct str text);
void page_cells(struct page *page, const struct str *texts, size_t n);
#define PAGE_CELLS(page, ...)                                                                      \
    page_cells(page, (const struct str[]){__VA_ARGS__},                                            \
               sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))
void page_table_end(struct page *page);
void page_note(struct page *page, struct str text);  /* a small line below; empty: none */
void page_case_id(struct page *page, struct str id); /* breaks at its slashes */
void page_soft(struct page *page, struct str text);  /* a paragraph; empty: none */
void page_link(struct page *page, struct str url, struct str text); /* url empty: the text alone */
void page_verdict(struct page *page, const char *css, const char *icon, const char *word);
/* All empty for NAN. */
struct str percent_text(struct page *page, double share); /* "+1.25 %" */
struct str fixed_text(struct page *page, double value, int decimals);
struct str number_text(struct page *page, double value); /* six digits */
struct str count_text(struct page *page, size_t n);
struct str gpus_text(struct page *page, int64_t n); /* "8 GPUs" */

/* page_audit.c */

struct str follow_text(struct page *page, const struct verdict_counts *counts);
struct verdict_look { /* in pages and pictures */
    const char *icon, *word, *words;
};
extern const struct verdict_look VERDICT_LOOKS[AUDIT_NO_LOG + 1];
/* "Paddle, 8 GPUs, batch 96": enough to tell cells of one table apart. */
struct str case_text(struct page *page, const struct report_case *c);

/* page_facts.c */
void add_findings(struct page *page, const struct report_audit *audit);
void add_conditions(struct page *page, const struct report *report);

/* page_curves.c */
void add_scaling(struct page *page, const struct report_audit *audit);
void add_series(struct page *page, const struct report_audit *audit);
/* The section, and what shade and line mean. whose: "Each log's". */
void series_begin(struct page *page, const char *whose);
struct spark_of {
    const struct rule *rule; /* or NULL */
    struct rule_case rule_case;
    const struct measurement *m;
    struct str name;
    struct str note;
};
/* Nothing where the log has no curve. */
void add_spark_figure(struct page *page, const struct spark_of *of);

#endif
