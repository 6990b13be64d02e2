/* SPDX-License-Identifier: Apache-2.0 */
/* An untrusted document of nodes bench for `run --gate`. An accepted one agrees with itself, and a node for which it reports a
   problem passes no gate. */
#include "base/base.h"

#include "judge/bench_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_doc doc;
    struct err err = {0};
    size_t n_against = 0;
    if (bench_doc_read(&arena, (struct str){(const char *)data, size}, "doc", &doc, &err) < 0) {
        ASSERT(err.code != ERR_NONE);
        return 0;
    }
    for (size_t idx = 0; idx < doc.n_nodes; idx++) {
        const struct bench_doc_node *node = &doc.nodes[idx];
        struct err why = {0};
        int rc = bench_doc_admits(&doc, doc.inventory, &node->name, 1, &why);
        n_against += node->against.ptr != NULL;
        ASSERT(!node->is_outlier || node->against.ptr);
        ASSERT((rc < 0) == (why.code == ERR_NODE));
        ASSERT(rc < 0 || (!node->against.ptr && node->n_measured));
    }
    ASSERT(n_against == doc.n_outliers + doc.n_failed);
    return 0;
}
