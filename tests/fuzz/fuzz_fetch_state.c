/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the state of a half-fetched file: refused, or read as a state whose own text and records read back as the same. */
#include "base/base.h"
#include "net/fetch_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE_MAX_BYTES (1u << 20) /* a claim of more blocks is only slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    struct state state, again;
    struct err err = {0};
    uint32_t seed;
    strbuf_init(&text, 1 << 26);
    if (state_parse(&arena, (struct str){(const char *)data, size}, &state, &err) < 0) {
        ASSERT(err.code == ERR_PARSE && err.msg[0]);
        return 0;
    }
    ASSERT(state.n_blocks == state_n_blocks(state.head.size_bytes, state.head.block_bytes));
    if (state.n_blocks > SIZE_MAX_BYTES / STATE_RECORD_BYTES) {
        return 0;
    }
    state_head_text(&state.head, &text, &seed);
    for (size_t idx = 0; idx < state.n_blocks; idx++) {
        uint8_t record[STATE_RECORD_BYTES];
        if (state.blocks[idx].is_there) {
            ASSERT(state.blocks[idx].mirror < state.head.n_mirrors);
            state_record(seed, (uint32_t)idx, state.blocks[idx].crc, state.blocks[idx].mirror,
                         record);
            strbuf_add(&text, record, sizeof(record));
        }
    }
    ASSERT(state_parse(&arena, strbuf_str(&text), &again, &err) == 0);
    ASSERT(again.n_torn == 0 && again.n_blocks == state.n_blocks);
    ASSERT(memcmp(again.head.md5, state.head.md5, MD5_BYTES) == 0);
    for (size_t idx = 0; idx < state.n_blocks; idx++) {
        ASSERT(again.blocks[idx].is_there == state.blocks[idx].is_there);
        ASSERT(!again.blocks[idx].is_there || again.blocks[idx].crc == state.blocks[idx].crc);
    }
    return 0;
}
