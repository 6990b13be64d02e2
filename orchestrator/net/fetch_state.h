/* SPDX-License-Identifier: Apache-2.0 */
/* The file `state` next to a half-fetched `data`: which blocks are whole, and their CRC-32C, so that a block that never reached
   the disk is seen. A head in text, written whole and ended by its own checksum; then records of 16 bytes, appended as blocks
   come in, each with a checksum that the head's starts off: a torn or foreign record is passed over. The last record of a block
   counts. The reader is pure and fuzzed.

   reperf-fetch 1 / size N / block N / sha256 HEX|- / md5 HEX|- / mirror URL TAB ETAG TAB LAST-MODIFIED ... / end CRC */
#ifndef NET_FETCH_STATE_H
#define NET_FETCH_STATE_H

#include "codec/digest.h"
#include "net/fetch.h"

#define STATE_RECORD_BYTES 16
#define STATE_BYTES_MAX    (1u << 28)
#define STATE_NO_MIRROR    0xFFFFFFFFu /* of a record: the block is not there after all */

struct state_mirror {
    struct str shown; /* URL without secrets */
    struct str etag, last_modified;
};

struct state_head {
    uint64_t size_bytes;
    uint64_t block_bytes;
    bool has_sha256, has_md5; /* what was expected then */
    uint8_t sha256[SHA256_BYTES];
    uint8_t md5[MD5_BYTES];
    struct state_mirror mirrors[FETCH_MIRRORS_MAX];
    size_t n_mirrors;
};

struct state_block {
    uint32_t crc;
    bool is_there;
    uint8_t mirror; /* that gave it: index into the head's */
};

struct state {
    struct state_head head;
    struct state_block *blocks; /* in the arena */
    size_t n_blocks;
    size_t n_torn; /* records that were passed over */
};

/* ERR_PARSE: the head is not whole or does not make sense. Strings point into text. */
MUST_CHECK int state_parse(struct arena *arena, struct str text, struct state *ret_state,
                           struct err *err);

/* The head's text. ret_seed starts off the records' checksums. */
void state_head_text(const struct state_head *head, struct strbuf *out, uint32_t *ret_seed);
void state_record(uint32_t seed, uint32_t block_idx, uint32_t crc, uint32_t mirror,
                  uint8_t *ret_record);

static inline size_t state_n_blocks(uint64_t size_bytes, uint64_t block_bytes)
{
    return (size_t)(size_bytes / block_bytes + (size_bytes % block_bytes ? 1 : 0));
}

#endif
