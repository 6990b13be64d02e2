/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of a plan need from the store, and how much of it is there. Changes nothing, and makes no store. */
#ifndef RUN_RUN_NEEDS_H
#define RUN_RUN_NEEDS_H

#include "base/clock.h"
#include "report/plan.h"

struct run_needs_opts {
    const char *root;
    const char *store;
    bool is_offline; /* a case whose needs are not all there is not run: ERR_FETCH */
    struct clock_src clock;
};

MUST_CHECK int run_needs(struct arena *arena, const struct run_needs_opts *opts,
                         const struct report *report, struct plan *plan, struct err *err);

#endif
