/* SPDX-License-Identifier: Apache-2.0 */
/* What `nodes bench` has kept on this machine. */
#ifndef CMD_HISTORY_NODES_H
#define CMD_HISTORY_NODES_H

#include "cmd/cmd.h"

#define BENCH_HISTORY_FOLDER "nodes-bench" /* below the state folder */

/* `history --nodes`: a line each, the oldest first; one that cannot be read is an error at its end. */
MUST_CHECK int history_nodes(const struct cmd_ctx *ctx, bool want_json, struct err *err);

/* `run --gate FILE`: ERR_NODE if the document has anything against one of the nodes. */
struct inventory;
MUST_CHECK int history_gate(const char *path, const struct inventory *inventory, struct err *err);

#endif
