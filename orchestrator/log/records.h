/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that any program may write: CSV with a header, and JSON objects, one per line. A record becomes one line of `name=value`
   in a fixed order, which a format's patterns read like any other line: time, rank, epoch, step, then each figure as
   metric[unit]=value, in the words of the vocabulary. Unknown columns are left out. A record with a figure whose model, batch,
   precision or other setting is not that of the one before it ends in config=other: it is of another run. */
#pragma once

#include "base/strbuf.h"
#include "report/vocabulary.h"

enum record_kind { RECORD_NONE, RECORD_CSV, RECORD_JSONL };

struct records; /* what a CSV's header says */

struct records *records_new(enum record_kind kind, const struct vocabulary *vocabulary);
void records_free(struct records *records);
/* The line for the record in `text`; false if it is not a record (or is the header). */
bool records_line(struct records *records, struct str text, struct strbuf *ret_line);

/* The figure that a name stands for: "images/sec", "step_time_ms". False if it names no unit (except "throughput" and "ips":
   samples/s). */
bool records_figure(const struct vocabulary *vocabulary, struct str name, struct str *ret_metric,
                    const struct word **ret_unit);
