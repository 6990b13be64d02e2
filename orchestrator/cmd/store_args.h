/* SPDX-License-Identifier: Apache-2.0 */
/* What other commands use of cmd/cmd_store.c. */
#ifndef CMD_STORE_ARGS_H
#define CMD_STORE_ARGS_H

#include "cmd/cmd.h"

/* Every blob of the store, as `store verify` checks them. */
MUST_CHECK int store_verify_all(const struct cmd_ctx *ctx, const struct cmd_call *call,
                                bool is_quick, bool want_json, struct err *err);

/* "148.0 GB" */
char *store_size_text(struct arena *arena, uint64_t size_bytes);

#endif
