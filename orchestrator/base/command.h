/* SPDX-License-Identifier: Apache-2.0 */
/* A command: its option table is const and complete, so that help, the man page's option list and shell completion come from it. It prints its
   result on stdout (with --json exactly one document) and returns its exit status, or -1 with *err filled: main reports it and maps the
   code. cmd/commands.c lists them. */
#ifndef BASE_COMMAND_H
#define BASE_COMMAND_H

#include "base/clock.h"
#include "base/opt.h"
#include "base/str.h"

/* Besides those of base/err.h. */
#define STATUS_NOT_READ 9  /* no log gave a number */
#define STATUS_PROPOSED 11 /* not known to be right */

struct cmd_ctx {
    struct clock_src clock;
    const char *root; /* the data folder: holds manifests/, images/, datasets/, logs/ */
    const char *
        state; /* where runs live: $REPERF_STATE, else $XDG_STATE_HOME/reperf, else ~/.local/state/reperf */
    const char *
        store; /* what was fetched: $REPERF_STORE, else $XDG_DATA_HOME/reperf/store, else ~/.local/share/reperf/store */
    const char *self;      /* path of this program's file */
    const char *manifests; /* what --manifests or $REPERF_MANIFESTS names; NULL: neither */
};

struct cmd {
    const char *name;
    const char *operands;   /* for the synopsis: "REPORT..." */
    const char *summary;    /* one line */
    const struct opt *opts; /* ended by OPT_END; offsets into the command's own arguments struct */
    int (*run)(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err);
};

/* Writes a whole document to stdout and checks that it was written (a full disk or a closed pipe is an error). */
MUST_CHECK int cmd_print(struct str text, struct err *err);
/* For a view that uses colours and has sanitised outside text itself. */
MUST_CHECK int cmd_print_painted(struct str text, struct err *err);
/* Text that is for programs, whatever it begins with. */
MUST_CHECK int cmd_print_document(struct str text, struct err *err);

#endif
