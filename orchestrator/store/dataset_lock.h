/* SPDX-License-Identifier: Apache-2.0 */
/* Records a dataset the first time that it is resolved: sizes, digests, digests of pieces, the tree's list, each with date and
   source. */
#pragma once

#include "store/dataset_store.h"

struct dataset_locked {
    const char *path;
    bool is_new; /* something was added */
    struct lock lock;
};

/* fetched: with its tree. ERR_INTEGRITY if an earlier lock differs. */
struct dataset_lock_from {
    const struct store *store;
    const struct dataset_here *here;
    const struct net_opts *net;
    const struct dataset_fetched *fetched;
};
MUST_CHECK int dataset_lock(struct arena *arena, const struct dataset_lock_from *from,
                            struct dataset_locked *ret_locked, struct err *err);
