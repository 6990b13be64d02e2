/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole reads with a cap, atomic writes, folders, walking. Paths are NUL-terminated. Every fd is O_CLOEXEC. */
#pragma once

#include "base/str.h"
#include "base/vec.h"

static inline void fd_cleanup(int *fd); /* CLEANUP(fd) int fd = -1; */
void fd_close(int *fd);
CLEANUP_BY(fd, int, fd_close);
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Opens a regular file for reading, without waiting for a pipe's other end. Anything else is ERR_IO. */
struct stat;
MUST_CHECK int fs_open(const char *path, int *ret_fd, struct stat *ret_info, struct err *err);

/* The whole file, NUL-terminated after its end, in the arena. Over max_bytes, or not a regular file: an error. */
MUST_CHECK int fs_read(struct arena *arena, const char *path, size_t max_bytes,
                       struct str *ret_text, struct err *err);

/* Whether a rename may replace it: a regular file, or nothing. A rename would destroy a device or a pipe. */
MUST_CHECK int fs_check_target(const char *path, struct err *err);

/* Temporary name, fsync, rename, fsync of the folder: leaves either the old file or the whole new one. A device or pipe of
   that name is written to directly. */
MUST_CHECK int fs_write_atomic(const char *path, struct str content, struct err *err);

/* The same without the syncs: after a power loss it may be the old file, the new one or empty. For files that can be made
   again. */
MUST_CHECK int fs_replace(const char *path, struct str content, struct err *err);

/* The last FS_TAIL_BYTES of a file; ptr NULL where it cannot be read. */
#define FS_TAIL_BYTES 8192
struct str fs_read_tail(struct arena *arena, const char *path);
/* Fewer than size bytes only at the end of the file. */
MUST_CHECK int fs_fill(int fd, void *dst, size_t size, const char *name, size_t *ret_len,
                       struct err *err);
/* All of len bytes from there on; ERR_INTEGRITY where the file ends before. */
MUST_CHECK int fs_read_at(int fd, void *dst, size_t len, uint64_t offset, const char *name,
                          struct err *err);
MUST_CHECK int fs_write_at(int fd, const void *ptr, size_t len, uint64_t offset, const char *name,
                           struct err *err);
/* Whether so many bytes are free on the disk of an open file: ERR_DISK, "WHAT needs ..." */
MUST_CHECK int fs_expect_room(int fd, uint64_t bytes, const char *what, struct err *err);
/* A lock file of any name, made if it is not there; closing the fd gives it back. A stop ends the wait with ERR_INTERRUPTED. */
MUST_CHECK int fs_lock(const char *path, int *ret_fd, struct err *err);
MUST_CHECK int fs_write_all(int fd, const void *ptr, size_t len, const char *name, struct err *err);
/* The parent of each folder that it makes is synced. */
MUST_CHECK int fs_mkdir_p(const char *path, struct err *err);
/* The folders above it; the second, in a folder that is thrown away, syncs none. */
MUST_CHECK int fs_mkdir_above(const char *path, struct err *err);
MUST_CHECK int fs_scratch_above(const char *path, struct err *err);
MUST_CHECK int
fs_remove_tree(const char *path,
               struct err *err); /* absent: nothing to do; symlinks are not followed */
/* What nobody needs any more: a failure is logged at debug. */
void fs_drop_tree(const char *path);
bool fs_exists(const char *path);
bool fs_is_dir(const char *path);
char *fs_join(struct arena *arena, const char *folder, const char *name);

struct fs_names {
    char **items; /* in the arena; sorted bytewise */
    size_t n;
};

/* Names in one folder, without . and .. */
MUST_CHECK int fs_list(struct arena *arena, const char *folder, struct fs_names *ret_names,
                       struct err *err);

/* Paths of all regular files and symlinks below, relative to `folder`, sorted bytewise; at most FS_WALK_MAX. */
#define FS_WALK_MAX 4000000
MUST_CHECK int fs_walk(struct arena *arena, const char *folder, struct fs_names *ret_paths,
                       struct err *err);
/* The folders too, without `folder` itself; and those of the files that are none, such as symlinks, once more. */
MUST_CHECK int fs_walk_all(struct arena *arena, const char *folder, struct fs_names *ret_files,
                           struct fs_names *ret_folders, struct fs_names *ret_others,
                           struct err *err);

/* ERR_AUTH where the folder is neither ours nor root's, or anybody may rename what lies in it. Nothing there: no error. */
MUST_CHECK int owner_check(const char *folder, struct err *err);
