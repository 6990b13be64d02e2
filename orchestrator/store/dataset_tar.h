/* SPDX-License-Identifier: Apache-2.0 */
/* The one archive of a dataset that was made of a folder: its bytes are a function of its files. */
#ifndef STORE_DATASET_TAR_H
#define STORE_DATASET_TAR_H

#include "codec/digest.h"
#include "store/store.h"
#include "sys/tree.h"

/* The files of `list` below `folder` as a tar, a blob of the store; `name` is that of the file while it is made. wanted: its SHA-256, or
   NULL: whatever comes; ERR_INTEGRITY where another one comes, and nothing is kept. */
MUST_CHECK int dataset_tar(struct store *store, const struct tree_list *list, const char *folder,
                           const char *name, const uint8_t *wanted, bool (*should_stop)(void),
                           struct digest_value *ret_value, struct err *err);

#endif
