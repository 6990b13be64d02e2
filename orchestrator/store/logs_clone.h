/* SPDX-License-Identifier: Apache-2.0 */
/* --logs CLONE: a git repository, bare or not, under any name; --logs store: of each report what `fetch logs:REPORT` got. The
   logs of the reports' commits are read out of it into a folder of their own, laid out as --logs has it, whatever is checked
   out. */
#pragma once

#include "base/command.h"
#include "load/load.h"
#include "store/git.h"

struct logs_clone {
    const char *folder; /* NULL: --logs is no repository */
    struct temp *temp;
};
void logs_clone_cleanup(struct logs_clone *clone);

/* The git folder of a clone's root, a bare one, a work tree or a submodule; NULL where the folder is none of them. */
const char *git_dir_of(const struct git *git, const char *folder);
/* ERR_NOT_FOUND if the repository, or the store, lacks the commit of a report's logs. A log that the commit lacks is left out. */
MUST_CHECK int logs_clone_read(struct arena *arena, const struct cmd_ctx *ctx, const char *folder,
                               const struct report_set *reports, struct logs_clone *ret,
                               struct err *err);
