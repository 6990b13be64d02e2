/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"

#include "cmd/guests.h"
#include "cmd/nodes.h"

/* One a line. */
/* clang-format off */
static const struct cmd *const CMDS[] = {
    &CMD_ATTACH,
    &CMD_AUDIT,
    &CMD_BUNDLE,
    &CMD_CANCEL,
    &CMD_COMPARE,
    &CMD_COMPLETION,
    &CMD_EXPLAIN,
    &CMD_FETCH,
    &CMD_HISTORY,
    &CMD_IMAGE,
    &CMD_IMPORT,
    &CMD_KEYGEN,
    &CMD_LIST,
    &CMD_LOCK,
    &CMD_MEASURE,
    &CMD_NODES,
    &CMD_PACK,
    &CMD_PLAN,
    &CMD_REPAIR,
    &CMD_REPLAY,
    &CMD_REPORT,
    &CMD_RESUME,
    &CMD_RUN,
    &CMD_SEAL,
    &CMD_STATUS,
    &CMD_STORE,
    &CMD_TREE,
    &CMD_UNPACK,
    &CMD_VERIFY,
    NULL,
};
/* clang-format on */

const struct cmd *cmd_at(size_t idx)
{
    const struct cmd *const *own = CMDS;
    const struct cmd *const *theirs = GUESTS.cmds;
    for (;; idx--) {
        bool is_own = *own && (!*theirs || strcmp((*own)->name, (*theirs)->name) < 0);
        const struct cmd *c = is_own ? *own++ : *theirs ? *theirs++ : NULL;
        if (!c || idx == 0) {
            return c;
        }
    }
}

const struct cmd *const *cmd_verbs(const struct cmd *c)
{
    return c == &CMD_NODES ? NODES_VERBS : NULL;
}
