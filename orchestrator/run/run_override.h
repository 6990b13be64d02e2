/* SPDX-License-Identifier: Apache-2.0 */
/* -C PATH=VALUE on a report: what a run may set differently, and what was published and may not be changed. */
#ifndef RUN_RUN_OVERRIDE_H
#define RUN_RUN_OVERRIDE_H

#include "codec/json_override.h"

/* The report's text with all settings, one after the other. */
MUST_CHECK int run_override(struct arena *arena, const char *const *settings, size_t n,
                            struct str *text, struct json_override **ret_overrides,
                            struct err *err);

#endif
