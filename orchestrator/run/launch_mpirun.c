/* SPDX-License-Identifier: Apache-2.0 */
/* One job on the first node: mpirun (Open MPI) with a hostfile (node/rank_start.c). The nodes must reach each other by ssh without a
   question, and have reperf-node at the same path; users and ports of theirs are what the first node's ~/.ssh/config says. */
#include "base/base.h"

#include "run/launch_impl.h"

#include <arpa/inet.h>

#define PREFIX_MIN 8 /* bits in common: with fewer they share no network */

/* The smallest network with all fast addresses in it, as "10.11.0.0/29": docker0 and its like have the same address on every node,
   and mpirun would take them for a route between nodes. "" where the addresses are names, or have no network in common. */
static const char *network_of(const struct launch *launch)
{
    const struct launch_place *place = launch->place;
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    uint32_t first = 0;
    uint32_t differs = 0;
    int bits = 32;
    for (size_t idx = 0; idx < place->n_nodes; idx++) {
        const struct inventory_node *node = &place->inventory->nodes[place->nodes[idx]];
        struct in_addr address;
        if (inet_pton(AF_INET, str_z(&scratch, inventory_fast_address(node)), &address) != 1) {
            return "";
        }
        first = idx ? first : ntohl(address.s_addr);
        differs |= first ^ ntohl(address.s_addr);
    }
    while (bits > 0 && differs) {
        differs >>= 1;
        bits--;
    }
    if (place->n_nodes < 2 || bits < PREFIX_MIN) {
        return "";
    }
    first &= UINT32_MAX << (32 - bits);
    return arena_printf(launch->arena, "%u.%u.%u.%u/%d", first >> 24, first >> 16 & 255,
                        first >> 8 & 255, first & 255, bits);
}

/* Names of the variables of the job's environment that the ranks must get. */
static void export_names(const struct launch *launch, const char *const *env,
                         struct launch_list *argv)
{
    for (size_t idx = 0; env[idx]; idx++) {
        struct str rest = str_of(env[idx]);
        struct str name = STR_EMPTY;
        (void)str_next(&rest, '=', &name);
        launch_add(argv, "-x");
        launch_add(argv, str_z(launch->arena, name));
    }
}

int launch_by_mpirun(const struct launch *launch, struct launch_job *ret_job, struct err *err)
{
    const struct launch_place *place = launch->place;
    struct remote_job task;
    struct launch_list argv;
    int64_t slots = launch_is_per_node(launch) ? 1 : place->ranks_per_node;
    if (launch_task(launch, &task, err) < 0) {
        return -1;
    }
    argv = launch_list_new(launch->arena, launch_count(task.argv) + 2 * launch_count(task.env) +
                                              place->n_nodes + 16);
    launch_add_all(&argv, (const char *[]){NODE_SELF, "mpirun", network_of(launch), NULL});
    launch_add(&argv, arena_printf(launch->arena, "%lld", (long long)slots));
    launch_add(&argv, arena_printf(launch->arena, "%zu", place->n_nodes));
    for (size_t idx = 0; idx < place->n_nodes; idx++) {
        const struct inventory_node *node = &place->inventory->nodes[place->nodes[idx]];
        launch_add(&argv, str_z(launch->arena, node->address));
    }
    export_names(launch, task.env, &argv);
    launch_add_all(&argv, task.argv);
    task.argv = argv.items;
    *ret_job = (struct launch_job){.place_idx = 0, .job = task, .has_metric = true};
    return 0;
}
