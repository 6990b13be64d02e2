/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two file formats of series: a file a log (series_file.c), a file a report (series_bundle.c). Nobody else includes this. */
#ifndef LOAD_SERIES_PARTS_H
#define LOAD_SERIES_PARTS_H

#include "codec/json.h"
#include "log/series.h"

#define SERIES_MAX 64
#define FACTS_MAX  65536

/* What series_encode_head wrote; ret_n NULL: and nothing else, else also the number of samples, which stand in the same object. */
MUST_CHECK int series_read_head(const struct json *at, struct arena *arena, struct series *ret,
                                size_t *ret_n, struct err *err);
/* The members step, rank, run, gpus, time, value of an object. */
void series_write_samples(struct json_out *out, const struct series *s);
/* Fills n and samples. */
MUST_CHECK int series_read_samples(const struct json *at, struct arena *arena, size_t n,
                                   struct series *s, struct err *err);

/* Of a log with one run, whose facts are all of that, no runs are written; of another, the first and the last of each fact. */
bool series_facts_have_runs(const struct measurement *m);
/* Where none are written: of the one run, and of none where there are several. */
void series_fact_runs_unsaid(const struct measurement *m, struct fact *fact);
/* The member facts: its list. n_runs is known where it is read. */
void series_write_facts(struct json_out *out, const struct measurement *m);
MUST_CHECK int series_read_facts(const struct json *list, struct arena *arena,
                                 struct measurement *m, struct err *err);

#endif
