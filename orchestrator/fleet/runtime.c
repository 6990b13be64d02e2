/* SPDX-License-Identifier: Apache-2.0 */
/* The container engines as rows of one table. docker and podman are given the same words; apptainer and enroot are untried:
   no image is brought to them, so their row is a refusal. podman's GPUs: NVIDIA Container Toolkit, "Support for Container
   Device Interface". */
#include "base/base.h"

#include "fleet/runtime.h"

#include "base/embed.h"
#include "base/secret.h"
#include "base/str.h"

#define RUNTIME_ARGV_MAX 4096
/* The environment of the node's own network, set by the script that starts the engine, read by the check inside. */
#define RUNTIME_ENV_NETNS "REPERF_HOST_NETNS"

EMBED(inside_sh, "orchestrator/fleet/inside.sh");

/* An argv being made. */
struct argv_words {
    struct arena *arena;
    const char **items; /* RUNTIME_ARGV_MAX + 1 */
    size_t n;
    bool is_full;
};

static void words_init(struct argv_words *words, struct arena *arena)
{
    *words = (struct argv_words){.arena = arena,
                                 .items = arena_array(arena, const char *, RUNTIME_ARGV_MAX + 1)};
}

static void words_add(struct argv_words *words, const char *word)
{
    words->is_full = words->is_full || words->n == RUNTIME_ARGV_MAX;
    if (!words->is_full) {
        words->items[words->n++] = word;
    }
}

static PRINTF_LIKE(2, 3) void words_addf(struct argv_words *words, const char *fmt, ...)
{
    CLEANUP(free) char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    ASSERT(len >= 0);
    words_add(words, arena_strndup(words->arena, text, (size_t)len));
}

static void words_add_all(struct argv_words *words, const char *const *argv)
{
    for (; *argv; argv++) {
        words_add(words, *argv);
    }
}

/* ERR_CONTAINER where it is longer than RUNTIME_ARGV_MAX. */
static int words_end(struct argv_words *words, const char *const **ret_argv, struct err *err)
{
    if (words->is_full) {
        return err_set(err, ERR_CONTAINER, "the container's command has more than %d words",
                       RUNTIME_ARGV_MAX);
    }
    words->items[words->n] = NULL;
    *ret_argv = words->items;
    return 0;
}

/* ---- environment ---- */

/* Never NULL. */
static const struct container_flags *flags_of(const struct runtime_job *job)
{
    static const struct container_flags NONE;
    return job->flags ? job->flags : &NONE;
}

static struct str env_name(const char *entry)
{
    struct str rest = str_of(entry), name = STR_EMPTY;
    (void)str_next(&rest, '=', &name);
    return name;
}

static bool has_name(const char *const *env, struct str name)
{
    for (; env && *env; env++) {
        if (str_eq(env_name(*env), name)) {
            return true;
        }
    }
    return false;
}

/* flags->env and job->env, the latter's values where both have a name; ended by NULL. */
static const char *const *env_of(struct arena *arena, const struct runtime_job *job)
{
    const struct container_flags *flags = flags_of(job);
    size_t n = 0, n_job = 0;
    const char **env;
    while (job->env && job->env[n_job]) {
        n_job++;
    }
    env = arena_array(arena, const char *, n_job + flags->n_env + 1);
    for (size_t idx = 0; idx < flags->n_env; idx++) {
        const char *entry = str_z(arena, flags->env[idx]);
        if (!has_name(job->env, env_name(entry))) {
            env[n++] = entry;
        }
    }
    for (size_t idx = 0; idx < n_job; idx++) {
        env[n++] = job->env[idx];
    }
    return env;
}

/* Whether the name in "NAME=VALUE" sounds like a secret. */
static bool env_is_secret(const char *entry)
{
    struct str name = env_name(entry);
    struct str value = str_sub(str_of(entry), name.len + 1, SIZE_MAX);
    return secret_is(name, value);
}

/* Those that are; ended by NULL. */
static const char *const *env_secrets(struct arena *arena, const char *const *env)
{
    struct argv_words words;
    words_init(&words, arena);
    for (; *env; env++) {
        if (env_is_secret(*env)) {
            words_add(&words, *env);
        }
    }
    return words.items;
}

/* ---- checks ---- */

/* Mount paths with these characters cannot be written in the engines' syntax. */
static int check_mounts(const struct runtime_job *job, struct err *err)
{
    static const char FORBIDDEN[] = ",\"";
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        const struct str paths[] = {job->mounts[idx].host, job->mounts[idx].inside};
        for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
            if (!container_is_path(paths[p]) || str_cspan(paths[p], 0, FORBIDDEN) < paths[p].len) {
                return err_set(err, ERR_CONTAINER,
                               "\"%.*s\" cannot be mounted: expected an absolute path without "
                               "blanks, $ ` and %s",
                               STR_ARG(str_sub(paths[p], 0, 200)), FORBIDDEN);
            }
        }
    }
    return 0;
}

static int check_name(const char *name, struct err *err)
{
    size_t len = name ? strlen(name) : 0;
    if (len && (!str_is_made_of(str_of(name), "a-zA-Z0-9_.-") || strchr("-_.", name[0]))) {
        return err_set(err, ERR_CONTAINER, "\"%.100s\" is not a container name", name);
    }
    return len > 0 && len <= 200
               ? 0
               : err_set(err, ERR_CONTAINER, "a container's name has 1 to 200 characters, not %zu",
                         len);
}

/* ---- the engines ---- */

static const struct engine {
    const char *gpus[2]; /* the words for all of them */
    bool is_container, is_untried;
} ENGINES[RUNTIME_KIND_COUNT] = {
    [RUNTIME_DOCKER] = {.gpus = {"--gpus=all"}, .is_container = true},
    [RUNTIME_PODMAN] = {.gpus = {"--device", "nvidia.com/gpu=all"}, .is_container = true},
    [RUNTIME_APPTAINER] = {.is_container = true, .is_untried = true},
    [RUNTIME_ENROOT] = {.is_container = true, .is_untried = true},
};

/* $1 the engine, then what follows its `run`. TERM reaches the client too, which passes it on: this only has to live on until
   it ends, also where nobody reads its log any more. podman's conmon writes a file "oom" where it is started: there, not
   here. The container is known by its id, since its name could be another's. One that never ran has year 1 as StartedAt. It
   is not removed by the engine (--rm) but here, after it was asked how it ended, and by cleanup where this was killed. */
static const char RUN[] =
    "engine=$1\n"
    "shift\n"
    "tmp=$(mktemp -d) && cd \"$tmp\" || exit 125\n"
    "trap : HUP INT TERM PIPE\n" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
    "export " RUNTIME_ENV_NETNS "\n"
    "\"$engine\" run --cidfile \"$tmp/id\" \"$@\"\n"
    "rc=$?\n"
    "id= started=false oom=false\n"
    "[ ! -s \"$tmp/id\" ] || read -r id <\"$tmp/id\" || [ -n \"$id\" ]\n"
    "cd / && rm -rf \"$tmp\"\n"
    "if [ \"$rc\" -ne 0 ]; then\n"
    "  [ -z \"$id\" ] || for wait in 1 0; do\n"
    "    case $(\"$engine\" container inspect --format "
    "'{{.State.OOMKilled}} {{.State.StartedAt}}' \"$id\" 2>/dev/null) in\n"
    "    'true '*) oom=true started=true ;;\n"
    "    'false 0001-'*) ;;\n"
    "    'false '*) started=true; [ \"$rc\" -ne 137 ] || { sleep \"$wait\"; continue; } ;;\n"
    "    *) oom=null started=null ;;\n"
    "    esac\n"
    "    break\n"
    "  done\n"
    "  printf '\\n{\"event\":\"container_end\",\"status\":%s,\"oom_killed\":%s,\"started\":%s}\\n' "
    "\"$rc\" \"$oom\" \"$started\" >&2\n"
    "fi\n"
    "[ -z \"$id\" ] || \"$engine\" rm -f \"$id\" >/dev/null 2>&1\n"
    "exit \"$rc\"\n";

/* $1 the engine, $2 the name. An engine that does not know the container has nothing to remove. */
static const char CLEANUP_SCRIPT[] =
    "out=$(\"$1\" rm -f \"$2\" 2>&1) && exit 0\n"
    "case $out in *'o such container'* | *'no container with'*) exit 0 ;; esac\n"
    "printf '%s\\n' \"$out\" >&2\n"
    "exit 1\n";

static void add_each(struct argv_words *words, const char *option, const struct str *items,
                     size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        words_add(words, option);
        words_add(words, str_z(words->arena, items[idx]));
    }
}

static void add_limits(struct argv_words *words, const struct container_flags *flags)
{
    const struct {
        const char *name;
        int64_t value;
    } LIMITS[] = {{"memlock", flags->memlock_bytes},
                  {"stack", flags->stack_bytes},
                  {"nofile", flags->n_files},
                  {"nproc", flags->n_processes}};
    /* With the host's IPC it is the host's /dev/shm; podman refuses both together. The check inside looks at its size. */
    if (flags->shm_bytes && !flags->is_host_ipc) {
        words_addf(words, "--shm-size=%" PRId64, flags->shm_bytes);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(LIMITS); idx++) {
        if (LIMITS[idx].value) {
            words_add(words, "--ulimit");
            words_addf(words, "%s=%" PRId64 ":%" PRId64, LIMITS[idx].name, LIMITS[idx].value,
                       LIMITS[idx].value);
        }
    }
    if (flags->memory_bytes) { /* as much with swap as without: none */
        words_addf(words, "--memory=%" PRId64, flags->memory_bytes);
        words_addf(words, "--memory-swap=%" PRId64, flags->memory_bytes);
    }
    if (flags->cpuset.ptr) {
        words_addf(words, "--cpuset-cpus=%.*s", STR_ARG(flags->cpuset));
    }
}

static void add_if(struct argv_words *words, bool is_asked, const char *word)
{
    if (is_asked) {
        words_add(words, word);
    }
}

/* What follows `run`. --mount, not -v: a source that is not there is an error and not made as an empty folder. Of a secret
   ENV has the name: its value is in the engine's own environment. */
static void add_words(struct argv_words *words, const struct engine *engine,
                      const struct runtime_job *job, const char *const *env)
{
    const struct container_flags *flags = flags_of(job);
    words_addf(words, "--name=%s", job->name);
    words_addf(words, "--label=" RUNTIME_LABEL_RUN "=%s", job->run_id);
    words_addf(words, "--label=" RUNTIME_LABEL_JOB "=%s", job->name);
    words_add(words, "--pull=never");
    words_add(words, "--log-driver=none");
    add_if(words, flags->is_host_net, "--network=host");
    add_if(words, flags->is_host_ipc, "--ipc=host");
    add_if(words, flags->is_host_pid, "--pid=host");
    add_if(words, flags->is_privileged, "--privileged");
    for (size_t idx = 0; idx < ARRAY_LEN(engine->gpus); idx++) {
        add_if(words, flags->wants_gpus && engine->gpus[idx], engine->gpus[idx]);
    }
    add_limits(words, flags);
    add_each(words, "--device", flags->devices, flags->n_devices);
    add_each(words, "--cap-add", flags->caps, flags->n_caps);
    add_each(words, "--security-opt", flags->security, flags->n_security);
    if (flags->workdir.ptr) {
        words_addf(words, "--workdir=%.*s", STR_ARG(flags->workdir));
    }
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        words_add(words, "--mount");
        words_addf(words, "type=bind,source=%.*s,target=%.*s,readonly",
                   STR_ARG(job->mounts[idx].host), STR_ARG(job->mounts[idx].inside));
    }
    if (job->keeps_cache) {
        words_add(words, "--mount");
        words_add(words, "type=volume,source=" RUNTIME_CACHE_NAME ",target=" RUNTIME_CACHE);
    }
    words_add(words, "--env");
    words_add(words, RUNTIME_ENV_NETNS);
    for (; *env; env++) {
        words_add(words, "--env");
        words_add(words, env_is_secret(*env) ? str_z(words->arena, env_name(*env)) : *env);
    }
    if (!job->keeps_entrypoint) {
        words_addf(words, "--entrypoint=%s", job->argv[0]);
    }
    words_add(words, str_z(words->arena, job->image->id));
    words_add_all(words, job->argv + !job->keeps_entrypoint);
}

/* ---- commands ---- */

static void add_script(struct argv_words *words, const char *script, const char *name)
{
    words_add(words, "/bin/sh");
    words_add(words, "-c");
    words_add(words, script);
    words_add(words, name);
}

/* What a process cannot have without a container; NULL: nothing of it is asked. */
static const char *beyond_process(const struct container_flags *flags)
{
    /* A process is not confined and needs no word not to be. */
    static const char *const OFF[] = {"seccomp=unconfined", "apparmor=unconfined", "label=disable",
                                      NULL};
    for (size_t idx = 0; idx < flags->n_security; idx++) {
        if (!str_eq_any(flags->security[idx], OFF)) {
            return "security options";
        }
    }
    return flags->memory_bytes    ? "a memory limit"
           : flags->cpuset.ptr    ? "a set of CPUs"
           : flags->is_privileged ? "privileges"
           : flags->n_caps        ? "capabilities"
                                  : NULL;
}

/* The workload itself. What only a container can give is refused. */
static int commands_without(struct arena *arena, const struct runtime_job *job,
                            struct runtime_commands *ret_commands, struct err *err)
{
    const struct container_flags *flags = flags_of(job);
    const char *what = beyond_process(flags);
    struct argv_words words;
    if (what) {
        return err_set(err, ERR_CONTAINER, "a plain process cannot give a container %s", what);
    }
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        const struct container_mount *mount = &job->mounts[idx];
        if (!str_eq(mount->host, mount->inside)) {
            return err_set(err, ERR_CONTAINER, "%.*s cannot be seen as %.*s without a container",
                           STR_ARG(mount->host), STR_ARG(mount->inside));
        }
    }
    words_init(&words, arena);
    if (flags->workdir.ptr) {
        add_script(&words, "cd \"$1\" && shift && exec \"$@\"", "reperf-run");
        words_add(&words, str_z(arena, flags->workdir));
    }
    words_add_all(&words, job->argv);
    ret_commands->env = env_of(arena, job);
    return words_end(&words, &ret_commands->argv, err);
}

static int commands_of(struct arena *arena, enum runtime_kind kind, const struct runtime_job *job,
                       struct runtime_commands *ret_commands, struct err *err)
{
    const char *name = RUNTIME_KIND_NAMES[kind];
    const char *const *env = env_of(arena, job);
    struct argv_words words, cleanup;
    if (ENGINES[kind].is_untried) {
        return err_set(err, ERR_CONTAINER, "it is untried: use docker or podman");
    }
    if (!job->image->id.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: its id is not known",
                       STR_ARG(job->image->name));
    }
    if (check_name(job->name, err) < 0 || check_mounts(job, err) < 0) {
        return -1;
    }
    words_init(&words, arena);
    add_script(&words, RUN, "reperf-run");
    words_add(&words, name);
    add_words(&words, &ENGINES[kind], job, env);
    words_init(&cleanup, arena);
    add_script(&cleanup, CLEANUP_SCRIPT, "reperf-cleanup");
    words_add(&cleanup, name);
    words_add(&cleanup, job->name);
    ret_commands->env = env_secrets(arena, env);
    return words_end(&cleanup, &ret_commands->cleanup, err) < 0
               ? -1
               : words_end(&words, &ret_commands->argv, err);
}

int runtime_commands(struct arena *arena, enum runtime_kind kind, const struct runtime_job *job,
                     struct runtime_commands *ret_commands, struct err *err)
{
    struct runtime_commands commands = {0};
    bool is_container = ENGINES[kind].is_container;
    ASSERT(kind < RUNTIME_KIND_COUNT && job->argv && job->argv[0]);
    ASSERT(!is_container || (job->image && job->run_id));
    if ((is_container ? commands_of(arena, kind, job, &commands, err)
                      : commands_without(arena, job, &commands, err)) < 0) {
        return err->code == ERR_CONTAINER ? err_wrap(err, "runtime %s", RUNTIME_KIND_NAMES[kind])
                                          : -1;
    }
    *ret_commands = commands;
    return 0;
}

/* ---- the check inside, by inside.sh ---- */

static void add_number(struct argv_words *words, const char *name, int64_t value)
{
    if (value != 0) {
        words_addf(words, "%s=%lld", name, (long long)value);
    }
}

int runtime_inside_check(struct arena *arena, const struct container_flags *flags, bool is_required,
                         const char *const *argv, const char *const **ret_argv, struct err *err)
{
    struct argv_words words;
    words_init(&words, arena);
    words_add(&words, "/bin/sh");
    words_add(&words, "-c");
    words_add(&words, embedded_body(EMBEDDED(inside_sh)).ptr);
    words_add(&words, "reperf-inside");
    if (is_required) {
        words_add(&words, "required");
    }
    add_number(&words, "shm", flags->shm_bytes);
    add_number(&words, "memlock", flags->memlock_bytes);
    add_number(&words, "stack", flags->stack_bytes);
    add_number(&words, "files", flags->n_files);
    add_number(&words, "procs", flags->n_processes);
    add_number(&words, "memory", flags->memory_bytes);
    if (flags->is_host_net) {
        words_add(&words, "net");
    }
    if (flags->wants_gpus) {
        words_add(&words, "gpus");
    }
    for (size_t idx = 0; idx < flags->n_devices; idx++) {
        /* HOST:INSIDE:RIGHTS */
        struct str rest = flags->devices[idx], host, inside;
        (void)str_next(&rest, ':', &host);
        inside = rest.ptr && rest.len && rest.ptr[0] == '/' && str_next(&rest, ':', &inside)
                     ? inside
                     : host;
        words_addf(&words, "device=%.*s", STR_ARG(inside));
    }
    words_add(&words, "--");
    words_add_all(&words, argv);
    return words_end(&words, ret_argv, err);
}
