/* SPDX-License-Identifier: Apache-2.0 */
/* Self-contained HTML pages: no script, no request to anywhere, readable without colour, on paper and on a phone. Pure: equal
   data, equal bytes (no clock). All text from outside is escaped. */
#ifndef VIEW_PAGE_H
#define VIEW_PAGE_H

#include "judge/audit.h"
#include "view/html.h"
#include "view/run_view.h"

/* The result of recomputing: one report, or several with an overview first. */
void page_audit(struct strbuf *out, const struct report_audit *audits, size_t n);

/* The same in one picture, an SVG file that stands alone: verdicts, and each row of two frameworks as printed and by one rule. */
void page_card(struct strbuf *out, const struct report_audit *audit);

/* One run: its cells next to the published ones, what differs, every repeat's series, its machine. */
MUST_CHECK int page_run(struct strbuf *out, const struct run_view *view, struct err *err);

#endif
