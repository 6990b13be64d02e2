/* SPDX-License-Identifier: Apache-2.0 */
/* No container: the workload itself. What only a container can give is refused. */
#include "base/base.h"

#include "fleet/runtime_impl.h"

static const char *beyond(const struct container_flags *flags)
{
    return flags->memory_bytes    ? "a memory limit"
           : flags->cpuset.ptr    ? "a set of CPUs"
           : flags->is_privileged ? "privileges"
           : flags->n_caps        ? "capabilities"
           : flags->n_security    ? "security options"
                                  : NULL;
}

static int commands(struct arena *arena, const struct runtime_job *job,
                    struct runtime_commands *ret_commands, struct err *err)
{
    const struct container_flags *flags = runtime_flags(job);
    struct argv_words words;
    if (runtime_refuse("a plain process", beyond(flags), err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        if (!str_eq(job->mounts[idx].host, job->mounts[idx].inside)) {
            return err_set(err, ERR_CONTAINER, "%.*s cannot be seen as %.*s without a container",
                           STR_ARG(job->mounts[idx].host), STR_ARG(job->mounts[idx].inside));
        }
    }
    words_init(&words, arena);
    if (flags->workdir.ptr) {
        words_add(&words, "/bin/sh");
        words_add(&words, "-c");
        words_add(&words, "cd \"$1\" && shift && exec \"$@\"");
        words_add(&words, "reperf-run");
        words_add(&words, str_z(arena, flags->workdir));
    }
    words_add_all(&words, job->argv);
    ret_commands->env = runtime_env(arena, job);
    return words_end(&words, &ret_commands->argv, err);
}

const struct runtime_driver RUNTIME_DRIVER_NONE = {.name = "none", .commands = commands};
