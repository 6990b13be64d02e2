/* SPDX-License-Identifier: Apache-2.0 */
/* The one archive of a dataset that was made of a folder: its bytes are a function of its files. */
#pragma once

#include "codec/digest.h"
#include "store/store.h"
#include "sys/tree.h"

struct dataset_tar_opts {
    const struct tree_list *list; /* the files */
    const char *folder;           /* where they are */
    const char *name;             /* the archive's while it is made */
    const uint8_t *wanted;        /* its SHA-256; NULL: whatever comes */
};

/* Makes it a blob of the store. ERR_INTEGRITY where the wanted one does not come of it, and nothing is kept. */
MUST_CHECK int dataset_tar(struct store *store, const struct dataset_tar_opts *opts,
                           struct digest_value *ret_value, struct err *err);
