/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a run side by side: a row is one model, precision, number of nodes and GPUs (where a framework has it at several
   batches: the smallest of each, the next of each, ...); a column is a framework. Pure: of what result_derive gave, which must
   outlive it. */
#pragma once

#include "evidence/result.h"
#include "judge/claim.h"

#define COLUMN_NAMES_MAX 9 /* of conditions that may differ */

/* What the report says of two columns by the numbers that it prints for them, and whether this run bears it out. */
struct claim {
    enum claim_verdict verdict; /* CLAIM_NONE: see why */
    double published;           /* ratio of the two printed numbers; NAN: one is not printed */
    const char *why;            /* nothing is judged: why; else NULL */
    struct str *hardware;       /* "gpu V100 there, H100 here" */
    size_t n_hardware;
};

struct column_cell {
    size_t framework; /* index into those of struct columns */
    struct str name;  /* of the framework */
    const struct cell_result *cell;
    struct ratio ratio; /* to the row's reference; of the reference itself, no value and no why */
    /* Its differences from the reference, for which the ratio is not like for like. */
    const char *differs[COLUMN_NAMES_MAX];
    size_t n_differs;
    struct claim claim;
};

struct column_row {
    struct str model, precision;
    int64_t nodes, gpus;
    struct column_cell *cells; /* those that the run has, in the order of the frameworks */
    size_t n_cells;
    struct str reference; /* framework of the first that has a value; NULL: none has */
};

struct columns {
    struct str *frameworks; /* in the run's order */
    size_t n_frameworks;
    struct column_row *rows; /* likewise; only those with cells of two frameworks or more */
    size_t n_rows;
};

/* audit: what the published logs give; NULL: nobody looked. */
void columns_of(struct arena *arena, const struct frozen *frozen, const struct run_result *result,
                const struct report_audit *audit, struct columns *ret_columns);

/* The cell of that framework; NULL where the row has none. */
const struct column_cell *columns_find(const struct column_row *row, size_t framework);
/* "1.80 (0.47, 0.45 to 0.50)": value, ratio and interval; "-" where the run has none. In the arena. */
struct str columns_cell_text(struct arena *arena, const struct column_cell *at);
/* "holds: published 1.76, here 1.70 to 1.82; gpu V100 there, H100 here"; why nothing is judged; or empty. In the arena. */
struct str columns_claim_text(struct arena *arena, const struct column_cell *at);
/* Lines for people: the reference of the ratios, which rows are not like for like and why, which have no ratio and why, and the
   claims. */
void columns_notes(struct strbuf *out, const struct frozen *frozen, const struct columns *columns);

/* "rows" of `reperf run --json`. */
extern const struct json_field COLUMNS_ROWS[1];

/* The published cell's audit, or NULL: nobody looked, its log gives no number, or another number is printed for it today. */
const struct cell_audit *columns_audited(const struct report_audit *audit, const struct cell *cell);
