/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of a plan need from the store, and how much of it is there: what their recipes name, without one all
   that their stacks do. Changes nothing. */
#ifndef RUN_RUN_NEEDS_H
#define RUN_RUN_NEEDS_H

#include "base/clock.h"
#include "report/plan.h"
#include "store/store.h"

struct run_needs_opts {
    const char *root;
    const struct store *store; /* NULL: there is none */
    bool is_offline;           /* a case whose needs are not all there is not run: ERR_FETCH */
    struct clock_src clock;
};

MUST_CHECK int run_needs(struct arena *arena, const struct run_needs_opts *opts,
                         const struct report *report, struct plan *plan, struct err *err);

#endif
