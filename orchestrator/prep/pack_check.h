/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a folder of shards against its pack.json and itself, and, deep, against the tree that it was made from: every sample is
   decoded again and compared. Goes on after a fault, so that all are named. */
#ifndef PREP_PACK_CHECK_H
#define PREP_PACK_CHECK_H

#include "prep/pack_file.h"
#include "prep/samples.h"

#define CHECK_FAULTS_MAX 10000 /* named; further ones are counted */

struct check_opts {
    const char *folder;
    size_t n_threads;
    /* Deep; else NULL. */
    const struct dataset *dataset;
    const char *dataset_path;
    const struct tree_source *source;
};

struct check_result {
    struct pack_file pack; /* in the arena; n_shards 0 if pack.json itself is invalid */
    const char **faults;   /* in the arena: "00003.shard: sample 17: ..." */
    size_t n_faults;       /* named */
    uint64_t n_all;        /* found */
    uint64_t bytes;        /* of all shards */
    bool is_deep;
};

/* An error only if the check itself could not be done; what is wrong is in the faults. */
MUST_CHECK int check_folder(struct arena *arena, const struct check_opts *opts,
                            struct check_result *ret_result, struct err *err);

#endif
