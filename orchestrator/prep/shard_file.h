/* SPDX-License-Identifier: Apache-2.0 */
/* One shard of the packed format, as it lies on disk: laid out, sealed, opened and checked. */
#pragma once

#include <stdatomic.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "data/shard.h"
#include "prep/bert_tokens.h"

static inline uint64_t shard_align(uint64_t at, uint64_t to)
{
    return (at + to - 1) / to * to;
}

/* Where data begins after n entries. */
static inline uint64_t shard_data_offset(uint64_t n_samples)
{
    return shard_align(SHARD_ALIGN + n_samples * sizeof(struct shard_entry), SHARD_ALIGN);
}

/* Fills both CRCs of the header. */
void shard_seal(struct shard_header *header, const struct shard_entry *entries);
void shard_sha256(const struct shard_header *header, const struct shard_entry *entries,
                  uint8_t *ret_sha256);

struct shard_file {
    const char *name; /* borrowed: for messages */
    int fd;
    struct shard_header header;
    struct shard_entry *entries; /* owned */
    uint64_t sample_bytes_max;
    uint8_t sha256[SHA256_BYTES];
};
#define SHARD_FILE_EMPTY ((struct shard_file){.fd = -1})

/* Header and entries, checked against themselves and the file's size: every field, every offset, both CRCs, zeros between. */
MUST_CHECK int shard_file_open(struct shard_file *shard, const char *path, const char *name,
                               struct err *err);
void shard_file_release(struct shard_file *shard);
CLEANUP_BY(shard_file, struct shard_file, shard_file_release);
/* Every sample: its CRC, zeros after it, classes, label maps and tokens in their range. */
MUST_CHECK int shard_file_check(const struct shard_file *shard, uint32_t n_classes,
                                const atomic_bool *is_cancelled, struct err *err);
