/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a relay: the first byte selects an order or a line. What is accepted can be written and read again, and no path of an
   order leaves its folder. */
#include "tests/fuzz/fuzz.h"

#include "codec/relay.h"

static void try_order(struct arena *arena, struct str text)
{
    struct relay_order order;
    struct strbuf out;
    struct err err = {0};
    if (relay_order_parse(arena, str_dup(arena, text), &order, &err) < 0) {
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
    uint64_t size_bytes;
    struct str whole = strbuf_str(&out);
    size_t head = (size_t)(strchr(out.ptr, '\n') + 1 - out.ptr);
    ASSERT(relay_order_head(str_sub(whole, 0, head), &size_bytes));
    ASSERT(size_bytes == whole.len - head);
    ASSERT(relay_order_parse(arena, str_sub(whole, head, whole.len), &order, &err) == 0);
    strbuf_release(&out);
}

static void try_line(struct arena *arena UNUSED, struct str text)
{
    struct relay_line line;
    if (relay_line_parse(text, &line)) {
        ASSERT(line.word < RELAY_WORD_COUNT);
    }
}

FUZZ_READERS(try_order, try_line)
