/* SPDX-License-Identifier: Apache-2.0 */
/* Test programs are in a folder below that of the programs built with them. */
#pragma once

#include <libgen.h>
#include <limits.h>
#include <unistd.h>

/* REPERF_NODE is ../reperf-node from here, unless it is set. */
static inline void use_built_node(void)
{
    char self[PATH_MAX] = "", path[PATH_MAX + 32];
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0) {
        snprintf(path, sizeof(path), "%s/reperf-node", dirname(dirname(self)));
        (void)setenv("REPERF_NODE", path, 0);
    }
}
