/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the packed format (data/shard.h). Each sample's place is known beforehand, so threads decode samples straight to
   where they belong, and the bytes do not depend on their number. Shards appear complete under their names; pack.json comes
   last. An interrupted packing is continued: valid shards of the same recipe are kept. */
#pragma once

#include "codec/json.h"
#include "prep/samples.h"

#define SHARD_BYTES_DEFAULT (256ull << 20)
#define SHARD_BYTES_MIN     (1ull << 12)
#define SHARD_BYTES_MAX     (1ull << 40)

#define PLAN_NAME "packing.part" /* the head of pack.json while shards are being written */

struct packing_opts {
    const char *folder;
    struct str dataset_id;
    struct str split;
    bool is_synthetic;
    bool is_forced; /* files of another recipe are removed */
    uint64_t shard_bytes;
    const struct tree_source *source;
    const struct samples *samples;
    size_t n_threads;
};

struct packing_result {
    uint64_t n_kept; /* shards that were there */
    uint64_t total_bytes;
    size_t n_shards;
    bool was_there; /* all of it */
};

MUST_CHECK int packing_write(struct arena *arena, const struct packing_opts *opts,
                             struct packing_result *ret_result, struct err *err);
