/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of files and of whole folders. */
#ifndef STORE_BUNDLE_COPY_H
#define STORE_BUNDLE_COPY_H

#include "base/fs.h"
#include "codec/digest.h"

typedef bool (*copy_stop_fn)(void);

/* A regular file into a new one; folders above it are made. A stop is ERR_INTERRUPTED. ret_value (or NULL): its SHA-256. */
MUST_CHECK int copy_file(const char *from, const char *to, copy_stop_fn should_stop,
                         struct digest_value *ret_value, struct err *err);
/* Every regular file below; a symlink or anything else there is an error. */
MUST_CHECK int copy_folder(struct arena *arena, const char *from, const char *to,
                           copy_stop_fn should_stop, struct err *err);

#endif
