/* SPDX-License-Identifier: Apache-2.0 */
/* enroot. Never run by us: it is not in the distribution; the argv follows doc/cmd/start.md, doc/image-format.md and
   doc/standard-hooks.md of github.com/NVIDIA/enroot at 8ea147d337da (read 2026-11). Network, IPC and devices are always the
   node's own; GPUs come by its hook, which reads NVIDIA_VISIBLE_DEVICES. A value of the environment must hold neither $ nor a
   line end: enroot expands what it reads. */
#include "base/base.h"

#include "fleet/runtime_impl.h"

/* Words LIMIT=VALUE up to "--", then "entrypoint" or "plain", then the command up to the image. Without the image's entrypoint the
   command is run by a script of two words, which enroot takes as a file. */
static const char RUN[] =
    "while [ \"$1\" != -- ]; do\n"
    "  case $1 in\n"
    "  l=* | s=* | n=* | u=*) ulimit -S -\"${1%%=*}\" \"${1#*=}\" 2>/dev/null ;;\n"
    "  esac\n"
    "  shift\n"
    "done\n"
    "mode=$2\n"
    "shift 2\n" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
    "export " RUNTIME_ENV_NETNS "\n"
    "[ \"$mode\" = plain ] || exec enroot start \"$@\"\n"
    "tmp=$(mktemp -d) || exit 125\n"
    "trap : HUP INT TERM\n"
    "printf '%s\\n' 'exec \"$@\"' >\"$tmp/rc\"\n"
    "enroot start --rc \"$tmp/rc\" \"$@\"\n"
    "rc=$?\n"
    "rm -rf \"$tmp\"\n"
    "exit \"$rc\"\n";

static const char *beyond(const struct container_flags *flags)
{
    return flags->memory_bytes    ? "a memory limit"
           : flags->cpuset.ptr    ? "a set of CPUs"
           : flags->is_privileged ? "privileges"
           : flags->n_caps        ? "capabilities"
           : flags->n_security    ? "security options"
           : flags->workdir.ptr   ? "a working folder"
                                  : NULL;
}

static int add_env(struct words *words, const char *const *env, bool wants_gpus, struct err *err)
{
    bool has_gpus = false;
    words_add(words, "--env");
    words_add(words, RUNTIME_ENV_NETNS);
    for (; *env; env++) {
        if (strpbrk(*env, "$\n")) {
            return err_set(err, ERR_CONTAINER, "%.*s has a value that enroot would expand",
                           STR_ARG(runtime_env_name(*env)));
        }
        has_gpus = has_gpus || str_eq_z(runtime_env_name(*env), "NVIDIA_VISIBLE_DEVICES");
        words_add(words, "--env");
        if (runtime_env_is_secret(*env)) {
            words_addf(words, "%.*s", STR_ARG(runtime_env_name(*env)));
        } else {
            words_add(words, *env);
        }
    }
    if (wants_gpus && !has_gpus) {
        words_add(words, "--env");
        words_add(words, "NVIDIA_VISIBLE_DEVICES=all");
    }
    return 0;
}

static int commands(struct arena *arena, const struct runtime_job *job,
                    struct runtime_commands *ret_commands, struct err *err)
{
    const struct container_flags *flags = runtime_flags(job);
    const char *const *env = runtime_env(arena, job);
    struct words words;
    if (!job->image->file.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: no file of it on the nodes",
                       STR_ARG(job->image->name));
    }
    if (runtime_refuse("enroot", beyond(flags), err) < 0 ||
        runtime_check_mounts(job, ":", err) < 0) {
        return -1;
    }
    words_init(&words, arena);
    words_add_limited(&words, RUN, flags);
    words_add(&words, job->keeps_entrypoint ? "entrypoint" : "plain");
    words_add(&words, "--rw");
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        words_add(&words, "--mount");
        words_addf(&words, "%.*s:%.*s:none:x-create=auto,bind,%s", STR_ARG(job->mounts[idx].host),
                   STR_ARG(job->mounts[idx].inside), job->mounts[idx].is_writable ? "rw" : "ro");
    }
    if (add_env(&words, env, flags->wants_gpus, err) < 0) {
        return -1;
    }
    words_add(&words, "--");
    words_add(&words, str_z(arena, job->image->file));
    words_add_all(&words, job->argv);
    ret_commands->env = runtime_env_secrets(arena, env);
    return words_end(&words, &ret_commands->argv, err);
}

const struct runtime_driver RUNTIME_DRIVER_ENROOT = {
    .name = "enroot",
    .commands = commands,
};
