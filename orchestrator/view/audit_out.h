/* SPDX-License-Identifier: Apache-2.0 */
/* The audit's result in its forms: a table for people, the JSON contract, JUnit XML. Writers append to `out`. */
#pragma once

#include "judge/trace.h"

struct audit_set {
    const struct report_audit *items;
    size_t n;
};

struct verdict_counts { /* of cells */
    size_t n, of[AUDIT_NO_LOG + 1];
    /* Of those that are exact or match. */
    size_t n_full, n_partial; /* how far they are proven */
    size_t n_derived, n_proposed, n_inferred;
    size_t n_asked; /* cells from whose numbers a rule was inferred */
};
/* Adds those of one audit. */
void count_verdicts(const struct report_audit *audit, struct verdict_counts *counts);

/* "20 follow from the published logs, 4 from other published numbers". */
struct str audit_follow_words(struct arena *arena, const struct verdict_counts *counts);
/* What the words of the tables and of the page mean. */
struct audit_word {
    const char *word, *meaning;
};
#define N_AUDIT_WORDS 13
extern const struct audit_word AUDIT_WORDS[N_AUDIT_WORDS];

extern const struct json_document AUDIT_DOCUMENT;
void audit_out_json(const struct audit_set *set, struct strbuf *out);
/* A table for each report and heading, the findings, and, where asked for, like for like; the last line is the summary. */
enum text_level {
    TEXT_PLAIN,
    TEXT_QUIET,  /* findings of level error, and the summary */
    TEXT_VERBOSE /* also the cells' ids, as `reperf explain` takes them, and what lint finds */
};
struct audit_text_opts {
    bool is_colored, want_like;
    enum text_level level;
    bool is_brief; /* of each report its counts and what differs */
};
void audit_out_text(const struct audit_set *set, const struct audit_text_opts *opts,
                    struct strbuf *out);
/* What explains a number that its log does not give, the most telling first: it is printed otherwise elsewhere, its log is of
   another row, or another rule gives it. */
void audit_out_reasons(struct arena *arena, const struct cell_audit *a, const char *before,
                       const char *after, struct strbuf *out);
/* A row for each cell, and one for each finding, whose verdict is `finding`. */
void audit_out_csv(const struct audit_set *set, struct strbuf *out);
/* To be kept, as Markdown or a page: for each report the counts, its tables under their captions, the reasons, like for like, and
   every finding; on a page also how each number follows. */
void audit_out_page(const struct audit_set *set, bool is_markdown, struct strbuf *out);
/* One report in one picture, an SVG file that stands alone: verdicts, and each row of two frameworks as printed and by one
   rule. */
void audit_out_card(const struct report_audit *audit, struct strbuf *out);
/* JUnit XML: a suite a report, a case a cell; differs is a failure, a log that is not there an error, no_log is skipped. */
void audit_out_junit(const struct audit_set *set, struct strbuf *out);
