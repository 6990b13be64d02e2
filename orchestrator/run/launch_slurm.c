/* SPDX-License-Identifier: Apache-2.0 */
/* One job inside an allocation: srun starts the ranks. The allocation is sbatch's (fleet/remote_slurm), or the one that reperf itself
   runs in. Nodes are asked for by the inventory's names, which must be Slurm's. */
#include "base/base.h"

#include "run/launch_impl.h"

static const char *word_of(const struct launch *launch, const char *before, int64_t value)
{
    return arena_printf(launch->arena, "%s%lld", before, (long long)value);
}

static const char *node_list(const struct launch *launch)
{
    const struct launch_place *place = launch->place;
    return str_z(launch->arena,
                 inventory_fold(launch->arena, place->inventory, place->nodes, place->n_nodes));
}

static void add_srun(const struct launch *launch, const struct remote_batch *batch,
                     struct launch_list *argv)
{
    launch_add(argv, word_of(launch, "--nodes=", batch->n_nodes));
    launch_add(argv, word_of(launch, "--ntasks=", batch->n_nodes * batch->tasks_per_node));
    launch_add(argv, word_of(launch, "--ntasks-per-node=", batch->tasks_per_node));
    launch_add(argv, arena_printf(launch->arena, "--nodelist=%s", batch->nodelist));
    if (batch->gpus_per_node) {
        launch_add(argv, word_of(launch, "--gpus-per-node=", batch->gpus_per_node));
    }
    /* Bound to the one core of a task, a rank's threads would share it. */
    launch_add_all(argv, (const char *[]){"--distribution=block", "--cpu-bind=none", "--mpi=none",
                                          "--export=ALL", "--kill-on-bad-exit=1", NULL});
}

int launch_by_slurm(const struct launch *launch, struct launch_job *ret_job, struct err *err)
{
    const struct launch_place *place = launch->place;
    struct remote_batch *batch = arena_new(launch->arena, struct remote_batch);
    struct remote_job task;
    struct launch_list argv;
    if (launch_task(launch, &task, err) < 0) {
        return -1;
    }
    *batch = (struct remote_batch){.n_nodes = (int64_t)place->n_nodes,
                                   .tasks_per_node =
                                       launch_is_per_node(launch) ? 1 : place->ranks_per_node,
                                   .gpus_per_node = launch->step->gpus_per_node,
                                   .limit_s = launch->opts->limit_s,
                                   .nodelist = node_list(launch)};
    argv = launch_list_new(launch->arena, launch_count(task.argv) + 2 * place->n_nodes + 20);
    launch_add_all(&argv, (const char *[]){NODE_SELF, "srun", NULL}); /* node/batch.c */
    launch_add(&argv, word_of(launch, "", (int64_t)place->n_nodes));
    for (size_t idx = 0; idx < place->n_nodes; idx++) {
        const struct inventory_node *node = &place->inventory->nodes[place->nodes[idx]];
        launch_add(&argv, str_z(launch->arena, node->name));
        launch_add(&argv, str_z(launch->arena, inventory_fast_address(node)));
    }
    add_srun(launch, batch, &argv);
    launch_add_all(&argv, task.argv);
    task.argv = argv.items;
    task.batch = batch;
    *ret_job = (struct launch_job){.place_idx = 0, .job = task, .has_metric = true};
    return 0;
}
