/* SPDX-License-Identifier: Apache-2.0 */
/* docker and podman: the same options, except for GPUs. A script on the node runs the engine's client in the foreground and asks
   afterwards how the container ended; so the container is not removed by the engine (--rm) but by that script, and by cleanup where
   the script was killed. Its log is not kept by the engine as well. Values of the environment stand in argv unless they sound like
   secrets. */
#include "base/base.h"

#include "fleet/runtime_oci.h"

/* $1 the engine, then what follows its `run`. TERM reaches the client too, which passes it on: this only has to live on until it
   ends, also where nobody reads its log any more. podman's conmon writes a file "oom" where it is started: there, not here. The container is known by its id, since its name could be another's. One that never ran has year 1 as StartedAt. */
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
    "  [ -z \"$id\" ] || case $(\"$engine\" container inspect --format "
    "'{{.State.OOMKilled}} {{.State.StartedAt}}' \"$id\" 2>/dev/null) in\n"
    "  'true '*) oom=true started=true ;;\n"
    "  'false 0001-'*) ;;\n"
    "  'false '*) started=true ;;\n"
    "  *) oom=null started=null ;;\n"
    "  esac\n"
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

static void add_limit(struct argv_words *words, const char *name, int64_t limit)
{
    if (limit != 0) {
        words_add(words, "--ulimit");
        words_addf(words, "%s=%lld:%lld", name, (long long)limit, (long long)limit);
    }
}

static void add_list(struct argv_words *words, const char *option, const struct str *items,
                     size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        words_add(words, option);
        words_add(words, str_z(words->arena, items[idx]));
    }
}

static void add_flags(struct argv_words *words, const struct container_flags *flags,
                      const char *const *gpus)
{
    if (flags->is_host_net) {
        words_add(words, "--network=host");
    }
    if (flags->is_host_ipc) {
        words_add(words, "--ipc=host");
    }
    if (flags->is_host_pid) {
        words_add(words, "--pid=host");
    }
    if (flags->is_privileged) {
        words_add(words, "--privileged");
    }
    if (flags->wants_gpus) {
        words_add_all(words, gpus);
    }
    /* With the host's IPC it is the host's /dev/shm; podman refuses both together. The check inside looks at its size. */
    if (flags->shm_bytes && !flags->is_host_ipc) {
        words_addf(words, "--shm-size=%lld", (long long)flags->shm_bytes);
    }
    add_limit(words, "memlock", flags->memlock_bytes);
    add_limit(words, "stack", flags->stack_bytes);
    add_limit(words, "nofile", flags->n_files);
    add_limit(words, "nproc", flags->n_processes);
    if (flags->memory_bytes) { /* as much with swap as without: none */
        words_addf(words, "--memory=%lld", (long long)flags->memory_bytes);
        words_addf(words, "--memory-swap=%lld", (long long)flags->memory_bytes);
    }
    if (flags->cpuset.ptr) {
        words_addf(words, "--cpuset-cpus=%.*s", STR_ARG(flags->cpuset));
    }
    add_list(words, "--device", flags->devices, flags->n_devices);
    add_list(words, "--cap-add", flags->caps, flags->n_caps);
    add_list(words, "--security-opt", flags->security, flags->n_security);
    if (flags->workdir.ptr) {
        words_addf(words, "--workdir=%.*s", STR_ARG(flags->workdir));
    }
}

static void add_mounts(struct argv_words *words, const struct runtime_job *job)
{
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        const struct container_mount *mount = &job->mounts[idx];
        /* --mount, not -v: a source that is not there is an error and not made as an empty folder. */
        words_add(words, "--mount");
        words_addf(words, "type=bind,source=%.*s,target=%.*s%s", STR_ARG(mount->host),
                   STR_ARG(mount->inside), mount->is_writable ? "" : ",readonly");
    }
}

static void add_env(struct argv_words *words, const char *const *env)
{
    words_add(words, "--env");
    words_add(words, RUNTIME_ENV_NETNS);
    for (; *env; env++) {
        words_add(words, "--env");
        if (runtime_env_is_secret(*env)) {
            words_addf(words, "%.*s", STR_ARG(runtime_env_name(*env)));
        } else {
            words_add(words, *env);
        }
    }
}

static void add_cleanup(struct argv_words *words, const char *engine, const char *name)
{
    words_add(words, "/bin/sh");
    words_add(words, "-c");
    words_add(words, CLEANUP_SCRIPT);
    words_add(words, "reperf-cleanup");
    words_add(words, engine);
    words_add(words, name);
}

int runtime_oci_commands(struct arena *arena, const struct runtime_job *job, const char *engine,
                         const char *const *gpus, struct runtime_commands *ret_commands,
                         struct err *err)
{
    struct argv_words words, cleanup;
    const char *const *env = runtime_env(arena, job);
    const char *const *argv = job->argv;
    if (!job->image->id.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: its id is not known",
                       STR_ARG(job->image->name));
    }
    if (runtime_check_mounts(job, ",\"", err) < 0) {
        return -1;
    }
    words_init(&words, arena);
    words_init(&cleanup, arena);
    words_add(&words, "/bin/sh");
    words_add(&words, "-c");
    words_add(&words, RUN);
    words_add(&words, "reperf-run");
    words_add(&words, engine);
    words_addf(&words, "--name=%s", job->name);
    words_addf(&words, "--label=%s=%s", RUNTIME_LABEL_RUN, job->run_id);
    words_addf(&words, "--label=%s=%s", RUNTIME_LABEL_JOB, job->name);
    words_add(&words, "--pull=never");
    words_add(&words, "--log-driver=none");
    add_flags(&words, runtime_flags(job), gpus);
    add_mounts(&words, job);
    add_env(&words, env);
    if (!job->keeps_entrypoint) {
        words_addf(&words, "--entrypoint=%s", *argv++);
    }
    words_add(&words, str_z(arena, job->image->id));
    words_add_all(&words, argv);
    add_cleanup(&cleanup, engine, job->name);
    ret_commands->env = runtime_env_secrets(arena, env);
    return words_end(&words, &ret_commands->argv, err) < 0
               ? -1
               : words_end(&cleanup, &ret_commands->cleanup, err);
}
