/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `reperf store` share: cmd/cmd_store.c reads the command line, each cmd/store_*.c has some of its verbs. */
#ifndef CMD_STORE_ARGS_H
#define CMD_STORE_ARGS_H

#include "base/opt.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "store/store.h"

struct store_args {
    bool want_json;
    bool is_dry_run; /* gc */
    bool is_quick;   /* verify */
    int64_t grace_s; /* gc; -1: the defaults */
};

struct store_cmd { /* one call */
    const struct cmd_ctx *ctx;
    const struct store_args *args;
    struct arena *arena;
    struct store *store;
    const char *const *operands; /* after the verb */
    size_t n_operands;
    struct strbuf *buf;   /* the output */
    struct json_out *out; /* begun, in the top object, where want_json */
};

/* 0, an exit status, or -1. */
int store_ls(struct store_cmd *cmd, struct err *err);
int store_drop(struct store_cmd *cmd, struct err *err);
int store_path_of(struct store_cmd *cmd, struct err *err);
int store_add(struct store_cmd *cmd, struct err *err);
int store_gc_now(struct store_cmd *cmd, struct err *err);
int store_check(struct store_cmd *cmd, struct err *err);

/* Every blob of the store, as `store verify` checks them. */
int store_verify_all(const struct cmd_ctx *ctx, const struct store_args *args, struct err *err);

/* "148.0 GB" */
char *store_size_text(struct arena *arena, uint64_t size_bytes);

#endif
