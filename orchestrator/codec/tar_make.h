/* SPDX-License-Identifier: Apache-2.0 */
/* A tar of regular files, in the order in which they are given: its bytes are a function of the names and contents alone.
   pax where ustar cannot hold a name; owner 0, mode 0644, the time of every archive of ours. One thread uses it. */
#ifndef CODEC_TAR_MAKE_H
#define CODEC_TAR_MAKE_H

#include "base/err.h"

struct tar_maker {
    void *archive; /* libarchive's */
};
#define TAR_MAKER_EMPTY ((struct tar_maker){0})

/* Writes to fd, which stays the caller's. */
MUST_CHECK int tar_make_open(struct tar_maker *maker, int fd, struct err *err);
/* The file at `path` as the member `name`. ERR_IO, ERR_NOT_FOUND; ERR_INTEGRITY where its size changes meanwhile. */
MUST_CHECK int tar_make_file(struct tar_maker *maker, const char *name, const char *path,
                             struct err *err);
MUST_CHECK int tar_make_close(struct tar_maker *maker, struct err *err);
void tar_maker_cleanup(struct tar_maker *maker);

#endif
