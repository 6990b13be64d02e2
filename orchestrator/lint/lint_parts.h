/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of lint (lint.c and lint_*.c). Nobody else includes this. */
#pragma once

#include "base/str.h"
#include "base/vec.h"
#include "codec/pattern.h"
#include "lint/lint.h"
#include "report/launch_options.h"
#include "report/shell_script.h"

struct lint_scripts { /* of a command; without runs where it has no such text */
    struct shell_script printed, works;
};

struct lint {
    struct arena *arena;
    const struct report *report;
    struct findings *findings;
    struct patterns patterns;      /* those that a rule looks for; owned */
    struct lint_scripts **scripts; /* by stack, by command */
};

/* A printed command, or one of a recipe, parsed. */
struct lint_command {
    struct lint *lint;
    const struct stack *stack;
    const struct command *command;
    const struct shell_script *script;
    struct spot at;              /* below the stack: ".commands[3].printed" */
    const struct recipe *recipe; /* that it is of; NULL: the stack's own */
    const struct shell_run *run; /* the one that a walk has come to; NULL: none yet */
    /* The text of that run: what is set for it, its own words, "< FILE" and "> FILE", a blank after each. */
    struct str line;
};

/* A walk over a stack's printed commands, each parsed once, without runs if it has no such text; or over the runs of those that
   are no lists of logs:
       struct lint_command c = lint_walk(lint, stack);
       while (lint_next_run(&c)) ... c.run ... */
struct lint_command lint_walk(struct lint *lint, const struct stack *stack);
bool lint_next_command(struct lint_command *c);
bool lint_next_run(struct lint_command *c);
void lint_at_run(struct lint_command *c, size_t at); /* of its script */
/* The next case after `before` (NULL: the first) of the stack that has cells; that the command is for. NULL: no more. */
const struct report_case *stack_next_case(const struct lint *lint, const struct stack *stack,
                                          const struct report_case *before);
const struct report_case *command_next_case(const struct lint_command *c,
                                            const struct report_case *before);
const struct shell_script *working_script(struct lint *lint, const struct stack *stack,
                                          const struct command *command);

/* Adds a finding once: the same id and message in the same stack (or report, without a stack) is left out. */
void lint_add(struct lint *lint, const char *id, struct spot at, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* A defect that one line shows. $1 to $4 in the message are groups of the pattern. */
struct lint_row {
    const char *id;
    const char *programs; /* "mv cp"; "!git": any other; NULL: all */
    const char *pattern;
    const char *message;
};
/* One finding for each match of a row in c->line. */
void lint_by_rows(const struct lint_command *c, const struct lint_row *rows, size_t n);
/* What a variable's value or another word of a line is: up to the blank. */
#define WORD   "([^ ]+)"
#define COMMIT "[0-9a-f]{7,40}"

static inline bool lint_has(struct lint *lint, const char *pattern, struct str text)
{
    return patterns_find(&lint->patterns, pattern, text, NULL, 0);
}
/* The pattern's first group; NULL: it is not there. */
static inline struct str lint_part(struct lint *lint, const char *pattern, struct str text)
{
    struct str g[2];
    return patterns_find(&lint->patterns, pattern, text, g, 2) ? g[1] : STR_EMPTY;
}
/* Below a stack, or below the report. */
static inline struct spot in_stack(const struct stack *stack, const char *below)
{
    return (struct spot){.stack = stack, .below = below};
}

void lint_pins(struct lint *lint);       /* images, sources, data, versions */
void lint_commands(struct lint *lint);   /* printed commands, stack by stack, by the following */
void lint_conditions(struct lint *lint); /* not stated, or stated twice */
void lint_rows(struct lint *lint);       /* what is compared with what */

void lint_archives(struct lint *lint, const struct stack *s);  /* downloads, unpacking, checksums */
void lint_git(struct lint *lint, const struct stack *s);       /* clones and checkouts */
void lint_packages(const struct lint_command *c);              /* downloads of code, installs */
void lint_variables(struct lint *lint, const struct stack *s); /* misspelt, without a dollar */
void lint_containers(const struct lint_command *c);            /* docker run and its like */
void lint_launches(const struct lint_command *c);              /* size and placement of the job */
void lint_not_printed(struct lint *lint, const struct stack *s); /* cases without a launch */
void lint_settings(const struct lint_command *c);                /* batch, steps, seed, precision */
void lint_recipes(struct lint *lint, const struct stack *s);     /* the same of what is to run */

extern const char ARCHIVE_SUFFIXES[];

bool to_count(struct str text, int64_t max, int64_t *ret);
/* Whether git can clone it: not a page of a code host, not an archive. */
bool url_can_be_cloned(struct lint *lint, struct str url);
bool is_unknown(struct str s); /* contains a $NAME whose value is unknown */
bool is_list_log(const struct command *command);

/* Whether a checksum program runs: md5sum, shasum, openssl dgst, aria2c --checksum ... */
bool is_checksum(const struct lint_command *c);
/* The CUDA that a package is built for by its name or version: "10.2", "9.2", or "11" if there is no more detail; ptr NULL:
   none. */
struct str package_cuda(struct lint *lint, struct str version);
/* Whether "10.2" and a stated "10.2.89" or "10" agree as far as both go. */
bool same_cuda(struct str built, struct str stated);

/* The stack's printed `docker run`: false if none is printed. */
struct lint_container {
    struct spot at;
    bool is_host_ipc;
    struct str shm; /* NULL: not given */
};
bool lint_container_of(struct lint *lint, const struct stack *s, struct lint_container *ret);

struct names { /* a VEC */
    struct str *items;
    size_t n;
    size_t n_max;
};
void add_name(struct names *names, struct str name); /* once */
