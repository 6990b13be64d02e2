/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the draft of a report from the tables of a repository's documents and what formats read in its logs: which printed
   numbers are rates, of which row, and which log gives them by which rule. What a table does not say is listed as missing, never
   filled in. Pure. */
#pragma once

#include "draft/doc_table.h"
#include "judge/audit.h"
#include "report/vocabulary.h"

#define DRAFT_PRINTED_MAX 1e12 /* a larger printed number is not a rate, time or accuracy */
#define DRAFT_NUMBERS_MAX 4096 /* as many as a report has cases */

enum draft_purpose { PURPOSE_UNSAID, PURPOSE_TRAINING, PURPOSE_INFERENCE };

/* What a row, a column, a heading or a path states; 0 and ptr NULL: not stated. */
struct draft_attrs {
    int64_t nodes, gpus, batch; /* gpus: of the job */
    int64_t gpus_per_node;      /* given by the user: for jobs of more than one node */
    struct str precision, framework, model;
    struct str hardware; /* "a100" */
    struct str machine;  /* the cell that names it: "1CC H100 80GB SXM5" */
    enum draft_purpose purpose;
    bool is_model_a_guess; /* by a folder or a heading */
};

bool draft_says_row(const struct draft_attrs *attrs);

struct draft_log {
    struct str path, words; /* in the repository; and without what is no letter or digit */
    const struct format *format;
    const struct measurement *m;
    struct draft_attrs attrs; /* by its path and by what it states */
    struct str model;         /* that it states, or empty */
};
struct draft_logs {
    struct draft_log *items;
    size_t n;
};

enum draft_state {
    DRAFT_FITS,    /* a log gives the number by a rule: exact or match of audit */
    DRAFT_DIFFERS, /* a log belongs to the row by everything that both state, but audit says differs */
    DRAFT_NO_LOG,   /* no log belongs to the row */
    DRAFT_UNPLACED, /* nothing is stated about the row */
};

struct draft_number {
    struct str printed, unit; /* digits alone; of the vocabulary */
    struct str metric;
    struct str document, title, heading; /* title: of the document */
    struct str link_path; /* of what its row links to, as a path of the repository; or empty */
    int64_t line;         /* of its table */
    size_t row, column;
    struct draft_attrs attrs;
    enum draft_state state;
    struct str missing;          /* what its row does not state */
    struct str grid, id;         /* if it has a row: "n1g8", and the case's id */
    bool is_repeated;            /* the same number for the same row is in another table too */
    const struct draft_log *log; /* borrowed */
    const struct rule *rule;     /* borrowed */
    struct str found;            /* what its log gives, as audit shows it */
    bool is_of_another;          /* the log states that it belongs to another row */
    bool is_proposed;            /* what its log gives was read by a proposed format */
    enum log_state log_state;
};
/* What is made of a cell that begins with a number; if it is left out, why. */
enum draft_reading {
    READ_NOTHING, /* it is no rate, time or accuracy */
    READ_NUMBER,
    LEFT_NO_UNIT,      /* its header says speed but no unit */
    LEFT_UNKNOWN_UNIT, /* its header has a unit that the vocabulary lacks */
    LEFT_SCALED,       /* a rate in thousands or millions: how exact it is is not printed */
    LEFT_PER_GPU,      /* a rate of one GPU: no rule gives such a number */
    LEFT_UNUSABLE,     /* NaN, infinite, not over 0, over DRAFT_PRINTED_MAX or malformed */
    DRAFT_READINGS
};

struct draft {
    struct draft_number *items;
    size_t n, n_left_out;
    struct draft_left {
        size_t n;
        struct str first, document; /* the first, and where it stands */
        int64_t line;               /* of its table */
    } left[DRAFT_READINGS];
};

/* Lower-case letters, digits and single dashes; empty if nothing is left. */
struct str draft_slug(struct arena *arena, struct str text);
/* The same without dashes, at any length. */
struct str draft_bare(struct arena *arena, struct str text);

struct draft_reader;
/* unit: the user's unit for speeds whose table names none; or empty. */
struct draft_reader *draft_reader_new(struct arena *arena, const struct vocabulary *vocabulary,
                                      struct str unit);
void draft_reader_free(struct draft_reader *reader);
/* From a path or another text. */
void draft_read_attrs(struct draft_reader *reader, struct str text, struct draft_attrs *into);
/* Adds the rates of a document's tables. */
void draft_add_tables(struct draft_reader *reader, struct str document,
                      const struct doc_tables *tables, struct draft *into);
/* The path in the repository of a document's link, "../logs/a.log" or an address at a repository host; empty if it leads
   elsewhere. */
struct str draft_link_path(struct arena *arena, struct str document, struct str link);
/* given: the user's statements for rows that do not state it themselves. */
void draft_match(struct arena *arena, const struct draft_logs *logs,
                 const struct draft_attrs *given, struct draft *draft);

/* Whether any number has a row: then the draft is a report. */
bool draft_has_rows(const struct draft *draft);
/* Takes over, number by number, what audit says about the report that draft_write made: one judge for both. */
void draft_take_audit(struct arena *arena, const struct report_audit *audit, struct draft *draft);

struct draft_source {
    struct str id, repository, commit, date;
    const struct draft_number *first; /* whose document gives the title */
    struct str series_sha256;         /* or empty */
};
/* Writes the manifest of the numbers that have a row. */
void draft_write(struct arena *arena, const struct draft *draft, const struct draft_source *source,
                 struct strbuf *out);
