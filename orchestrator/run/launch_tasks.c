/* SPDX-License-Identifier: Apache-2.0 */
/* What mpirun and srun start, by reperf-node (node/rank_start.c): a rank each, or, around a container and for lines that start their own ranks, one process a node. */
#include "base/base.h"

#include "run/launch_impl.h"

bool launch_is_per_node(const struct launch *launch)
{
    return launch->step->is_per_node || launch->opts->runtime != RUNTIME_NONE;
}

int launch_task(const struct launch *launch, struct remote_job *ret_job, struct err *err)
{
    struct launch_list env;
    struct launch_list argv;
    struct remote_job inner;
    if (launch_env(launch, &env, err) < 0) {
        return -1;
    }
    if (!launch_is_per_node(launch)) {
        argv = launch_list_new(launch->arena, launch->program.n + 8);
        launch_add_all(&argv, (const char *[]){NODE_SELF, "task", NULL});
        launch_add(&argv,
                   arena_printf(launch->arena, "%lld", (long long)launch->place->ranks_per_node));
        launch_add_all(&argv, launch->program.items);
        return launch_wrap(launch, 0, &argv, &env, ret_job, err);
    }
    if (launch->opts->runtime != RUNTIME_NONE) {
        launch_add(&env, NODE_RANK_NAME "=" NODE_RANK_HOLE);
    }
    argv = launch->step->is_per_node ? launch->program : launch_starter(launch, "");
    if (launch_wrap(launch, 0, &argv, &env, &inner, err) < 0) {
        return -1;
    }
    argv = launch_list_new(launch->arena, launch_count(inner.argv) + 8);
    launch_add_all(&argv, (const char *[]){NODE_SELF, "node-task", NULL});
    launch_add_all(&argv, inner.argv);
    inner.argv = argv.items;
    *ret_job = inner;
    return 0;
}
