/* SPDX-License-Identifier: Apache-2.0 */
/* The file `state` next to a half-fetched `data`: a JSON document, written whole, then one byte a block, which is overwritten
   when the block is in `data`. Both outlive the process (they are the kernel's by then) but not the machine: the document
   names the boot. The reader is pure and fuzzed. */
#pragma once

#include "codec/digest.h"
#include "net/fetch.h"

#define STATE_BYTES_MAX (1u << 24)

/* The bytes of the map. What is taken when the process dies is missing. */
enum {
    BLOCK_MISSING = '.',
    BLOCK_TAKEN = '-', /* a connection is bringing it */
    BLOCK_DONE = '#',
    BLOCK_KEPT = '+', /* done, by an earlier process */
};

struct state_mirror {
    struct str shown; /* URL without secrets */
    struct str etag, last_modified;
};

struct state {
    struct str boot; /* /proc/sys/kernel/random/boot_id; "": not known */
    int64_t size_bytes, block_bytes;
    struct state_mirror *mirrors;
    size_t n_mirrors;
    const char *map; /* n_blocks bytes */
    size_t n_blocks;
};

/* ERR_PARSE: it is not whole, or does not make sense. The map points into text. */
MUST_CHECK int state_parse(struct arena *arena, struct str text, struct state *ret_state,
                           struct err *err);
void state_text(const struct state *state, struct strbuf *out);

static inline size_t state_n_blocks(uint64_t size_bytes, uint64_t block_bytes)
{
    return (size_t)(size_bytes / block_bytes + (size_bytes % block_bytes ? 1 : 0));
}
