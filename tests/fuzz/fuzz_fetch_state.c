/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the state of a half-fetched file: refused, or read as a state whose own text reads back as the same. */
#include "net/fetch_state.h"
#include "tests/fuzz/fuzz.h"

FUZZ(arena, data)
{
    CLEANUP(strbuf) struct strbuf text;
    struct state state, again;
    struct err err = {0};
    strbuf_init(&text, 1 << 26);
    if (state_parse(arena, data, &state, &err) < 0) {
        ASSERT(err.code == ERR_PARSE && err.msg[0]);
        return;
    }
    ASSERT(state.n_blocks ==
           state_n_blocks((uint64_t)state.size_bytes, (uint64_t)state.block_bytes));
    ASSERT(state.n_blocks <= data.len && state.n_mirrors <= FETCH_MIRRORS_MAX);
    state_text(&state, &text);
    ASSERT(state_parse(arena, strbuf_str(&text), &again, &err) == 0);
    ASSERT(again.n_blocks == state.n_blocks && again.n_mirrors == state.n_mirrors);
    ASSERT(str_eq(again.boot, state.boot));
    ASSERT(memcmp(again.map, state.map, state.n_blocks) == 0);
}
