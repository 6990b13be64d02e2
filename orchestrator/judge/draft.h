/* SPDX-License-Identifier: Apache-2.0 */
/* From tables of a repository's documents and what formats read of its logs to the draft of a report: which printed numbers are rates, of
   which row, and which log gives them by which rule. What a table does not say is said to be missing, never filled in. Pure. */
#ifndef JUDGE_DRAFT_H
#define JUDGE_DRAFT_H

#include "judge/format.h"
#include "report/doc_table.h"
#include "report/vocabulary.h"

#define DRAFT_NUMBERS_MAX 1024

/* What a row, a column, a heading or a path says; 0 and ptr NULL: not said. */
struct draft_attrs {
    int64_t nodes, gpus, batch; /* gpus: of the job */
    int64_t gpus_per_node;      /* of what a person gives: of a job of more than one node */
    struct str precision, framework, model;
};

struct draft_log {
    struct str path; /* in the repository */
    struct str id;   /* of the format */
    const struct format *format;
    const struct measurement *m;
    struct draft_attrs attrs; /* by its path and by what it states */
};
struct draft_logs {
    struct draft_log *items;
    size_t n;
};

enum draft_state {
    DRAFT_FITS,     /* a log gives the number by a rule */
    DRAFT_DIFFERS,  /* a log is of the row by all that both say, and gives another */
    DRAFT_NO_LOG,   /* no log is of the row */
    DRAFT_UNPLACED, /* the row is not known: missing says what */
};

struct draft_number {
    struct str printed, unit; /* digits alone; of the vocabulary */
    struct str document, heading, link;
    int64_t line; /* of its table */
    size_t row, column;
    struct draft_attrs attrs;
    enum draft_state state;
    struct str missing;
    struct str grid, id;         /* of one with a row: "n1g8", and the case's id */
    bool is_repeated;            /* the same number for the same row stands in another table too */
    const struct draft_log *log; /* borrowed */
    const struct rule *rule;     /* borrowed */
    double value;
};
struct draft {
    struct draft_number *items;
    size_t n, n_left_out;
    size_t n_without_unit; /* numbers below a head that speaks of speed and names no unit */
};

struct draft_reader;
struct draft_reader *draft_reader_new(struct arena *arena, const struct vocabulary *vocabulary);
void draft_reader_free(struct draft_reader *reader);
/* Of a path or another text. */
void draft_read_attrs(struct draft_reader *reader, struct str text, struct draft_attrs *into);
/* Adds the rates of a document's tables. */
void draft_add_tables(struct draft_reader *reader, struct str document,
                      const struct doc_tables *tables, struct draft *into);
/* given: what a person says of all rows that do not say it. */
void draft_match(struct arena *arena, const struct draft_logs *logs,
                 const struct draft_attrs *given, struct draft *draft);

struct draft_source {
    struct str id, repository, commit, date;
    struct str document;      /* the one with the most numbers */
    struct str series_sha256; /* or empty */
};
/* The manifest of those that have a row. */
void draft_write(struct arena *arena, const struct draft *draft, const struct draft_source *source,
                 struct strbuf *out);

#endif
