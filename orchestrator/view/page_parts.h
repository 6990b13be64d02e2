/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a page, for page*.c only. */
#ifndef VIEW_PAGE_PARTS_H
#define VIEW_PAGE_PARTS_H

#include "view/address.h"
#include "view/page.h"

struct page {
    struct strbuf *out;
    struct arena arena;
    const struct format_set *formats;
    size_t n_charts; /* for ids */
};

struct verdict_counts {
    size_t of[AUDIT_NO_LOG + 1];
    size_t n;
    size_t n_derived;  /* of exact and match: judged from other published numbers, not from a log */
    size_t n_proposed; /* likewise: by a format that is only proposed */
    size_t n_inferred, n_asked; /* likewise, of the cells whose rule was inferred */
};

extern const char *const PAGE_CSS[]; /* ended by NULL */

/* page.c */
void page_begin(struct page *page, struct str title);
void page_end(struct page *page);
struct verdict_counts count_verdicts(const struct report_audit *audit);
/* "911 follow from the logs, 26 from other published numbers"; whose: "the logs". */
struct str follow_text(struct page *page, const struct verdict_counts *counts, const char *whose);
/* How a verdict looks in pages and pictures. */
struct verdict_look {
    const char *icon, *word, *words;
};
extern const struct verdict_look VERDICT_LOOKS[AUDIT_NO_LOG + 1];
void add_verdict(struct page *page, enum audit_verdict verdict);
void add_scroll_begin(struct page *page, struct str label);
void add_case_id(struct page *page, struct str id); /* breaks at its slashes */
void add_scroll_end(struct page *page);
struct str percent_text(struct page *page, double share); /* "+1.25 %", "" for NAN */
/* A condition's value; of a count of millions and more as people say it ("26.7 M"), the digits as its title. */
void add_condition_value(struct page *page, struct str value);
struct str number_text(struct page *page, double value, int decimals); /* "" for NAN */
/* "Paddle, 8 GPUs, batch 96": enough to tell cells of one table apart. */
struct str case_text(struct page *page, const struct report_case *c);
/* "8 GPUs, batch 64". */
struct str row_text(struct page *page, const struct report_case *c);
/* The value as the verdict compared it: rounded as the cell's rule rounds. */
struct str rounded_text(struct page *page, const struct cell_audit *ca);
/* page_summary.c */
void add_summary(struct page *page, const struct report_audit *audit);
void add_overview(struct page *page, const struct report_audit *audits, size_t n);
void add_verdict_bar(struct page *page, const struct verdict_counts *counts);

/* page_cells.c */
const char *metric_words(enum metric metric); /* for people */
void add_cells(struct page *page, const struct report_audit *audit);
void add_like(struct page *page, const struct report_audit *audit);
void add_explanations(struct page *page, const struct report_audit *audit);

/* page_how.c */
void add_link(struct page *page, struct str url, struct str text); /* url empty: the text alone */
void add_log_link(struct page *page, const struct report *report, struct str path);
/* A fold with the cell's logs, samples, window and arithmetic. */
void add_how(struct page *page, const struct report *report, const struct cell_audit *ca);
/* page_results.c: where the rule counts runs that succeeded, a row is a result of several runs. */
bool is_results(const struct report_audit *audit);
void add_results(struct page *page, const struct report_audit *audit);

/* page_curves.c */
void add_scaling(struct page *page, const struct report_audit *audit);
void add_series(struct page *page, const struct report_audit *audit);
struct spark_of {
    const struct rule *rule; /* or NULL */
    struct rule_case rule_case;
    const struct measurement *m;
    struct str name;
    struct str note;
};
/* Nothing where the log has no curve. */
void add_spark_figure(struct page *page, const struct spark_of *of);

/* page_facts.c */
void add_findings(struct page *page, const struct report_audit *audit);
void add_conditions(struct page *page, const struct report_audit *audit);
void add_provenance(struct page *page, const struct report_audit *audit);

/* page_run_nodes.c: where a run's jobs ran, what was seen there, and what they left */
void add_run_places(struct page *page, const struct run_view *view);
void add_run_machines(struct page *page, const struct run_view *view);
void add_run_logs(struct page *page, const struct run_view *view);

#endif
