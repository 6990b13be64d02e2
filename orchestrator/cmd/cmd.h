/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of this program: one row each in cmd/commands.c. */
#pragma once

#include "base/command.h"

/* Each cmd_NAME.c defines one of these; cmd/commands.c lists them. One per line, so that two branches that add one do
   not conflict. */
extern const struct cmd CMD_ATTACH;
extern const struct cmd CMD_AUDIT;
extern const struct cmd CMD_BUNDLE;
extern const struct cmd CMD_CANCEL;
extern const struct cmd CMD_COMPARE;
extern const struct cmd CMD_COMPLETION;
extern const struct cmd CMD_EXPLAIN;
extern const struct cmd CMD_FETCH;
extern const struct cmd CMD_HISTORY;
extern const struct cmd CMD_IMAGE;
extern const struct cmd CMD_IMPORT;
extern const struct cmd CMD_KEYGEN;
extern const struct cmd CMD_LIST;
extern const struct cmd CMD_LOCK;
extern const struct cmd CMD_MEASURE;
extern const struct cmd CMD_PACK;
extern const struct cmd CMD_PLAN;
extern const struct cmd CMD_PUBLISH;
extern const struct cmd CMD_REPAIR;
extern const struct cmd CMD_REPLAY;
extern const struct cmd CMD_REPORT;
extern const struct cmd CMD_RESUME;
extern const struct cmd CMD_RUN;
extern const struct cmd CMD_SEAL;
extern const struct cmd CMD_STATUS;
extern const struct cmd CMD_TREE;
extern const struct cmd CMD_UNPACK;
extern const struct cmd CMD_VERIFY;

/* Verbs of `reperf data` that are not also commands of their own. */
extern const struct cmd DATA_ADD;
extern const struct cmd DATA_DROP;
extern const struct cmd DATA_GC;
extern const struct cmd DATA_LS;
extern const struct cmd DATA_NEW;
extern const struct cmd DATA_VERIFY;

struct cmd_row {
    const struct cmd *cmd;
    /* Its heading in `reperf --help`; NULL: a name of an earlier release, which still works. */
    const char *group;
    const char *now; /* of such a name: what it is called now */
};

/* The groups of `reperf --help`, in order, ended by NULL. */
extern const char *const CMD_GROUPS[];

/* The idx-th of this program's and of the guests' (cmd/guests.h); NULL after the last. */
const struct cmd_row *cmd_at(size_t idx);
/* NULL: no command has that name. */
const struct cmd_row *cmd_find(const char *name);

/* Parses the words behind its name, or its verb's, and runs it. */
MUST_CHECK int cmd_run(const struct cmd *c, const struct cmd_ctx *ctx, int argc, char **argv,
                       struct err *err);

/* The verbs of a command whose verbs have options of their own, ended by NULL; NULL if it has none. */
const struct cmd *const *cmd_verbs(const struct cmd *c);
