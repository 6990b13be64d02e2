/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes list`: shows an inventory, without contacting any node. */
#include "base/base.h"

#include "base/table.h"
#include "cmd/nodes.h"
#include "load/load_inventory.h"

#define OUTPUT_MAX (16u << 20)

struct args {
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, want_json, "json",
        "print one JSON document: the inventory, its patterns expanded"),
    OPT_END,
};

static void add_groups(struct table *table, const struct inventory_node *node)
{
    CLEANUP(strbuf) struct strbuf names = STRBUF(OUTPUT_MAX);
    for (size_t idx = 0; idx < node->n_groups; idx++) {
        strbuf_printf(&names, "%s%.*s", idx ? "," : "", STR_ARG(node->groups[idx]));
    }
    table_add(table, table_or_dash(strbuf_str(&names)));
}

static void print_text(struct strbuf *text, const struct inventory *inventory)
{
    CLEANUP(table)
    struct table table = table_of("node|address|>port|user|>gpus|fast address|work folder|groups");
    strbuf_printf(text, "%.*s: %.*s; %s, runtime %s, launcher %s\n", STR_ARG(inventory->id),
                  STR_ARG(inventory->title), inventory->is_local ? "this machine" : "over ssh",
                  runtime_kind_label(inventory->runtime), LAUNCHER_KIND_NAMES[inventory->launcher]);
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        const struct inventory_node *node = &inventory->nodes[idx];
        TABLE_ADD(&table, node->name, node->address,
                  table_text_if(&table, node->port, "%lld", (long long)node->port),
                  table_or_dash(node->user), table_text(&table, "%lld", (long long)node->gpus),
                  table_or_dash(node->fast_address), table_or_dash(node->work_folder));
        add_groups(&table, node);
    }
    table_render(&table, text);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    const struct args *args = call->args;
    struct inventory inventory;
    if (inventory_load(call->arena, ctx->root, call->operands.items[0], &inventory, err) < 0) {
        return -1;
    }
    if (args->want_json) {
        inventory_encode(&inventory, call->out);
    } else {
        print_text(call->out, &inventory);
    }
    return 0;
}

const struct cmd NODES_LIST =
    CMD("list", "INVENTORY", "what the inventory says", OPTS, run, CMD_ARGS(struct args),
        CMD_OPERANDS(1, 1, "nodes list: expected one inventory"));
