/* SPDX-License-Identifier: Apache-2.0 */
/* The document of `nodes bench --json`, read again: for the gate of a run and for the history. Pure. */
#ifndef JUDGE_BENCH_DOC_H
#define JUDGE_BENCH_DOC_H

#include "base/strbuf.h"

#define BENCH_DOC_BYTES_MAX (256u << 20)

struct bench_doc_node {
    struct str name;
    struct str
        against; /* why no run should rely on it: an outlier's sentence, or what could not be measured; ptr NULL: nothing */
    bool is_outlier;
    size_t n_measured; /* figures */
};

struct bench_doc {
    struct str inventory, time;
    struct bench_doc_node *nodes;
    size_t n_nodes;
    size_t n_outliers; /* nodes; one end of a slow link alone is none */
    size_t n_failed;   /* nodes that were not measured as asked */
};

/* ERR_MANIFEST where it is none, or contradicts itself: its outliers and status are those of its figures. */
MUST_CHECK int bench_doc_read(struct arena *arena, struct str text, const char *name,
                              struct bench_doc *ret_doc, struct err *err);

/* ERR_NODE: a node of these is not in the document, was not measured, or is an outlier. */
MUST_CHECK int bench_doc_admits(const struct bench_doc *doc, struct str inventory,
                                const struct str *names, size_t n, struct err *err);

#endif
