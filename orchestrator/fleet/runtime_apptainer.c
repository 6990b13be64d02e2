/* SPDX-License-Identifier: Apache-2.0 */
/* apptainer. Never run by us: it is not in the distribution; the argv follows the options of its `exec` and `run` (apptainer.org,
   user guide, "apptainer exec"; cmd/internal/cli/action_flags.go at 917d66577963, read 2026-11). The network is always the node's
   own. Environment goes in by APPTAINERENV_NAME, since --env splits values at commas. */
#include "base/base.h"

#include "fleet/runtime_impl.h"

/* $1... the command, after words LIMIT=KIB-OR-COUNT: soft limits are inherited, there is no option for them; one that cannot be had is
   left for the check inside to find. */
static const char RUN[] =
    "while [ \"$1\" != -- ]; do\n"
    "  case $1 in\n"
    "  l=* | s=* | n=* | u=*) ulimit -S -\"${1%%=*}\" \"${1#*=}\" 2>/dev/null ;;\n"
    "  esac\n"
    "  shift\n"
    "done\n"
    "shift\n"
    "APPTAINERENV_" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
    "export APPTAINERENV_" RUNTIME_ENV_NETNS "\n"
    "exec \"$@\"\n";

static const char *beyond(const struct container_flags *flags)
{
    for (size_t idx = 0; idx < flags->n_security; idx++) {
        /* It confines by none of these unless told to. */
        if (!str_eq_z(flags->security[idx], "seccomp=unconfined") &&
            !str_eq_z(flags->security[idx], "apparmor=unconfined") &&
            !str_eq_z(flags->security[idx], "label=disable")) {
            return "that security option";
        }
    }
    return flags->is_privileged ? "all privileges; name devices and capabilities" : NULL;
}

static void add_flags(struct words *words, const struct container_flags *flags)
{
    words_add(words, "--contain");
    words_add(words, "--cleanenv");
    words_add(words, "--no-eval");
    words_add(words, "--writable-tmpfs");
    if (!flags->is_host_pid) {
        words_add(words, "--pid");
    }
    if (!flags->is_host_ipc) {
        words_add(words, "--ipc");
    }
    if (flags->wants_gpus) {
        words_add(words, "--nv");
    }
    if (flags->shm_bytes || flags->is_host_ipc) { /* its own /dev/shm is small, and has no option */
        words_add(words, "--bind");
        words_add(words, "/dev/shm:/dev/shm");
    }
    for (size_t idx = 0; idx < flags->n_devices; idx++) {
        words_add(words, "--bind");
        words_addf(words, "%.*s", STR_ARG(flags->devices[idx]));
    }
    for (size_t idx = 0; idx < flags->n_caps; idx++) {
        words_add(words, "--add-caps");
        words_addf(words, "CAP_%.*s", STR_ARG(flags->caps[idx]));
    }
    if (flags->memory_bytes) {
        words_add(words, "--memory");
        words_addf(words, "%lld", (long long)flags->memory_bytes);
    }
    if (flags->cpuset.ptr) {
        words_add(words, "--cpuset-cpus");
        words_addf(words, "%.*s", STR_ARG(flags->cpuset));
    }
    if (flags->workdir.ptr) {
        words_add(words, "--pwd");
        words_addf(words, "%.*s", STR_ARG(flags->workdir));
    }
}

static const char *const *prefixed(struct arena *arena, const char *const *env)
{
    struct words words;
    words_init(&words, arena);
    for (; *env; env++) {
        words_addf(&words, "APPTAINERENV_%s", *env);
    }
    words.items[words.n] = NULL;
    return words.items;
}

static int commands(struct arena *arena, const struct runtime_job *job,
                    struct runtime_commands *ret_commands, struct err *err)
{
    const struct container_flags *flags = runtime_flags(job);
    struct words words;
    if (!job->image->file.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: no file of it on the nodes",
                       STR_ARG(job->image->name));
    }
    if (runtime_refuse("apptainer", beyond(flags), err) < 0 ||
        runtime_check_mounts(job, ",:", err) < 0) {
        return -1;
    }
    words_init(&words, arena);
    words_add_limited(&words, RUN, flags);
    words_add(&words, "apptainer");
    words_add(&words, job->keeps_entrypoint ? "run" : "exec");
    add_flags(&words, flags);
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        words_add(&words, "--bind");
        words_addf(&words, "%.*s:%.*s:%s", STR_ARG(job->mounts[idx].host),
                   STR_ARG(job->mounts[idx].inside), job->mounts[idx].is_writable ? "rw" : "ro");
    }
    words_add(&words, str_z(arena, job->image->file));
    words_add_all(&words, job->argv);
    ret_commands->env = prefixed(arena, runtime_env(arena, job));
    return words_end(&words, &ret_commands->argv, err);
}

const struct runtime_driver RUNTIME_DRIVER_APPTAINER = {
    .name = "apptainer",
    .commands = commands,
};
