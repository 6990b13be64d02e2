/* SPDX-License-Identifier: Apache-2.0 */
/* Files below one folder, by untrusted paths: symlinks are not followed in any part of a path, and no path leaves the folder.
   openat2 where the kernel has it, else part by part. Paths are relative, without "." and ".." (checked by the caller; here the
   kernel refuses them). 0 or a descriptor, or -1 with errno set. Any thread. */
#pragma once

#include "base/base.h"

#include <sys/types.h>

MUST_CHECK int beneath_open(int root_fd, const char *path, int flags, mode_t mode);
/* mode regardless of the umask; an existing folder is fine. */
MUST_CHECK int beneath_mkdir(int root_fd, const char *path, mode_t mode);
MUST_CHECK int beneath_symlink(int root_fd, const char *path, const char *target);
MUST_CHECK int beneath_link(int root_fd, const char *old_path, const char *path);
