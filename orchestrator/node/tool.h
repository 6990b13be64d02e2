/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs of the node with a time limit and keeps their output. */
#ifndef NODE_TOOL_H
#define NODE_TOOL_H

#include <sys/types.h>

#include "base/strbuf.h"

#define TOOL_LATE   124 /* its time was up: it was ended */
#define TOOL_STUCK  125 /* likewise, but it does not end: abandoned */
#define TOOL_BROKEN 126
#define TOOL_ABSENT 127

/* argv ends with NULL; argv[0] is searched in PATH and the sbin folders. Its output, with stderr if with_errors, is appended to
   out; what does not fit is dropped. Returns its status as the shell reports it. */
int tool_run(const char *const *argv, int64_t limit_ns, bool with_errors, struct strbuf *out);
/* The same for a function in a child, whose stdout is the result: for calls that a dead file system may block for
   ever. */
typedef int (*tool_fn)(void *ctx);
int tool_call(tool_fn fn, void *ctx, int64_t limit_ns, struct strbuf *out);
/* The same for several at once: start each, then step it until it is over (true), waiting for out_fd (-1: its output has ended) to
   be readable, or TOOL_LOOK_MS. */
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
/* A tool_fn that executes the program in ctx. */
struct tool_program {
    const char *const *argv;
    bool with_errors;
};
int tool_program(void *ctx);
bool tool_is_there(const char *name);

#endif
