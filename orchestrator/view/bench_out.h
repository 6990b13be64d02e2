/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `nodes bench`, for people and for programs. */
#ifndef VIEW_BENCH_OUT_H
#define VIEW_BENCH_OUT_H

#include "fleet/bench_nodes.h"

struct bench_view {
    const struct inventory *inventory;
    const struct bench_opts *opts;
    const struct bench_result *result;
    const char *time; /* of its begin, RFC 3339 */
};

void bench_out_text(const struct bench_view *view, struct strbuf *out);
/* manifests/schema/nodes-bench-output.json */
void bench_out_json(const struct bench_view *view, struct strbuf *out);
/* A suite a node and one of the links, a case a measure. */
void bench_out_junit(const struct bench_view *view, struct strbuf *out);
/* A row a node, a column a measure. */
void bench_out_page(const struct bench_view *view, struct strbuf *out);

/* "node1", "node1 to node2" */
struct str bench_link_name(struct arena *arena, const struct bench_view *view,
                           const struct bench_link *link);
/* "3 of 4 nodes within, 1 outlier": the same in text and page. */
struct str bench_in_words(struct arena *arena, const struct bench_view *view);
bool bench_node_is_outlier(const struct bench_node *node);

#endif
