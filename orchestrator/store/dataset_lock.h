/* SPDX-License-Identifier: Apache-2.0 */
/* Records a dataset the first time that it is resolved: sizes, digests, digests of pieces, the tree's list, each with date and
   source. */
#pragma once

#include "store/dataset_store.h"

struct dataset_locked {
    const char *path;
    bool is_new; /* something was added */
};

/* fetched: with its tree, and not synthetic. ERR_INTEGRITY if an earlier lock differs. */
MUST_CHECK int dataset_lock(const struct dataset_job *job, const struct dataset_fetched *fetched,
                            struct dataset_locked *ret_locked, struct err *err);
