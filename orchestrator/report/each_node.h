/* SPDX-License-Identifier: Apache-2.0 */
/* `run --each-node`: a report's cases, made into one for each node of an inventory, or for each pair of neighbours. The plan says
   that it was done, and the frozen inventory with which nodes: whoever reads a run's report does it again. Pure. */
#pragma once

#include "report/inventory.h"
#include "report/report.h"

/* A case of one node becomes ID/NODE for each node that has its GPUs; a case of two nodes becomes ID/NODE+NODE for each two that
   follow each other in the inventory, and for the last and the first of three or more, so that each node has two neighbours. A
   case of more nodes stays as it is. Left out is a case whose GPUs or neighbours the inventory does not have: ret_left_out holds
   their ids, joined by commas, or is empty. ERR_MANIFEST: more cases than a plan may have. */
MUST_CHECK int report_each_node(struct arena *arena, const struct inventory *inventory,
                                struct report *report, struct str *ret_left_out, struct err *err);

/* The case's id without the nodes that it is fixed to. */
struct str each_node_base(const struct report_case *c);
