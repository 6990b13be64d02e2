/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that any program may write: CSV with a header, and JSON objects one a line. A record becomes one line of `name=value` in a fixed
   order, which a format's patterns read like any other line: time, rank, epoch, step, then each figure as metric[unit]=value, by the
   words of the vocabulary. Columns that it does not know are left out. */
#ifndef JUDGE_RECORDS_H
#define JUDGE_RECORDS_H

#include "base/strbuf.h"
#include "report/vocabulary.h"

enum record_kind { RECORD_NONE, RECORD_CSV, RECORD_JSONL };

struct records; /* what a CSV's header says */

struct records *records_new(enum record_kind kind, const struct vocabulary *vocabulary);
void records_free(struct records *records);
/* The line of what `text` holds; false where it is no record (or the header). */
bool records_line(struct records *records, struct str text, struct strbuf *ret_line);

/* What a name says that it is a figure of: "images/sec", "step_time_ms". False where it names no unit (but "throughput" and "ips": samples/s). */
bool records_figure(const struct vocabulary *vocabulary, struct str name, struct str *ret_metric,
                    const struct word **ret_unit);

#endif
