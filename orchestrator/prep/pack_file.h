/* SPDX-License-Identifier: Apache-2.0 */
/* pack.json, written and read. Its text begins with what determines the shards (the head), so that one comparison of bytes says
   whether two packings are of the same recipe. */
#pragma once

#include "codec/digest.h"
#include "codec/json.h"
#include "data/shard.h"

#define PACK_TEXT_MAX   (16u << 20)
#define PACK_SHARDS_MAX 60000 /* their lines fit into PACK_TEXT_MAX */

struct pack_file_shard {
    struct str name;
    uint64_t bytes, n_samples;
    bool has_sha256;
    uint8_t sha256[SHA256_BYTES];
};

struct pack_file {
    struct str dataset, split;
    bool is_synthetic;
    enum shard_kind kind;
    uint64_t n_samples;
    uint32_t n_classes; /* 0: tokens */
    bool has_source;
    uint8_t source_sha256[SHA256_BYTES];
    struct str recipe; /* JSON in one line */
    bool has_order;
    uint8_t order_sha256[SHA256_BYTES];
    struct pack_file_shard *shards;
    size_t n_shards;
};

void pack_file_head(const struct pack_file *pack, struct strbuf *out);
/* The whole text. */
void pack_file_text(const struct pack_file *pack, struct strbuf *out);
/* Strict; names, numbers of samples and the kind are checked against each other. ERR_INTEGRITY. */
MUST_CHECK int pack_file_parse(struct arena *arena, struct str text, const char *name,
                               struct pack_file *ret_pack, struct err *err);
MUST_CHECK int pack_file_read(struct arena *arena, const char *folder, struct pack_file *ret_pack,
                              struct err *err);
