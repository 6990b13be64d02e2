/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/launch.h"

#include <arpa/inet.h>

#include "base/crc32c.h"
#include "base/vec.h"
#include "run/planner.h"

#define PREFIX_MIN  8   /* bits in common: with fewer they share no network */
#define GRACE_S     "5" /* between TERM and KILL for ranks that outlive one that failed */
#define NODE_INSIDE "/reperf-node" /* where a container has the node's reperf-node */

/* Words, ended by NULL: an arena's memory is zero. */
struct launch_list {
    struct arena *arena;
    const char **items;
    size_t n, n_max;
};

#define NAME_BYTES_MAX 120

static void add(struct launch_list *list, const char *word)
{
    VEC_RESERVE_IN(list->arena, list);
    list->items[list->n++] = word;
    VEC_RESERVE_IN(list->arena, list);
}

static struct launch_list list_new(struct arena *arena)
{
    struct launch_list list = {.arena = arena};
    VEC_RESERVE_IN(arena, &list);
    return list;
}

static void add_all(struct launch_list *list, const char *const *words)
{
    for (size_t idx = 0; words && words[idx]; idx++) {
        add(list, words[idx]);
    }
}

/* ---- environment ---- */

static bool is_env_name(struct str name)
{
    return str_is_made_of(name, "A-Za-z0-9_") && !is_digit(name.ptr[0]);
}

/* Set by the launcher, whatever the step says: only the launcher knows them. */
static bool is_rank_name(struct str name)
{
    static const char *const NAMES[] = {
        "RANK",         "LOCAL_RANK",  "WORLD_SIZE",    "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",  "MASTER_PORT", "REPERF_RUN_ID", "REPERF_JOB",
        "NODE_RANK",    "NODE_IPS",    "NNODES",        "NPROC_PER_NODE",
        NODE_RANK_NAME, NULL};
    return str_eq_any(name, NAMES);
}

static bool has_env(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (size_t idx = 0; env && env[idx]; idx++) {
        if (strncmp(env[idx], name, len) == 0 && env[idx][len] == '=') {
            return true;
        }
    }
    return false;
}

static bool has_name(const struct launch *launch, const char *name)
{
    const struct plan_step *step = launch->step;
    return STR_NAMED(step->env, step->n_env, name, str_of(name)) || has_env(launch->env, name);
}

static const char *number(const struct launch *launch, const char *before, int64_t value)
{
    return arena_printf(launch->arena, "%s%lld", before, (long long)value);
}

static int add_step_env(const struct launch *launch, struct launch_list *env, struct err *err)
{
    const struct plan_step *step = launch->step;
    for (size_t idx = 0; idx < step->n_env; idx++) {
        const struct condition *item = &step->env[idx];
        if (!is_env_name(item->name)) {
            return err_set(err, ERR_MANIFEST, "case %.*s: \"%.*s\" is not a variable's name",
                           STR_ARG(step->case_id), STR_ARG(item->name));
        }
        if (item->value.len && memchr(item->value.ptr, '\0', item->value.len)) {
            return err_set(err, ERR_MANIFEST, "case %.*s: variable %.*s has a NUL byte",
                           STR_ARG(step->case_id), STR_ARG(item->name));
        }
        if (!is_rank_name(item->name)) {
            add(env, arena_printf(launch->arena, "%.*s=%.*s", STR_ARG(item->name),
                                  STR_ARG(item->value)));
        }
    }
    return 0;
}

/* manifests/reports/README.md: addresses of all nodes, joined by commas, in the order of NODE_RANK. */
static const char *node_ips(const struct launch *launch)
{
    const char *ips = "NODE_IPS=";
    for (size_t idx = 0; idx < launch->n_nodes; idx++) {
        const struct inventory_node *node = &launch->inventory->nodes[launch->nodes[idx]];
        ips = arena_printf(launch->arena, "%s%s%.*s", ips, idx ? "," : "",
                           STR_ARG(inventory_fast_address(node)));
    }
    return ips;
}

/* The environment that all ranks share: the step's, and ours. */
static int make_env(const struct launch *launch, struct launch_list *ret_env, struct err *err)
{
    struct arena *arena = launch->arena;
    struct launch_list env = list_new(arena);
    int64_t n_ranks = (int64_t)launch->n_nodes * launch->ranks_per_node;
    if (add_step_env(launch, &env, err) < 0) {
        return -1;
    }
    /* Where reperf-train keeps its plans, and the driver what it compiles. */
    if (launch->keeps_cache && !has_name(launch, "XDG_CACHE_HOME")) {
        add(&env, "XDG_CACHE_HOME=" RUNTIME_CACHE);
    }
    if (launch->keeps_cache && !has_name(launch, "CUDA_CACHE_PATH")) {
        add(&env, "CUDA_CACHE_PATH=" RUNTIME_CACHE "/cuda");
    }
    add(&env, arena_printf(arena, "REPERF_RUN_ID=%s", launch->run_id));
    add(&env, arena_printf(arena, "REPERF_JOB=%s", launch->job_id));
    struct str first = inventory_fast_address(&launch->inventory->nodes[launch->nodes[0]]);
    add(&env, arena_printf(arena, "MASTER_ADDR=%.*s", STR_ARG(first)));
    add(&env, number(launch, "MASTER_PORT=", launch->port));
    if (launch->step->is_per_node) {
        add(&env, number(launch, "NNODES=", (int64_t)launch->n_nodes));
        add(&env, number(launch, "NPROC_PER_NODE=", launch->ranks_per_node));
        add(&env, node_ips(launch));
        *ret_env = env;
        return 0;
    }
    add(&env, number(launch, "WORLD_SIZE=", n_ranks));
    add(&env, number(launch, "LOCAL_WORLD_SIZE=", launch->ranks_per_node));
    /* Spinning threads of waiting ranks would take the cores from the ranks that they wait for. */
    if (n_ranks > 1 && !has_name(launch, "OMP_WAIT_POLICY")) {
        add(&env, "OMP_WAIT_POLICY=passive");
    }
    *ret_env = env;
    return 0;
}

/* ---- the program ---- */

static int make_argv(const struct launch *launch, struct launch_list *argv, struct err *err)
{
    const struct plan_step *step = launch->step;
    if (!step->n_argv) {
        return err_set(err, ERR_INTERNAL, "case %.*s has no command", STR_ARG(step->case_id));
    }
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        if (step->argv[idx].len && memchr(step->argv[idx].ptr, '\0', step->argv[idx].len)) {
            return err_set(err, ERR_MANIFEST, "case %.*s: its command has a NUL byte",
                           STR_ARG(step->case_id));
        }
        add(argv, str_z(launch->arena, step->argv[idx]));
    }
    if (launch->runtime == RUNTIME_NONE && str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        argv->items[0] = launch->program;
    }
    return 0;
}

/* ---- around it ---- */

/* It has only letters that every engine takes; the check sum keeps apart ids that differ in others.
   */
static const char *container_name(const struct launch *launch, size_t place_idx)
{
    const char *id = launch->job_id;
    uint32_t sum = crc32c(0, id, strlen(id));
    char *name = arena_printf(launch->arena, "reperf-%s", id);
    if (strlen(name) > NAME_BYTES_MAX) {
        name[NAME_BYTES_MAX] = '\0';
    }
    for (char *at = name; *at; at++) {
        if (!((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') ||
              (*at >= '0' && *at <= '9') || *at == '.' || *at == '_')) {
            *at = '-';
        }
    }
    return arena_printf(launch->arena, "%s-%08x-%zu", name, sum, place_idx);
}

/* Those asked for, and that of reperf-node, where it starts the ranks. */
static const struct container_mount *mounts_of(const struct launch *launch, const char *first_word,
                                               size_t *ret_n)
{
    struct container_mount *mounts =
        arena_array(launch->arena, struct container_mount, launch->n_mounts + 1);
    size_t n = launch->n_mounts;
    if (n) {
        memcpy(mounts, launch->mounts, n * sizeof(*mounts));
    }
    if (strcmp(first_word, NODE_INSIDE) == 0) {
        mounts[n++] = (struct container_mount){STR_LIT(NODE_SELF), STR_LIT(NODE_INSIDE)};
    }
    *ret_n = n;
    return mounts;
}

static int wrap_container(const struct launch *launch, size_t place_idx, const char *const *argv,
                          const char *const *env, struct remote_job *job, struct err *err)
{
    struct runtime_commands commands;
    size_t n_mounts = 0;
    const struct container_mount *mounts = mounts_of(launch, argv[0], &n_mounts);
    struct runtime_job inside = {.name = container_name(launch, place_idx),
                                 .image = launch->image,
                                 .flags = launch->flags,
                                 .mounts = mounts,
                                 .n_mounts = n_mounts,
                                 .argv = argv,
                                 .env = env,
                                 .run_id = launch->run_id,
                                 .keeps_cache = launch->keeps_cache,
                                 .keeps_entrypoint = launch->step->is_per_node};
    if (!launch->image) {
        return err_set(err, ERR_INTERNAL, "case %.*s: runtime %s without an image",
                       STR_ARG(launch->step->case_id), RUNTIME_KIND_NAMES[launch->runtime]);
    }
    if (launch->flags &&
        runtime_inside_check(launch->arena, launch->flags, true, argv, &inside.argv, err) < 0) {
        return -1;
    }
    if (runtime_commands(launch->arena, launch->runtime, &inside, &commands, err) < 0) {
        return -1;
    }
    struct launch_list all = list_new(launch->arena);
    add_all(&all, launch->env);
    add_all(&all, commands.env);
    *job = (struct remote_job){
        .id = launch->job_id, .argv = commands.argv, .env = all.items, .cleanup = commands.cleanup};
    return 0;
}

/* From what runs on a node to what is started there: itself, or a container around it. */
static int wrap(const struct launch *launch, size_t place_idx, const char *const *argv,
                const char *const *env, struct remote_job *ret_job, struct err *err)
{
    struct launch_list all = list_new(launch->arena);
    if (launch->runtime != RUNTIME_NONE) {
        return wrap_container(launch, place_idx, argv, env, ret_job, err);
    }
    for (size_t idx = 0; launch->env && launch->env[idx]; idx++) {
        char *name = arena_printf(launch->arena, "%s", launch->env[idx]);
        char *equals = strchr(name, '=');
        ASSERT(equals);
        *equals = '\0';
        /* If set twice, it would be up to the C library which one counts. */
        if (!has_env(env, name) && !is_rank_name(str_of(name))) {
            add(&all, launch->env[idx]);
        }
    }
    add_all(&all, env);
    *ret_job = (struct remote_job){.id = launch->job_id, .argv = argv, .env = all.items};
    return 0;
}

/* ---- one process a rank, by ssh ---- */

/* argv of what starts a node's ranks, with the number of its first one; an empty one: counted from NODE_RANK_NAME. */
static const char *const *starter_of(const struct launch *launch, const char *rank_base)
{
    struct launch_list argv = list_new(launch->arena);
    add(&argv, launch->runtime == RUNTIME_NONE ? NODE_SELF : NODE_INSIDE);
    add(&argv, "ranks");
    add(&argv, rank_base);
    add(&argv, number(launch, "", launch->ranks_per_node));
    add(&argv, GRACE_S);
    add_all(&argv, launch->argv);
    return argv.items;
}

static int by_ssh(const struct launch *launch, struct launch_job *ret_jobs, struct err *err)
{
    for (size_t idx = 0; idx < launch->n_nodes; idx++) {
        int64_t rank = (int64_t)idx * launch->ranks_per_node;
        const char *const *argv = launch->argv;
        struct launch_list env;
        if (make_env(launch, &env, err) < 0) {
            return -1;
        }
        if (launch->step->is_per_node) {
            add(&env, number(launch, "NODE_RANK=", (int64_t)idx));
        } else if (launch->ranks_per_node == 1) { /* no other rank to wait for */
            add(&env, number(launch, "RANK=", rank));
            add(&env, "LOCAL_RANK=0");
        } else {
            argv = starter_of(launch, number(launch, "", rank));
        }
        ret_jobs[idx] = (struct launch_job){.place_idx = idx, .has_metric = idx == 0};
        if (wrap(launch, idx, argv, env.items, &ret_jobs[idx].job, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- one process a node ---- */

/* Whether mpirun and srun start one process a node, not one a rank. */
static bool is_per_node(const struct launch *launch)
{
    return launch->step->is_per_node || launch->runtime != RUNTIME_NONE;
}

/* argv and environment of that process. */
static int make_task(const struct launch *launch, struct remote_job *ret_job, struct err *err)
{
    struct launch_list env;
    struct launch_list task = list_new(launch->arena);
    if (make_env(launch, &env, err) < 0) {
        return -1;
    }
    if (!is_per_node(launch)) {
        add_all(&task, (const char *[]){NODE_SELF, "task", NULL});
        add(&task, number(launch, "", launch->ranks_per_node));
        add_all(&task, launch->argv);
        return wrap(launch, 0, task.items, env.items, ret_job, err);
    }
    if (launch->runtime != RUNTIME_NONE) {
        add(&env, NODE_RANK_NAME "=" NODE_RANK_HOLE);
    }
    if (wrap(launch, 0, launch->step->is_per_node ? launch->argv : starter_of(launch, ""),
             env.items, ret_job, err) < 0) {
        return -1;
    }
    add_all(&task, (const char *[]){NODE_SELF, "node-task", NULL});
    add_all(&task, ret_job->argv);
    ret_job->argv = task.items;
    return 0;
}

/* ---- srun ---- */

static void add_srun(const struct launch *launch, const struct remote_batch *batch,
                     struct launch_list *argv)
{
    add(argv, number(launch, "--nodes=", batch->n_nodes));
    add(argv, number(launch, "--ntasks=", batch->n_nodes * batch->tasks_per_node));
    add(argv, number(launch, "--ntasks-per-node=", batch->tasks_per_node));
    add(argv, arena_printf(launch->arena, "--nodelist=%s", batch->nodelist));
    if (batch->gpus_per_node) {
        add(argv, number(launch, "--gpus-per-node=", batch->gpus_per_node));
    }
    /* Bound to the one core of a task, a rank's threads would share it. */
    add_all(argv, (const char *[]){"--distribution=block", "--cpu-bind=none", "--mpi=none",
                                   "--export=ALL", "--kill-on-bad-exit=1", NULL});
}

static int by_slurm(const struct launch *launch, struct launch_job *ret_job, struct err *err)
{
    struct remote_batch *batch = arena_new(launch->arena, struct remote_batch);
    struct remote_job task;
    struct launch_list argv;
    if (make_task(launch, &task, err) < 0) {
        return -1;
    }
    *batch = (struct remote_batch){
        .n_nodes = (int64_t)launch->n_nodes,
        .tasks_per_node = is_per_node(launch) ? 1 : launch->ranks_per_node,
        .gpus_per_node = launch->step->gpus_per_node,
        .limit_s = launch->limit_s,
        .nodelist = str_z(launch->arena, inventory_fold(launch->arena, launch->inventory,
                                                        launch->nodes, launch->n_nodes))};
    argv = list_new(launch->arena);
    add_all(&argv, (const char *[]){NODE_SELF, "srun", NULL}); /* node/batch.c */
    add(&argv, number(launch, "", (int64_t)launch->n_nodes));
    for (size_t idx = 0; idx < launch->n_nodes; idx++) {
        const struct inventory_node *node = &launch->inventory->nodes[launch->nodes[idx]];
        add(&argv, str_z(launch->arena, node->name));
        add(&argv, str_z(launch->arena, inventory_fast_address(node)));
    }
    add_srun(launch, batch, &argv);
    add_all(&argv, task.argv);
    task.argv = argv.items;
    task.batch = batch;
    *ret_job = (struct launch_job){.place_idx = 0, .job = task, .has_metric = true};
    return 0;
}

/* ---- mpirun ---- */

/* The smallest network with all fast addresses in it, as "10.11.0.0/29": docker0 and its like have the same address on every
   node, and mpirun would take them for a route between nodes. "" where the addresses are names, or have no network in common. */
static const char *network_of(const struct launch *launch)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    uint32_t first = 0;
    uint32_t differs = 0;
    int bits = 32;
    for (size_t idx = 0; idx < launch->n_nodes; idx++) {
        const struct inventory_node *node = &launch->inventory->nodes[launch->nodes[idx]];
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
    if (launch->n_nodes < 2 || bits < PREFIX_MIN) {
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
        add(argv, "-x");
        add(argv, str_z(launch->arena, name));
    }
}

static int by_mpirun(const struct launch *launch, struct launch_job *ret_job, struct err *err)
{
    struct remote_job task;
    struct launch_list argv;
    int64_t slots = is_per_node(launch) ? 1 : launch->ranks_per_node;
    if (make_task(launch, &task, err) < 0) {
        return -1;
    }
    argv = list_new(launch->arena);
    add_all(&argv, (const char *[]){NODE_SELF, "mpirun", network_of(launch), NULL});
    add(&argv, number(launch, "", slots));
    add(&argv, number(launch, "", (int64_t)launch->n_nodes));
    for (size_t idx = 0; idx < launch->n_nodes; idx++) {
        const struct inventory_node *node = &launch->inventory->nodes[launch->nodes[idx]];
        add(&argv, str_z(launch->arena, node->address));
    }
    export_names(launch, task.env, &argv);
    add_all(&argv, task.argv);
    task.argv = argv.items;
    *ret_job = (struct launch_job){.place_idx = 0, .job = task, .has_metric = true};
    return 0;
}

/* ---- the whole ---- */

int launch_make(const struct launch *of, struct launch_job **ret_jobs, size_t *ret_n,
                struct err *err)
{
    struct launch launch = *of;
    struct launch_job *jobs = arena_array(of->arena, struct launch_job, of->n_nodes + 1);
    struct launch_list argv = list_new(of->arena);
    enum launcher_kind launcher = of->inventory->is_local ? LAUNCHER_SSH : of->inventory->launcher;
    int64_t n_ranks = (int64_t)of->n_nodes * of->ranks_per_node;
    if (n_ranks < 1 || n_ranks != of->step->n_ranks) {
        return err_set(err, ERR_INTERNAL,
                       "case %.*s: planned for %lld ranks, launched with %zu x %lld",
                       STR_ARG(of->step->case_id), (long long)of->step->n_ranks, of->n_nodes,
                       (long long)of->ranks_per_node);
    }
    if (make_argv(&launch, &argv, err) < 0) {
        return -1;
    }
    launch.argv = argv.items;
    int rc = launcher == LAUNCHER_SSH     ? by_ssh(&launch, jobs, err)
             : launcher == LAUNCHER_SLURM ? by_slurm(&launch, jobs, err)
                                          : by_mpirun(&launch, jobs, err);
    *ret_jobs = jobs;
    *ret_n = launcher == LAUNCHER_SSH ? of->n_nodes : 1;
    return rc;
}
