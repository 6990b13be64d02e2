/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` says about one log, and how it is shown. Private to cmd_measure.c and measure_show.c. */
#ifndef CMD_MEASURE_PARTS_H
#define CMD_MEASURE_PARTS_H

#include "base/strbuf.h"
#include "base/table.h"
#include "codec/json.h"
#include "judge/identity.h"

#define FLUSH_BYTES (64u << 10)
#define BESIDE_MAX  8 /* protocols in one log */

/* Figures of a protocol whose lines stand among those of the log's own format. */
struct beside {
    const struct format *format;
    enum parse_verdict verdict;
    const struct series *series;
    bool has_value;
    double value;
};

/* What is said about one log. */
struct finding_of_log {
    const char *file;
    struct str format; /* NULL: not found */
    struct measurement m;
    struct log_counts counts;
    const struct series *series; /* primary, or the rule's; NULL where there is no format */
    enum parse_verdict verdict;
    struct str why;
    bool has_value;
    struct rule_value value;
    struct str unit;
    const struct rule *rule; /* NULL: mean of the series */
    struct beside beside[BESIDE_MAX];
    size_t n_beside;
};

/* Prints what has gathered and empties the buffer, so that a document of any length needs little memory. */
MUST_CHECK int measure_flush(struct strbuf *buf, size_t over, struct err *err);
MUST_CHECK int measure_put_log(struct json_out *out, const struct finding_of_log *f,
                               struct err *err);
void measure_add_row(struct table *table, const struct finding_of_log *f);
/* Below the table, for one log: how the number came about, and what the log states. */
void measure_add_details(struct strbuf *text, const struct finding_of_log *f);

#endif
