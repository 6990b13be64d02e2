/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an inventory: refused with the place, or one whose encoded form is read as the same again. */
#include "base/base.h"

#include "report/hostlist.h"
#include "report/inventory.h"

#define ENCODED_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int decode(struct arena *arena, struct str text, struct inventory *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(text, "fuzz", &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return inventory_decode(&root, arena, ret, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf first;
    CLEANUP(strbuf) struct strbuf second;
    struct inventory inventory;
    struct err err = {0};
    strbuf_init(&first, ENCODED_MAX);
    strbuf_init(&second, ENCODED_MAX);
    if (decode(&arena, (struct str){(const char *)data, size}, &inventory, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        return 0;
    }
    ASSERT(inventory.n_nodes > 0 && inventory.n_nodes <= INVENTORY_NODES_MAX);
    for (size_t idx = 0; idx < inventory.n_nodes; idx++) {
        ASSERT(hostlist_is_name(inventory.nodes[idx].name));
        ASSERT(hostlist_is_name(inventory.nodes[idx].address));
    }
    inventory_encode(&inventory, &first);
    ASSERT(!first.is_full);
    ASSERT(decode(&arena, strbuf_str(&first), &inventory, &err) == 0);
    inventory_encode(&inventory, &second);
    ASSERT(str_eq(strbuf_str(&first), strbuf_str(&second)));
    return 0;
}
