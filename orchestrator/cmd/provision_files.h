/* SPDX-License-Identifier: Apache-2.0 */
/* The part of `nodes provision` that brings files: the bundled workload's program, packed data, sources. */
#ifndef CMD_PROVISION_FILES_H
#define CMD_PROVISION_FILES_H

#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "fleet/fleet.h"
#include "store/store.h"

struct provision_files {
    const struct cmd_ctx *ctx;
    const struct store *store; /* of sources; may be NULL without */
    const char *locks;
    bool wants_program;
    const char *data; /* as `run --data` takes it, or NULL */
    struct opt_list sources;
};

static inline bool provision_files_any(const struct provision_files *files)
{
    return files->wants_program || files->data || files->sources.n;
}

/* Puts "files" into the open object and rows into the table. -1: nothing was done. A node that failed has its err. */
MUST_CHECK int provision_files_bring(struct arena *arena, const struct provision_files *files,
                                     struct fleet *fleet, struct json_out *out, struct table *table,
                                     struct err *err);

#endif
