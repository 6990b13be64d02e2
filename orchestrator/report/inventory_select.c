/* SPDX-License-Identifier: Apache-2.0 */
/* Inventories by the names of nodes: made from a list, or reduced to a part of one. */
#include "base/base.h"

#include "base/map.h"
#include "report/hostlist.h"
#include "report/inventory.h"

#define ID_MAX_BYTES 512

/* "fe80::1" is an address; a name with one colon was meant as HOST:PORT. */
static bool has_one_colon(struct str name)
{
    int64_t at = str_find(name, STR_LIT(":"));
    return at >= 0 && str_find(str_sub(name, (size_t)at + 1, name.len), STR_LIT(":")) < 0;
}

int inventory_of_hosts(struct arena *arena, struct str nodeset, struct inventory *ret_inventory,
                       struct err *err)
{
    struct hostlist hosts;
    struct inventory inventory = {.title = STR_LIT("no inventory, hosts by name"),
                                  .runtime = RUNTIME_NONE,
                                  .launcher = LAUNCHER_SSH};
    _Static_assert(HOSTLIST_NAMES_MAX == INVENTORY_NODES_MAX, "a set fits an inventory");
    if (hostlist_expand(arena, nodeset, HOSTLIST_SET, NULL, &hosts, err) < 0) {
        return -1;
    }
    if (hosts.n == 0) {
        return err_set(err, ERR_USAGE, "node set \"%.*s\": no node is left",
                       (int)(nodeset.len < 100 ? nodeset.len : 100), nodeset.ptr);
    }
    inventory.nodes = arena_array(arena, struct inventory_node, hosts.n);
    for (size_t idx = 0; idx < hosts.n; idx++) {
        if (has_one_colon(hosts.names[idx])) {
            return err_set(err, ERR_USAGE,
                           "\"%.100s\" is not a host name: put a port and a user into an inventory "
                           "or into ~/.ssh/config",
                           hosts.names[idx].ptr);
        }
        inventory.nodes[idx] =
            (struct inventory_node){.name = hosts.names[idx], .address = hosts.names[idx]};
    }
    inventory.n_nodes = hosts.n;
    inventory.id = str_sub(hostlist_fold(arena, hosts.names, hosts.n), 0, ID_MAX_BYTES);
    *ret_inventory = inventory;
    return 0;
}

static bool is_in_group(void *ctx, size_t name_idx, struct str group)
{
    const struct inventory *inventory = ctx;
    const struct inventory_node *node = &inventory->nodes[name_idx];
    for (size_t idx = 0; idx < node->n_groups; idx++) {
        if (str_eq(node->groups[idx], group)) {
            return true;
        }
    }
    return false;
}

static struct str *node_names(struct arena *arena, const struct inventory *inventory)
{
    struct str *names = arena_array(arena, struct str, inventory->n_nodes + 1);
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        names[idx] = inventory->nodes[idx].name;
    }
    return names;
}

int inventory_select(const struct inventory *inventory, struct arena *arena, struct str nodeset,
                     struct inventory *ret_selected, struct err *err)
{
    CLEANUP(map) struct map wanted = {0};
    struct inventory selected = *inventory;
    struct inventory all = *inventory; /* the scope's context is not const */
    struct hostlist_scope scope = {node_names(arena, inventory), inventory->n_nodes, &all,
                                   is_in_group};
    struct hostlist list;
    if (hostlist_expand(arena, nodeset, HOSTLIST_SET, &scope, &list, err) < 0) {
        return err_wrap(err, "inventory %.*s", STR_ARG(str_sub(inventory->id, 0, 100)));
    }
    if (list.n == 0) {
        return err_set(err, ERR_USAGE, "inventory %.*s: node set \"%.*s\": no node is left",
                       STR_ARG(str_sub(inventory->id, 0, 100)), STR_ARG(str_sub(nodeset, 0, 100)));
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        (void)map_add(&wanted, list.names[idx], &all);
    }
    if (inventory->login.ptr && !map_get(&wanted, inventory->login)) {
        return err_set(err, ERR_USAGE,
                       "inventory %.*s: node set \"%.*s\" leaves out %.*s, which is its login node",
                       STR_ARG(str_sub(inventory->id, 0, 100)), STR_ARG(str_sub(nodeset, 0, 100)),
                       STR_ARG(str_sub(inventory->login, 0, 100)));
    }
    selected.nodes = arena_array(arena, struct inventory_node, list.n);
    selected.n_nodes = 0;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        if (map_get(&wanted, inventory->nodes[idx].name)) {
            selected.nodes[selected.n_nodes++] = inventory->nodes[idx];
        }
    }
    ASSERT(selected.n_nodes == list.n);
    *ret_selected = selected;
    return 0;
}

struct str inventory_fold(struct arena *arena, const struct inventory *inventory,
                          const size_t *nodes, size_t n_nodes)
{
    struct str *names = arena_array(arena, struct str, n_nodes + 1);
    for (size_t idx = 0; idx < n_nodes; idx++) {
        names[idx] = inventory->nodes[nodes[idx]].name;
    }
    return hostlist_fold(arena, names, n_nodes);
}
