/* SPDX-License-Identifier: Apache-2.0 */
/* The packed format: a folder of shards and one pack.json. The writer is orchestrator/prep (reperf-pack), the reader
   workloads/data; this header is all that they share. Everything is little endian; the same input gives the same bytes,
   whatever the number of threads.

   A shard:   struct shard_header, zeros up to SHARD_ALIGN
              n_samples x struct shard_entry, in the order of the samples
              zeros up to SHARD_ALIGN, then the data of each sample, each at a multiple of SHARD_DATA_ALIGN with zeros
              between; the file ends with the last sample's last byte
   A sample:  image:  height x width x channels uint8, interleaved (HWC), RGB, rows without padding
              then, for segmentation, its label map: height x width uint8, 255 is ignored
              tokens: six int32 arrays one after the other: input_ids (S), segment_ids (S), input_mask (S),
              masked_lm_positions (P), masked_lm_ids (P), next_sentence_label (1); unused predictions are position 0, id 0
   pack.json is written last: where it is missing the folder is not whole. Its keys: schema_version, dataset, synthetic,
   kind ("classes", "segments", "tokens"), split, n_samples, n_classes (null for tokens), source_sha256 (of the tree's list; null
   where none was given), recipe (an object), sample_order_sha256 (of the list of source paths, one a line, in the order of the
   samples), shards: [{name, bytes, samples, sha256}] with the SHA-256 of the 56 bytes of the header and the 32 of each entry. */
#pragma once

#include "base/base.h"

#define SHARD_MAGIC      "RPSHARD1"
#define SHARD_ALIGN      4096
#define SHARD_DATA_ALIGN 64
#define SHARD_SIDE_MAX   16384
#define SHARD_NAME       "%05u.shard" /* counted from 0 */
#define PACK_NAME        "pack.json"

enum shard_kind { SHARD_CLASSES = 1, SHARD_SEGMENTS = 2, SHARD_TOKENS = 3 };

struct shard_header {
    char magic[8];
    uint32_t kind;         /* enum shard_kind */
    uint32_t n_samples;    /* in this shard */
    uint64_t first_sample; /* of the whole set */
    uint64_t data_offset;  /* of the first sample's bytes */
    uint64_t total_bytes;  /* of the file */
    uint32_t sequence;     /* tokens: S */
    uint32_t predictions;  /* tokens: P */
    uint32_t entries_crc32c;
    uint32_t header_crc32c; /* of the bytes before it */
};

struct shard_entry {
    uint64_t offset; /* in the file */
    uint32_t bytes;  /* image and label map, or tokens */
    uint32_t crc32c; /* of these bytes */
    uint16_t height, width;
    uint16_t channels; /* 3; tokens: 0 */
    uint16_t reserved; /* 0 */
    int32_t label;     /* classes: the class; else -1 */
    uint32_t zero;     /* 0 */
};

_Static_assert(sizeof(struct shard_header) == 56, "part of the format");
_Static_assert(sizeof(struct shard_entry) == 32, "part of the format");
