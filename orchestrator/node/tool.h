/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs of the node with a time limit and keeps their output. */
#pragma once

#include "base/strbuf.h"

#define TOOL_LATE   124 /* its time was up: it was ended */
#define TOOL_STUCK  125 /* likewise, but it does not end: abandoned */
#define TOOL_BROKEN 126
#define TOOL_ABSENT 127

/* argv ends with NULL; argv[0] is searched in PATH and the sbin folders. Its output, with stderr if with_errors, is appended to
   out; what does not fit is dropped. Returns its status as the shell reports it. */
int tool_run(const char *const *argv, int64_t limit_ns, bool with_errors, struct strbuf *out);
bool tool_is_there(const char *name);
