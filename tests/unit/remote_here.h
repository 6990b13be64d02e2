/* SPDX-License-Identifier: Apache-2.0 */
/* This machine as a remote of a test. */
#pragma once

#include "fleet/remote.h"
#include "looped.h"
#include "scratch.h"
#include "tests/servers/built_node.h"

CLEANUP_POINTER(remote, struct remote, remote_free);

/* Its files in that folder. */
#define REMOTE_BELOW(folder)                                                                       \
    LOOP(loop);                                                                                    \
    CLEANUP(remote) struct remote *remote = remote_local_new(&loop, folder)

static UNUSED int node_group_start(void **state)
{
    use_built_node();
    return scratch_group_start(state);
}
