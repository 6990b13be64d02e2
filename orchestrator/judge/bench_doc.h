/* SPDX-License-Identifier: Apache-2.0 */
/* The document of `nodes bench --json`, read again: for the gate of a run, the history and
   the archive (evidence/bench_evidence.h). Pure. */
#ifndef JUDGE_BENCH_DOC_H
#define JUDGE_BENCH_DOC_H

#include "base/strbuf.h"

#define BENCH_DOC_BYTES_MAX (256u << 20)

struct bench_doc_node {
    struct str name;
    struct str
        against; /* why no run should rely on the node: an outlier's sentence, or what could not be measured; ptr NULL:
                    nothing */
    bool is_outlier;
    bool is_alone;     /* a figure of it that has a limit could not be compared with others */
    size_t n_measured; /* figures */
    struct str group;
    int64_t gpus;
};

struct bench_doc_link { /* an outlier; may occur once for each size */
    struct str from, to;
    struct str name; /* "node1 to node2" */
    struct str against;
};

struct bench_doc {
    struct str inventory, time;
    struct bench_doc_node *nodes;
    size_t n_nodes;
    size_t n_outliers; /* nodes; being one end of a slow link does not count */
    size_t n_failed;   /* nodes that were not measured as asked */
    size_t n_figures;  /* figures of nodes that were measured */
    struct bench_doc_link *slow_links;
    size_t n_slow_links;
    size_t n_alone; /* nodes of which some figure could not be compared */
};

/* ERR_MANIFEST if it is not such a document, or does not follow from its values and limits: each median, spread, comparison and
   verdict, the list of outliers and the exit status are derived again. The values themselves are the nodes' own. */
MUST_CHECK int bench_doc_read(struct arena *arena, struct str text, const char *name,
                              struct bench_doc *ret_doc, struct err *err);

/* The index of the node of that name; -1: it has none. */
ptrdiff_t bench_doc_find(const struct bench_doc *doc, struct str name);

/* ERR_NODE: one of these nodes is not in the document, was not measured, or is an outlier, or a link between two of them is. */
MUST_CHECK int bench_doc_admits(const struct bench_doc *doc, struct str inventory,
                                const struct str *names, size_t n, struct err *err);

#endif
