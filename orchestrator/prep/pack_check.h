/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a folder of shards against its pack.json and themselves. */
#pragma once

#include "prep/pack_file.h"

struct check_result {
    struct pack_file pack; /* in the arena; n_shards 0 if pack.json itself is invalid */
    const char **faults;   /* in the arena: "00003.shard: sample 17: ...", at most one a file */
    size_t n_faults;
    uint64_t bytes; /* all shards */
};

/* An error only if the check itself could not be done; what is wrong is in the faults. */
MUST_CHECK int check_folder(struct arena *arena, const char *folder, size_t n_threads,
                            struct check_result *ret_result, struct err *err);
