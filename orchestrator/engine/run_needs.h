/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases of a plan need from the store, and how much of it is there. Changes nothing, and makes no store. */
#ifndef ENGINE_RUN_NEEDS_H
#define ENGINE_RUN_NEEDS_H

#include "domain/plan.h"

MUST_CHECK int run_needs(struct arena *arena, const char *root, const char *store,
                         const struct report *report, struct plan *plan, struct err *err);

#endif
