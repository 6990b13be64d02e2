/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a run side by side: a row is one model, precision, number of nodes and GPUs (where a framework has it at several batches: the smallest of each, the next of each, ...);
   a column is a framework. Pure: of what result_derive gave, which must outlive it. */
#ifndef EVIDENCE_COLUMNS_H
#define EVIDENCE_COLUMNS_H

#include "evidence/result.h"

#define COLUMN_NAMES_MAX 8 /* of conditions that may differ */

struct column_cell {
    const struct cell_result *cell; /* NULL: the run has none of this framework in this row */
    /* Over the row's reference; NAN if there is none: see `why`. */
    double ratio;
    double low, high; /* 95 % of the ratio, from the spread of the repeats; NAN of a single one */
    const char *why;  /* no ratio: why; else NULL */
    const char *differs
        [COLUMN_NAMES_MAX]; /* differences from the reference, so that the ratio is not like for like */
    size_t n_differs;
};

struct column_row {
    struct str model, precision;
    int64_t nodes, gpus;
    struct column_cell *cells; /* one a framework, as in struct columns */
    size_t reference;          /* the first that has a value; n_frameworks: none has */
};

struct columns {
    struct str *frameworks; /* in the run's order */
    size_t n_frameworks;
    struct column_row *rows; /* likewise; only those with cells of two frameworks or more */
    size_t n_rows;
};

void columns_of(struct arena *arena, const struct frozen *frozen, const struct run_result *result,
                struct columns *ret_columns);

/* "1.80 (0.47, 0.45 to 0.50)": value, ratio and interval; "-" where the run has none. In the arena. */
struct str columns_cell_text(struct arena *arena, const struct column_cell *at);
/* How they were run, in words. */
const char *columns_order(const struct frozen *frozen);
/* Lines for people: the reference of the ratios, which rows are not like for like and why, which have no ratio and why. */
void columns_notes(struct strbuf *out, const struct frozen *frozen, const struct columns *columns);

/* "rows" of `reperf run --json`. */
void columns_encode(struct json_out *out, const struct columns *columns);

#endif
