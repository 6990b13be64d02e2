/* SPDX-License-Identifier: Apache-2.0 */
/* fetch, verify, lock and repair for each kind of thing that a name can stand for: a function each. A report has none:
   those of everything that it needs are used. Such a thing is an artifact in the code, a name to the user, and
   "noun" in the documents. */
#pragma once

#include "cmd/cmd.h"
#include "codec/json.h"
#include "net/net_session.h"
#include "store/artifact.h"
#include "store/store.h"

/* What was asked, the same for all names of a command. */
struct artifact_job {
    const struct cmd_ctx *ctx;
    const struct net_opts *net_opts; /* verify: offline */
    const char *locks; /* --locks, which must be there, but for lock; NULL: as lock_folder has it */
    const struct opt_list *samples; /* --samples SPLIT=N of synthetic datasets; may be NULL */
    enum verify_depth depth;        /* verify */
    const char *folder;             /* verify, repair: where the data lies; NULL: in the store */
    const char *from;               /* repair: a second copy of a dataset's files; or NULL */
    bool wants_tree;                /* fetch: unpack datasets, too */
    bool removes_extra;             /* repair: files that no list names */
    bool is_aside;                  /* of another command: stdout is not touched */
    /* Made by artifact_ops_run. */
    struct arena *arena;
    struct store *store;
    struct net *net; /* net_open before use */
};

/* Puts the members of its result into out, which is inside an object. On failure what was written stays, and *err is reported as
   the item's error; ERR_INTEGRITY means "checked and wrong". */
typedef int (*artifact_fn)(struct artifact_job *job, const struct artifact *artifact,
                           struct json_out *out, struct err *err);

enum artifact_verb { VERB_FETCH, VERB_VERIFY, VERB_LOCK, VERB_REPAIR, VERB_FORESEE, VERBS_N };
/* A file each, dataset_ops.c and so on; NULL: not supported for this kind. */
extern const artifact_fn DATASET_OPS[VERBS_N], IMAGE_OPS[VERBS_N], SOURCE_OPS[VERBS_N];

/* `PATH --as NAME`: that the one operand is there, and NAME a dataset's. */
MUST_CHECK int artifact_check_as(struct arena *arena, const struct cmd_ctx *ctx, const char *verb,
                                 const char *as, const struct opt_list *operands, struct err *err);

/* Handles every name in turn, reports as everything that they need; continues after a failure, and ends with the first one's
   error. Prints one document, {schema_version, command, items: [{noun, ..., error}]}, or its text. Returns the exit status, or -1
   with *err filled. */
MUST_CHECK int artifact_ops_run(struct artifact_job *job, enum artifact_verb verb,
                                const struct opt_list *names, bool is_synthetic, bool want_json,
                                struct err *err);

/* Every blob of the store, as `data verify` checks them (cmd_store.c). */
MUST_CHECK int store_verify_all(const struct cmd_ctx *ctx, const struct cmd_call *call,
                                bool is_quick, bool want_json, struct err *err);
