/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of the node that are asked something: run, waited for no longer than they may take, what they say kept. */
#ifndef NODE_TOOL_H
#define NODE_TOOL_H

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
bool tool_is_there(const char *name);

#endif
