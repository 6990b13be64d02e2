/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset's tree into shards: packed/NAME/SPLIT of the store, by reperf-pack, each file of the tree checked against the
   tree's list. */
#pragma once

#include "store/dataset_store.h"

struct dataset_pack_opts {
    const struct net_opts *net; /* its clock */
    const char *self;
    const char *const *splits; /* empty: every split whose files a group describes */
    size_t n_splits;
    int64_t n_threads;   /* 0: one a core */
    int64_t shard_bytes; /* 0: reperf-pack's default */
    bool replaces;       /* shards of another recipe or source */
};

/* One split as shards. */
struct dataset_packed {
    struct str split;
    const char *folder;
    struct str said; /* reperf-pack's own JSON document */
};

/* All of it is in the arena. */
struct dataset_packed_list {
    struct dataset_packed *items;
    size_t n;
};

/* ERR_FETCH where there is no tree. What was packed before a failure stays. */
MUST_CHECK int dataset_pack(struct arena *arena, const struct store *store,
                            const struct dataset_here *here, const struct dataset_pack_opts *opts,
                            struct dataset_packed_list *ret_packed, struct err *err);
