/* SPDX-License-Identifier: Apache-2.0 */
/* A packed dataset (data/shard.h) opened for reading. Every number in pack.json, the shards' headers and their entries is
   checked against the others and the files' sizes before it is used; the lists by SHA-256 and CRC-32C at open, each sample
   by CRC-32C as it is read. After pack_open it is read-only: any number of threads may call pack_read. */
#pragma once

#include "base/str.h"
#include "core/sha256.h"
#include "data/shard.h"

#define PACK_SHARDS_MAX  100000 /* five digits in a name */
#define PACK_SAMPLES_MAX (INT64_C(1) << 32)
#define PACK_CLASSES_MAX 1000000
#define PACK_IGNORED     255 /* label of a pixel that counts for nothing */

struct pack_shard {
    const char *name;
    int64_t bytes, n_samples, first_sample;
    char sha256[SHA256_HEX_LEN + 1];
    int fd;
    const struct shard_entry *entries;
};

struct pack {
    struct arena arena;
    const char *path;
    const char *dataset, *split;
    bool is_synthetic;
    enum shard_kind kind;
    int64_t n_samples;
    int64_t n_classes;                      /* tokens: 0 */
    int64_t sequence, predictions;          /* tokens */
    int64_t sample_bytes_max;               /* of one sample, rounded up to SHARD_DATA_ALIGN */
    char sha256[SHA256_HEX_LEN + 1];        /* of pack.json */
    char source_sha256[SHA256_HEX_LEN + 1]; /* "" where it is not known */
    struct pack_shard *shards;
    int64_t n_shards;
};

/* ERR_INTEGRITY where the folder is incomplete or not what pack.json says, ERR_PARSE where pack.json itself is
   wrong. */
MUST_CHECK int pack_open(struct pack *pack, const char *path, struct err *err);
void pack_release(struct pack *pack);
static inline void pack_cleanup(struct pack *pack)
{
    pack_release(pack);
}

/* pack.json alone; texts go into pack->arena, files are not read. */
MUST_CHECK int pack_parse(struct pack *pack, struct str text, struct err *err);

/* "classes", "segments" or "tokens". */
const char *shard_kind_name(enum shard_kind kind);

struct pack_sample {
    int64_t height, width;
    int64_t label;         /* classes */
    const uint8_t *pixels; /* (height, width, 3) */
    const uint8_t *labels; /* segments: (height, width), each below n_classes or PACK_IGNORED */
    const int32_t *tokens; /* tokens: six arrays, see data/shard.h */
};

/* Into buf, which has sample_bytes_max bytes and is aligned to 8; what *ret_sample points to lies there. sample: [0, n_samples). */
MUST_CHECK int pack_read(const struct pack *pack, int64_t sample, uint8_t *buf,
                         struct pack_sample *ret_sample, struct err *err);

/* Tells the kernel that this sample will be read soon. */
void pack_advise(const struct pack *pack, int64_t sample);
