/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the node that are asked something: run, waited for no longer than they may take, what they say kept. */
#ifndef NODE_TOOL_H
#define NODE_TOOL_H

#include <sys/types.h>

#include "base/strbuf.h"

#define TOOL_LATE   124 /* its time was up: it was ended */
#define TOOL_STUCK  125 /* so it was, and it does not end: it is left */
#define TOOL_BROKEN 126
#define TOOL_ABSENT 127

/* argv ends with NULL; argv[0] is looked for on PATH and where administrators' programs are. What it prints, its errors too where
   with_errors, is appended to out; what does not fit is dropped. Returns its status as the shell says it. */
int tool_run(const char *const *argv, int64_t limit_ns, bool with_errors, struct strbuf *out);
/* The same of a function in a child, whose stdout is what counts: for what a dead file system may never let go. */
typedef int (*tool_fn)(void *ctx);
int tool_call(tool_fn fn, void *ctx, int64_t limit_ns, struct strbuf *out);
/* The same, of several at once: begun, then stepped until each is over (true), waiting for out_fd (-1: it says nothing more) to be
   readable, or TOOL_LOOK_MS. */
struct tool {
    pid_t pid;
    int out_fd;
    int64_t until_ns;
    int n_ends; /* signals sent to end it */
    int status;
    bool is_over, is_stuck;
};
#define TOOL_LOOK_MS 20
void tool_begin(struct tool *tool, tool_fn fn, void *ctx, int64_t limit_ns);
bool tool_step(struct tool *tool, struct strbuf *out, int *ret_status);
/* A tool_fn that becomes a program: ctx is it. */
struct tool_program {
    const char *const *argv;
    bool with_errors;
};
int tool_program(void *ctx);
bool tool_is_there(const char *name);

#endif
