/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/launch_impl.h"

#include "base/crc32c.h"
#include "run/planner.h"

#define LIST_EXTRA     64 /* words of ours around a step's */
#define NAME_BYTES_MAX 120

struct launch_list launch_list_new(struct arena *arena, size_t n_max)
{
    return (struct launch_list){arena_array(arena, const char *, n_max + 1), 0, n_max};
}

void launch_add(struct launch_list *list, const char *word)
{
    ASSERT(list->n < list->n_max);
    list->items[list->n++] = word;
}

void launch_add_all(struct launch_list *list, const char *const *words)
{
    for (size_t idx = 0; words && words[idx]; idx++) {
        launch_add(list, words[idx]);
    }
}

size_t launch_count(const char *const *words)
{
    size_t n = 0;
    while (words && words[n]) {
        n++;
    }
    return n;
}

/* ---- environment ---- */

static bool is_env_name(struct str name)
{
    for (size_t idx = 0; idx < name.len; idx++) {
        char c = name.ptr[idx];
        if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (idx > 0 && c >= '0' && c <= '9'))) {
            return false;
        }
    }
    return name.len > 0;
}

/* Set by the launcher, whatever the step says: only the launcher knows them. */
static bool is_rank_name(struct str name)
{
    static const char *const NAMES[] = {
        "RANK",        "LOCAL_RANK",     "WORLD_SIZE",  "LOCAL_WORLD_SIZE", "MASTER_ADDR",
        "MASTER_PORT", "REPERF_RUN_ID",  "REPERF_JOB",  "NODE_RANK",        "NODE_IPS",
        "NNODES",      "NPROC_PER_NODE", NODE_RANK_NAME};
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        if (str_eq_z(name, NAMES[idx])) {
            return true;
        }
    }
    return false;
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
    for (size_t idx = 0; idx < launch->step->n_env; idx++) {
        if (str_eq_z(launch->step->env[idx].name, name)) {
            return true;
        }
    }
    return has_env(launch->opts->env, name);
}

static void add_number(struct arena *arena, struct launch_list *env, const char *name,
                       int64_t value)
{
    launch_add(env, arena_printf(arena, "%s=%lld", name, (long long)value));
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
            launch_add(env, arena_printf(launch->arena, "%.*s=%.*s", STR_ARG(item->name),
                                         STR_ARG(item->value)));
        }
    }
    return 0;
}

/* manifests/reports/README.md: addresses of all nodes, joined by commas, in the order of NODE_RANK. */
static const char *node_ips(const struct launch *launch)
{
    const struct launch_place *place = launch->place;
    const char *ips = "NODE_IPS=";
    for (size_t idx = 0; idx < place->n_nodes; idx++) {
        const struct inventory_node *node = &place->inventory->nodes[place->nodes[idx]];
        ips = arena_printf(launch->arena, "%s%s%.*s", ips, idx ? "," : "",
                           STR_ARG(inventory_fast_address(node)));
    }
    return ips;
}

int launch_env(const struct launch *launch, struct launch_list *ret_env, struct err *err)
{
    struct arena *arena = launch->arena;
    const struct launch_place *place = launch->place;
    struct launch_list env = launch_list_new(arena, launch->step->n_env + LIST_EXTRA);
    if (add_step_env(launch, &env, err) < 0) {
        return -1;
    }
    launch_add(&env, arena_printf(arena, "REPERF_RUN_ID=%s", launch->opts->run_id));
    launch_add(&env, arena_printf(arena, "REPERF_JOB=%s", launch->opts->job_id));
    launch_add(&env, arena_printf(arena, "MASTER_ADDR=%s", place->master_addr));
    add_number(arena, &env, "MASTER_PORT", place->master_port);
    if (launch->step->is_per_node) {
        add_number(arena, &env, "NNODES", (int64_t)place->n_nodes);
        add_number(arena, &env, "NPROC_PER_NODE", place->ranks_per_node);
        launch_add(&env, node_ips(launch));
        *ret_env = env;
        return 0;
    }
    add_number(arena, &env, "WORLD_SIZE", launch->n_ranks);
    add_number(arena, &env, "LOCAL_WORLD_SIZE", place->ranks_per_node);
    /* Spinning threads of waiting ranks would take the cores from the ranks that they wait for. */
    if (launch->n_ranks > 1 && !has_name(launch, "OMP_WAIT_POLICY")) {
        launch_add(&env, "OMP_WAIT_POLICY=passive");
    }
    *ret_env = env;
    return 0;
}

/* ---- the program ---- */

static int set_program(struct launch *launch, struct err *err)
{
    const struct plan_step *step = launch->step;
    launch->program = launch_list_new(launch->arena, step->n_argv);
    if (!step->n_argv) {
        return err_set(err, ERR_INTERNAL, "case %.*s has no command", STR_ARG(step->case_id));
    }
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        if (step->argv[idx].len && memchr(step->argv[idx].ptr, '\0', step->argv[idx].len)) {
            return err_set(err, ERR_MANIFEST, "case %.*s: its command has a NUL byte",
                           STR_ARG(step->case_id));
        }
        launch_add(&launch->program, str_z(launch->arena, step->argv[idx]));
    }
    if (launch->opts->runtime == RUNTIME_NONE && str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        launch->program.items[0] = launch->opts->program;
    }
    return 0;
}

/* ---- around it ---- */

/* Of a container: of the letters that every engine takes; the check sum keeps apart what they cannot. */
static const char *container_name(const struct launch *launch, size_t place_idx)
{
    const char *id = launch->opts->job_id;
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
static const struct container_mount *mounts_of(const struct launch *launch,
                                               const struct launch_list *argv, size_t *ret_n)
{
    const struct launch_opts *opts = launch->opts;
    struct container_mount *mounts =
        arena_array(launch->arena, struct container_mount, opts->n_mounts + 1);
    size_t n = opts->n_mounts;
    if (n) {
        memcpy(mounts, opts->mounts, n * sizeof(*mounts));
    }
    if (strcmp(argv->items[0], LAUNCH_NODE_INSIDE) == 0) {
        mounts[n++] =
            (struct container_mount){STR_LIT(NODE_SELF), STR_LIT(LAUNCH_NODE_INSIDE), false};
    }
    *ret_n = n;
    return mounts;
}

static int wrap_container(const struct launch *launch, size_t place_idx,
                          const struct launch_list *argv, const struct launch_list *env,
                          struct remote_job *job, struct err *err)
{
    const struct launch_opts *opts = launch->opts;
    struct runtime_commands commands;
    struct launch_list all;
    size_t n_mounts = 0;
    const struct container_mount *mounts = mounts_of(launch, argv, &n_mounts);
    struct runtime_job inside = {.name = container_name(launch, place_idx),
                                 .image = opts->image,
                                 .flags = opts->flags,
                                 .mounts = mounts,
                                 .n_mounts = n_mounts,
                                 .argv = argv->items,
                                 .env = env->items,
                                 .run_id = opts->run_id,
                                 .keeps_entrypoint = launch->step->is_per_node};
    if (!opts->image) {
        return err_set(err, ERR_INTERNAL, "case %.*s: runtime %s without an image",
                       STR_ARG(launch->step->case_id), runtime_kind_name(opts->runtime));
    }
    if (opts->flags && runtime_inside_check(launch->arena, opts->flags, opts->is_check_required,
                                            argv->items, &inside.argv, err) < 0) {
        return -1;
    }
    if (runtime_commands(launch->arena, opts->runtime, &inside, &commands, err) < 0) {
        return -1;
    }
    all = launch_list_new(launch->arena, launch_count(opts->env) + launch_count(commands.env));
    launch_add_all(&all, opts->env);
    launch_add_all(&all, commands.env);
    *job = (struct remote_job){
        .id = opts->job_id, .argv = commands.argv, .env = all.items, .cleanup = commands.cleanup};
    return 0;
}

int launch_wrap(const struct launch *launch, size_t place_idx, const struct launch_list *argv,
                const struct launch_list *env, struct remote_job *ret_job, struct err *err)
{
    const struct launch_opts *opts = launch->opts;
    struct remote_job job = {.id = opts->job_id, .argv = argv->items};
    struct launch_list all = launch_list_new(launch->arena, launch_count(opts->env) + env->n);
    if (opts->runtime != RUNTIME_NONE) {
        return wrap_container(launch, place_idx, argv, env, ret_job, err);
    }
    for (size_t idx = 0; opts->env && opts->env[idx]; idx++) {
        char *name = arena_printf(launch->arena, "%s", opts->env[idx]);
        char *equals = strchr(name, '=');
        ASSERT(equals);
        *equals = '\0';
        /* If set twice, it would be up to the C library which one counts. */
        if (!has_env(env->items, name) && !is_rank_name(str_of(name))) {
            launch_add(&all, opts->env[idx]);
        }
    }
    launch_add_all(&all, env->items);
    job.env = all.items;
    *ret_job = job;
    return 0;
}

/* ---- the whole ---- */

static int check_place(const struct launch *launch, struct err *err)
{
    const struct launch_place *place = launch->place;
    const struct plan_step *step = launch->step;
    if (!place->n_nodes || place->ranks_per_node < 1) {
        return err_set(err, ERR_INTERNAL, "case %.*s: launched on %zu nodes with %lld ranks each",
                       STR_ARG(step->case_id), place->n_nodes, (long long)place->ranks_per_node);
    }
    if (step->n_ranks > 0 && launch->n_ranks != step->n_ranks) {
        return err_set(err, ERR_INTERNAL,
                       "case %.*s: planned for %lld ranks, launched with %zu x %lld",
                       STR_ARG(step->case_id), (long long)step->n_ranks, place->n_nodes,
                       (long long)place->ranks_per_node);
    }
    if (!place->master_addr || !*place->master_addr || place->master_port < 1 ||
        place->master_port > UINT16_MAX) {
        return err_set(err, ERR_INTERNAL, "case %.*s: no address of the first rank",
                       STR_ARG(step->case_id));
    }
    return 0;
}

int launch_make(struct arena *arena, const struct launch_opts *opts, const struct plan_step *step,
                const struct launch_place *place, struct launch_jobs *ret_jobs, struct err *err)
{
    struct launch launch = {.arena = arena, .opts = opts, .step = step, .place = place};
    struct launch_job *jobs = arena_array(arena, struct launch_job, place->n_nodes + 1);
    launch.n_ranks = (int64_t)place->n_nodes * place->ranks_per_node;
    if (check_place(&launch, err) < 0 || set_program(&launch, err) < 0) {
        return -1;
    }
    if (!place->inventory->is_local && place->inventory->launcher != LAUNCHER_SSH) {
        bool is_slurm = place->inventory->launcher == LAUNCHER_SLURM;
        if ((is_slurm ? launch_by_slurm : launch_by_mpirun)(&launch, jobs, err) < 0) {
            return -1;
        }
        *ret_jobs = (struct launch_jobs){jobs, 1};
        return 0;
    }
    if (launch_by_ssh(&launch, jobs, err) < 0) {
        return -1;
    }
    *ret_jobs = (struct launch_jobs){jobs, place->n_nodes};
    return 0;
}
