/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an inventory: refused with the place, or one whose encoded form is read as the same again. */
#include "tests/fuzz/fuzz.h"

#include "report/hostlist.h"
#include "report/inventory.h"

#define ENCODED_MAX (64u << 20)

FUZZ_DECODE(struct inventory, inventory_decode)

FUZZ(arena, text)
{
    CLEANUP(strbuf) struct strbuf first;
    CLEANUP(strbuf) struct strbuf second;
    struct inventory inventory;
    struct err err = {0};
    strbuf_init(&first, ENCODED_MAX);
    strbuf_init(&second, ENCODED_MAX);
    if (fuzz_decode(arena, text, &inventory, &err) < 0) {
        ASSERT(err.code == ERR_MANIFEST && err.msg[0]);
        return;
    }
    ASSERT(inventory.n_nodes > 0 && inventory.n_nodes <= INVENTORY_NODES_MAX);
    for (size_t idx = 0; idx < inventory.n_nodes; idx++) {
        ASSERT(hostlist_is_name(inventory.nodes[idx].name));
        ASSERT(hostlist_is_name(inventory.nodes[idx].address));
    }
    inventory_encode(&inventory, &first);
    ASSERT(!first.is_full);
    ASSERT(fuzz_decode(arena, strbuf_str(&first), &inventory, &err) == 0);
    inventory_encode(&inventory, &second);
    ASSERT(str_eq(strbuf_str(&first), strbuf_str(&second)));
}
