/* SPDX-License-Identifier: Apache-2.0 */
/* A list of files in memory, read by the list reader. */
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "sys/tree.h"

typedef int (*tree_text_fn)(struct arena *arena, const char *path, struct tree_list *ret_list,
                            struct err *err);

/* read: tree_list_read or tree_sums_read. */
static inline int tree_text_read(tree_text_fn read, struct arena *arena, struct str text,
                                 struct tree_list *ret_list, struct err *err)
{
    int fd = memfd_create("list", MFD_CLOEXEC);
    char path[64];
    int rc;
    ASSERT(fd >= 0 && fs_write_all(fd, text.ptr, text.len, "list", err) == 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    rc = read(arena, path, ret_list, err);
    close(fd);
    return rc;
}
