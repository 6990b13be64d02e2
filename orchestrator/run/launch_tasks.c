/* SPDX-License-Identifier: Apache-2.0 */
/* What mpirun and srun start: a rank each, or, around a container and for lines that start their own ranks, one process a node. */
#include "base/base.h"

#include "run/launch_impl.h"

/* One rank. $1: how many of them a node has. mpirun and srun number them node by node, as we ask them to. */
static const char TASK[] = "count=$1\n"
                           "shift\n"
                           "export RANK=\"${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}\" "
                           "LOCAL_RANK=\"${OMPI_COMM_WORLD_LOCAL_RANK:-$SLURM_LOCALID}\"\n"
                           "if [ -z \"${OMP_NUM_THREADS:-}\" ]; then\n"
                           "    cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null "
                           "|| grep -c ^processor /proc/cpuinfo)\n"
                           "    OMP_NUM_THREADS=$((${cores:-1} / count))\n"
                           "    [ \"$OMP_NUM_THREADS\" -gt 0 ] || OMP_NUM_THREADS=1\n"
                           "    export OMP_NUM_THREADS\n"
                           "fi\n"
                           "exec \"$@\"\n";

/* One process a node. The words of its argv that end in REPERF_NODE_RANK=@ get the node's number: a container's own environment. */
static const char NODE[] =
    "export NODE_RANK=\"${OMPI_COMM_WORLD_RANK:-$SLURM_NODEID}\"\n"
    "n=$#\n"
    "while [ $n -gt 0 ]; do\n"
    "    word=$1\n"
    "    shift\n"
    "    case $word in *REPERF_NODE_RANK=@) word=${word%@}$NODE_RANK ;; esac\n"
    "    set -- \"$@\" \"$word\"\n"
    "    n=$((n - 1))\n"
    "done\n"
    "exec \"$@\"\n";

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
        launch_add_all(&argv, (const char *[]){"/bin/sh", "-c", TASK, "reperf-rank", NULL});
        launch_add(&argv,
                   arena_printf(launch->arena, "%lld", (long long)launch->place->ranks_per_node));
        launch_add_all(&argv, launch->program.items);
        return launch_wrap(launch, 0, &argv, &env, ret_job, err);
    }
    if (launch->opts->runtime != RUNTIME_NONE) {
        launch_add(&env, LAUNCH_NODE_RANK "=" LAUNCH_HOLE);
    }
    argv = launch->step->is_per_node ? launch->program : launch_starter(launch, "");
    if (launch_wrap(launch, 0, &argv, &env, &inner, err) < 0) {
        return -1;
    }
    argv = launch_list_new(launch->arena, launch_count(inner.argv) + 8);
    launch_add_all(&argv, (const char *[]){"/bin/sh", "-c", NODE, "reperf-node", NULL});
    launch_add_all(&argv, inner.argv);
    inner.argv = argv.items;
    *ret_job = inner;
    return 0;
}
