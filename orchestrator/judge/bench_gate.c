/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run may rely on the nodes of a document. */
#include "base/base.h"

#include "judge/bench_doc.h"

#define NAME_SHOWN 100

int bench_doc_admits(const struct bench_doc *doc, struct str inventory, const struct str *names,
                     size_t n, struct err *err)
{
    if (!str_eq(doc->inventory, inventory)) {
        return err_set(err, ERR_NODE, "it measured the nodes of %.*s, not of %.*s",
                       STR_ARG(str_sub(doc->inventory, 0, NAME_SHOWN)), STR_ARG(inventory));
    }
    for (size_t idx = 0; idx < n; idx++) {
        ptrdiff_t at = bench_doc_find(doc, names[idx]);
        const struct bench_doc_node *node = at < 0 ? NULL : &doc->nodes[at];
        if (!node || (!node->n_measured && !node->against.ptr)) {
            return err_set(err, ERR_NODE, "%.*s: not measured", STR_ARG(names[idx]));
        }
        if (node->against.ptr) {
            return err_set(err, ERR_NODE, "%.*s: %.*s", STR_ARG(names[idx]),
                           STR_ARG(str_sub(node->against, 0, 300)));
        }
    }
    for (size_t idx = 0; idx < doc->n_slow_links; idx++) {
        const struct bench_doc_link *link = &doc->slow_links[idx];
        if (str_is_in(link->from, names, n) && str_is_in(link->to, names, n)) {
            return err_set(err, ERR_NODE, "%.*s: %.*s", STR_ARG(str_sub(link->name, 0, NAME_SHOWN)),
                           STR_ARG(str_sub(link->against, 0, 300)));
        }
    }
    return 0;
}
