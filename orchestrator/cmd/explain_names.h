/* SPDX-License-Identifier: Apache-2.0 */
/* What `reperf explain` knows by a name: words that commands print, rules, and cells of reports. */
#pragma once

#include "cmd/cmd.h"

struct explain_args {
    bool want_json, is_verbose;
    const char *logs_folder;
};

/* Explains each of the operands, or every word where there is none. */
MUST_CHECK int explain_names(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err);
