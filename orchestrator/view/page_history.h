/* SPDX-License-Identifier: Apache-2.0 */
/* Runs over time as a page: of each case a curve and its runs. As the other pages (view/page.h). */
#ifndef VIEW_PAGE_HISTORY_H
#define VIEW_PAGE_HISTORY_H

#include "base/strbuf.h"

struct history_point { /* one cell of one finished run */
    struct str time, run, report, case_id, unit, verdict;
    struct str name;  /* of the run, or empty */
    const char *kind; /* plan_kind_name */
    double value;     /* NAN: none */
};

/* In the order of time. */
void page_history(struct strbuf *out, const struct history_point *points, size_t n);

#endif
