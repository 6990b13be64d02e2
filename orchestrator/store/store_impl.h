/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share. Only store/store*.c include it. */
#ifndef STORE_STORE_IMPL_H
#define STORE_STORE_IMPL_H

#include "store/store.h"

#define STORE_PATH_MAX 4096

/* The folder of blobs, for errors that name a path. */
#define STORE_FAIL(err, op, path)                                                                  \
    err_set((err), err_code_of_errno(errno), "%s %s: %s", (op), (path), err_errno_text(errno))

struct store_temp { /* a file in tmp/ that is removed unless it was renamed away */
    char path[STORE_PATH_MAX];
    int fd;
};
MUST_CHECK int store_temp_new(const struct store *store, struct store_temp *ret_temp,
                              struct err *err);
void store_temp_cleanup(struct store_temp *temp);

/* A small file that is replaced whole, written by way of tmp/. */
MUST_CHECK int store_write(const struct store *store, const char *path, struct str text,
                           struct err *err);

#endif
