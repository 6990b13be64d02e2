/* SPDX-License-Identifier: Apache-2.0 */
/* A run's result for people: what one can act on first, then a line a case, then what is said of several cases once. */
#pragma once

#include "evidence/columns.h"
#include "view/page.h"
#include "view/run_view.h"

/* wants_all: each case by its name, however many share a remark. */
void run_out_text(const struct frozen *frozen, const struct run_result *result,
                  const struct report_audit *audit, bool wants_all, struct strbuf *out);

/* The same on a page that is open. */
void run_out(struct page *page, const struct frozen *frozen, const struct run_result *result,
             const struct report_audit *audit, bool wants_all);
/* The page of a run: that, the nodes, and where each repeat ran. */
void run_out_page(const struct run_view *view, struct strbuf *out);

/* ": 6 not_comparable, 1 failed", by verdict. */
void run_out_counts(const size_t n_of[], struct strbuf *out);
