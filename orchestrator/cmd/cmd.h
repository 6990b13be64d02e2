/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: one row each in cmd/commands.c. The option table is const and complete, so that help, the man page's option list and
   shell completion come from it. A command prints its result on stdout (with --json exactly one document) and returns the
   exit status of DESIGN.md section 5, or -1 with *err filled: main reports it and maps the code. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/clock.h"
#include "base/opt.h"
#include "base/str.h"

/* DESIGN.md section 5. */
#define STATUS_NOT_READ 9  /* no log gave a number */
#define STATUS_PROPOSED 11 /* not known to be right */

struct cmd_ctx {
    struct clock_src clock;
    const char *root; /* the data folder: holds manifests/, images/, datasets/, logs/ */
    const char *
        state; /* where runs live: $REPERF_STATE, else $XDG_STATE_HOME/reperf, else ~/.local/state/reperf */
    const char *
        store; /* what was fetched: $REPERF_STORE, else $XDG_DATA_HOME/reperf/store, else ~/.local/share/reperf/store */
    const char *self; /* path of this program's file */
};

struct cmd {
    const char *name;
    const char *operands;   /* for the synopsis: "REPORT..." */
    const char *summary;    /* one line */
    const struct opt *opts; /* ended by OPT_END; offsets into the command's own arguments struct */
    int (*run)(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err);
};

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
extern const struct cmd CMD_LINT;
extern const struct cmd CMD_LIST;
extern const struct cmd CMD_LOCK;
extern const struct cmd CMD_MEASURE;
extern const struct cmd CMD_NEW;
extern const struct cmd CMD_NODES;
extern const struct cmd CMD_PACK;
extern const struct cmd CMD_PLAN;
extern const struct cmd CMD_REPAIR;
extern const struct cmd CMD_REPLAY;
extern const struct cmd CMD_REPORT;
extern const struct cmd CMD_RESUME;
extern const struct cmd CMD_RUN;
extern const struct cmd CMD_SEAL;
extern const struct cmd CMD_STATUS;
extern const struct cmd CMD_STORE;
extern const struct cmd CMD_TREE;
extern const struct cmd CMD_UNPACK;
extern const struct cmd CMD_VERIFY;

extern const struct cmd *const CMDS[]; /* sorted by name, ended by NULL */

/* The verbs of a command whose verbs have options of their own, ended by NULL; NULL if it has none. */
const struct cmd *const *cmd_verbs(const struct cmd *c);

/* Writes a whole document to stdout and checks that it was written (a full disk or a closed pipe is an error). */
MUST_CHECK int cmd_print(struct str text, struct err *err);
/* For a view that uses colours and has sanitised outside text itself. */
MUST_CHECK int cmd_print_painted(struct str text, struct err *err);
/* Text that is for programs, whatever it begins with. */
MUST_CHECK int cmd_print_document(struct str text, struct err *err);

#endif
