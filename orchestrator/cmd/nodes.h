/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf nodes VERB INVENTORY`: each verb is a command of its own, with its own options and its own file cmd/nodes_VERB.c;
   cmd/commands.c lists them. A verb's `run` gets what follows the verb. Its first operand is what --nodes takes elsewhere. */
#ifndef CMD_NODES_H
#define CMD_NODES_H

#include "cmd/cmd.h"

/* One a line, sorted. */
extern const struct cmd NODES_CLEAN;
extern const struct cmd NODES_COPY;
extern const struct cmd NODES_DOCTOR;
extern const struct cmd NODES_EXEC;
extern const struct cmd NODES_LIST;
extern const struct cmd NODES_PROVISION;

#endif
