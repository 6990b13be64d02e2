/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for people: what to do first, once each and in order, then a line for each case. Its JSON is plan_encode's. */
#pragma once

#include "report/plan.h"

/* with_details: also the recipe, place, mounts and command of each case. */
void plan_out_text(const struct plan *plan, bool with_details, struct strbuf *out);
/* Its parts: what to do first, once each; how long it takes. */
void plan_out_todos(const struct plan *plan, struct strbuf *out);
void plan_out_time(const struct plan *plan, struct strbuf *out);
/* For the person who has the nodes: what must hold, in the order in which to see to it. */
struct plan_orders { /* with the options that were given to plan */
    struct str doctor, run;
};
void plan_out_checklist(const struct plan *plan, const struct inventory *inventory,
                        const struct plan_orders *orders, struct strbuf *out);
