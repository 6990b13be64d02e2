/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the packed format (data/shard.h). Each sample's place is known beforehand, so threads decode samples straight to where they
   belong, and the bytes do not depend on their number. Shards appear complete under their names; pack.json comes last. An
   interrupted packing is continued: valid shards of the same recipe are kept. */
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

/* One sample's bytes into dst. slot is a thread's own. */
struct hdf5_file;
struct packing_slot {
    struct image_decoder decoder;
    struct file_bytes file, partner;
    uint8_t *sample; /* owned: one sample */
    size_t sample_bytes;
    const char *hdf5_path; /* of the HDF5 file */
    struct hdf5_file *hdf5;
    int32_t *rows; /* owned: some of its rows, from first_row on */
    uint64_t first_row;
    uint32_t n_rows;
};
void packing_slot_release(void *slot);
struct packing_from {
    const struct tree_source *source;
    const struct samples *samples;
};
MUST_CHECK int packing_sample(struct packing_from from, const struct image_sample *sample,
                              struct packing_slot *slot, uint8_t *dst, struct err *err);
