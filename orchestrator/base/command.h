/* SPDX-License-Identifier: Apache-2.0 */
/* A command: its option table is const and complete, so that help, the man page's option list and shell completion come from
   it. It prints its result on stdout (with --json exactly one document) and returns its exit status, or -1 with *err filled:
   main reports it and maps the code. cmd/commands.c lists them. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/opt.h"
#include "base/strbuf.h"

/* Besides those of base/err.h. */
#define STATUS_NOT_READ 9  /* no log gave a number */
#define STATUS_PROPOSED 11 /* not known to be right */

struct cmd_ctx {
    struct clock_src clock;
    const char *root; /* the data folder: holds manifests/, images/, datasets/, logs/ */
    /* Where runs live: $REPERF_STATE, else $XDG_STATE_HOME/reperf, else ~/.local/state/reperf. */
    const char *state;
    /* What was fetched: $REPERF_STORE, else $XDG_DATA_HOME/reperf/store, else ~/.local/share/reperf/store. */
    const char *store;
    const char *self;      /* path of this program's file */
    const char *manifests; /* what --manifests or $REPERF_MANIFESTS names; NULL: neither */
};

/* One call of a command. Its lists and its arena are released after it. */
struct cmd_call {
    const struct cmd *cmd;
    struct arena *arena;
    char *const *words; /* behind its name, as they were typed */
    int n_words;
    void *args;               /* the command's own struct, filled by its options */
    struct opt_list operands; /* of the words, those behind a "--" included */
    size_t n_before;          /* of them, those before a "--" */
    struct strbuf *out;       /* is printed where the command ends well */
    bool is_painted;          /* out has colours, and no outside text that drives a terminal */
    bool is_said;             /* out is printed, too, where it fails */
};

struct cmd {
    const char *name;
    const char *operands;   /* for the synopsis: "REPORT..." */
    const char *summary;    /* one line */
    const struct opt *opts; /* ended by OPT_END; offsets into the command's own arguments struct */
    int (*run)(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err);
    size_t args_size;
    const void *defaults; /* of its arguments; NULL: all zero */
    size_t n_min, n_max;
    /* What is said where there are fewer or more operands; NULL: run looks itself. */
    const char *expected;
};
/* CMD("NAME", "OPERANDS", "summary", OPTS, run, CMD_ARGS(struct of its arguments), CMD_OPERANDS(MIN, MAX, "what is expected")) */
/* clang-format off */
#define CMD(of_name, of_operands, says, of_opts, by, ...)                                          \
    {.name = (of_name), .operands = (of_operands), .summary = (says), .opts = (of_opts),           \
     .run = (by), __VA_ARGS__}
#define CMD_ARGS(T) .args_size = sizeof(T)
#define CMD_OPERANDS(min, max, says) .n_min = (min), .n_max = (max), .expected = (says)
/* clang-format on */

/* Parses the words behind its name, runs it, and prints. */
MUST_CHECK int cmd_call(const struct cmd *c, const struct cmd_ctx *ctx, int argc, char **argv,
                        struct err *err);
bool cmd_asks_for_help(int argc, char **argv);
/* "NAME [options] OPERANDS", its summary and its options. */
void cmd_print_help(const struct cmd *c);

/* Writes a whole document to stdout and checks that it was written (a full disk or a closed pipe is an error). */
MUST_CHECK int cmd_print(struct str text, struct err *err);
/* For a view that uses colours and has sanitised outside text itself. */
MUST_CHECK int cmd_print_painted(struct str text, struct err *err);
/* Text that is for programs, whatever it begins with. */
MUST_CHECK int cmd_print_document(struct str text, struct err *err);
