/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a relay: the first byte selects an archive, an order, a hop or a line. What is accepted can be written and read again,
   no path of an order leaves its folder, and an archive is taken alike in any pieces. */
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
    uint64_t size_bytes;
    struct str whole = strbuf_str(&out);
    size_t head = (size_t)(strchr(out.ptr, '\n') + 1 - out.ptr);
    ASSERT(relay_order_head(str_sub(whole, 0, head), &size_bytes));
    ASSERT(size_bytes == whole.len - head);
    ASSERT(relay_order_parse(arena, str_sub(whole, head, whole.len), &order, &err) == 0);
    strbuf_release(&out);
}

static void try_hop(struct arena *arena, struct str text)
{
    struct relay_hop hop;
    struct strbuf out;
    if (!relay_hop_parse(arena, text, &hop)) {
        return;
    }
    strbuf_init(&out, 1u << 16);
    relay_hop_write(&hop, &out);
    ASSERT(relay_hop_parse(arena, strbuf_str(&out), &hop));
    strbuf_release(&out);
}

static void try_line(struct str text)
{
    struct relay_line line;
    if (relay_line_parse(text, &line)) {
        ASSERT(line.word < RELAY_WORD_COUNT);
    }
}

struct
    taken { /* a sink that looks whether what it is given stands in the archive, where a relay would send it */
    struct str text;
    size_t at;
    uint64_t left_bytes;
    bool is_open;
    size_t n_members;
};

static int begin(void *ctx, const struct relay_member *member, struct err *err UNUSED)
{
    struct taken *taken = ctx;
    uint8_t block[USTAR_BLOCK];
    ASSERT(!taken->is_open);
    ASSERT(member->size_bytes <= RELAY_MEMBER_MAX);
    relay_member_write(member, block);
    ASSERT(memcmp(block, taken->text.ptr + taken->at, sizeof(block)) == 0);
    taken->at += sizeof(block);
    taken->left_bytes = member->size_bytes;
    taken->is_open = true;
    taken->n_members++;
    return 0;
}

static int take(void *ctx, const void *bytes, size_t len, struct err *err UNUSED)
{
    struct taken *taken = ctx;
    ASSERT(taken->is_open);
    ASSERT(len > 0);
    ASSERT(len <= taken->left_bytes);
    ASSERT(memcmp(bytes, taken->text.ptr + taken->at, len) == 0);
    taken->at += len;
    taken->left_bytes -= len;
    return 0;
}

static int end(void *ctx, struct err *err UNUSED)
{
    struct taken *taken = ctx;
    ASSERT(taken->is_open);
    ASSERT(taken->left_bytes == 0);
    taken->at += (size_t)(-taken->at % USTAR_BLOCK);
    taken->is_open = false;
    return 0;
}

static int read_archive(struct str text, size_t piece, size_t *ret_n_members)
{
    struct relay_tar tar = {0};
    struct taken taken = {.text = text};
    const struct relay_sink sink = {&taken, begin, take, end};
    struct err err = {0};
    int result = 0;
    for (size_t at = 0; at < text.len && result == 0; at += piece) {
        struct str part = str_sub(text, at, piece);
        result = relay_tar_take(&tar, &sink, (const uint8_t *)part.ptr, part.len, &err);
        ASSERT(result == 0 || err.code == ERR_INTEGRITY);
    }
    *ret_n_members = taken.n_members;
    return result;
}

static void try_archive(struct str text)
{
    size_t n_members, again;
    int result = read_archive(text, text.len + 1, &n_members);
    ASSERT(read_archive(text, 3, &again) == result);
    ASSERT(again == n_members);
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
        try_order(&arena, str_dup(&arena, text));
        break;
    case 1:
        try_hop(&arena, text);
        break;
    case 2:
        try_line(text);
        break;
    default:
        try_archive(text);
        break;
    }
    return 0;
}
