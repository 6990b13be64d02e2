/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence of `nodes bench`: manifest/nodes-bench.json, its document byte for byte, and the result.json that follows from it: a cell
   a node, and one for each slow link. Sealed and verified as a run's is. What is derived again: everything of the document but its
   values, as judge/bench_doc.h says. */
#ifndef EVIDENCE_BENCH_EVIDENCE_H
#define EVIDENCE_BENCH_EVIDENCE_H

#include "base/err.h"

struct arena;

bool bench_evidence_is(struct arena *arena, const char *folder);

/* From a document of `nodes bench` to an empty folder. ERR_MANIFEST where it does not follow from its values. */
MUST_CHECK int bench_evidence_put(struct arena *arena, const char *doc_path, const char *folder,
                                  struct err *err);

/* ERR_INTEGRITY: a file too much or missing, or one that does not follow. *ret_n_figures: what the result was derived from. */
MUST_CHECK int bench_evidence_check(struct arena *arena, const char *folder, size_t *ret_n_figures,
                                    struct err *err);

#endif
