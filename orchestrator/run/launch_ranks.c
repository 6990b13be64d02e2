/* SPDX-License-Identifier: Apache-2.0 */
/* One job a node: its rank, or its ranks, started there by reperf-node (node/rank_start.c), which waits for them all. */
#include "base/base.h"

#include "run/launch_impl.h"

struct launch_list launch_starter(const struct launch *launch, const char *rank_base)
{
    struct launch_list argv = launch_list_new(launch->arena, launch->program.n + 8);
    launch_add(&argv, launch->opts->runtime == RUNTIME_NONE ? NODE_SELF : LAUNCH_NODE_INSIDE);
    launch_add(&argv, "ranks");
    launch_add(&argv, rank_base);
    launch_add(&argv,
               arena_printf(launch->arena, "%lld", (long long)launch->place->ranks_per_node));
    launch_add(&argv, LAUNCH_GRACE_S);
    launch_add_all(&argv, launch->program.items);
    return argv;
}

static const char *number(const struct launch *launch, const char *before, int64_t value)
{
    return arena_printf(launch->arena, "%s%lld", before, (long long)value);
}

int launch_by_ssh(const struct launch *launch, struct launch_job *ret_jobs, struct err *err)
{
    const struct launch_place *place = launch->place;
    for (size_t idx = 0; idx < place->n_nodes; idx++) {
        int64_t rank = (int64_t)idx * place->ranks_per_node;
        struct launch_list argv = launch->program;
        struct launch_list env;
        if (launch_env(launch, &env, err) < 0) {
            return -1;
        }
        if (launch->step->is_per_node) {
            launch_add(&env, number(launch, "NODE_RANK=", (int64_t)idx));
        } else if (place->ranks_per_node == 1) { /* no other rank to wait for */
            launch_add(&env, number(launch, "RANK=", rank));
            launch_add(&env, "LOCAL_RANK=0");
        } else {
            argv = launch_starter(launch, number(launch, "", rank));
        }
        ret_jobs[idx] = (struct launch_job){.place_idx = idx, .has_metric = idx == 0};
        if (launch_wrap(launch, idx, &argv, &env, &ret_jobs[idx].job, err) < 0) {
            return -1;
        }
    }
    return 0;
}
