/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a relay: the first byte selects an order, a chain, a line or a frame. What is accepted can be written and read
   again, and none of its paths leaves its folder. */
#include "base/base.h"

#include "codec/relay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_order(struct arena *arena, struct str text)
{
    struct relay_order order;
    struct strbuf out;
    struct err err = {0};
    if (relay_order_parse(arena, text, &order, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        return;
    }
    for (size_t idx = 0; idx < order.n_files; idx++) {
        const char *path = order.files[idx].path;
        ASSERT(path[0] != '/');
        ASSERT(strncmp(path, "../", 3) != 0);
        ASSERT(!strstr(path, "/../"));
        ASSERT(order.files[idx].item < order.n_items);
    }
    strbuf_init(&out, RELAY_ORDER_MAX);
    ASSERT(relay_order_write(&order, &out, &err) == 0);
    /* Lines before the first item may have any order when read, and have one when written. */
    ASSERT(relay_order_parse(arena, strbuf_str(&out), &order, &err) == 0);
    strbuf_release(&out);
}

static void try_chain(struct arena *arena, struct str text)
{
    struct relay_hop *hops;
    struct strbuf out;
    struct err err = {0};
    size_t n;
    if (relay_hops_parse(arena, text, &hops, &n, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY);
        return;
    }
    strbuf_init(&out, 1u << 24);
    relay_hops_write(hops, n, &out);
    ASSERT(relay_hops_parse(arena, strbuf_str(&out), &hops, &n, &err) == 0);
    strbuf_release(&out);
}

static void try_line(struct str text)
{
    struct relay_line line;
    if (relay_line_parse(text, &line)) {
        ASSERT(line.word < RELAY_WORD_COUNT);
    }
}

static void try_frame(struct str text)
{
    struct relay_frame frame;
    uint8_t header[RELAY_HEADER_BYTES];
    struct err err = {0};
    if (text.len < RELAY_HEADER_BYTES) {
        return;
    }
    if (relay_frame_decode((const uint8_t *)text.ptr, &frame, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY);
        return;
    }
    ASSERT(frame.len <= RELAY_BLOCK_BYTES);
    relay_frame_encode(&frame, header);
    ASSERT(memcmp(header, text.ptr, RELAY_HEADER_BYTES) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (size == 0) {
        return 0;
    }
    struct str text = {(const char *)data + 1, size - 1};
    switch (data[0] & 3) {
    case 0:
        try_order(&arena, text);
        break;
    case 1:
        try_chain(&arena, text);
        break;
    case 2:
        try_line(text);
        break;
    default:
        try_frame(text);
        break;
    }
    return 0;
}
