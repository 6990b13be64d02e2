/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a round: manifests/reports/ID.json, from its rows and the submissions that they are of. */
#ifndef DRAFT_ROUND_REPORT_H
#define DRAFT_ROUND_REPORT_H

#include "base/strbuf.h"
#include "draft/round.h"

struct round_report {
    struct str id;            /* "mlperf-training-2.0" */
    struct str round;         /* "2.0" */
    struct source_ref source; /* path: the folder below --logs */
    struct str page;          /* a file of the repository that says what it is */
    struct str table_sha256;
    struct str series_sha256; /* NULL: not yet known */
    const struct round_row *rows;
    const struct round_match *matches;
    size_t n;
};

void round_report_write(struct arena *arena, const struct round_report *report, struct strbuf *out);

#endif
