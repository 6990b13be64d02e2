/* SPDX-License-Identifier: Apache-2.0 */
/* What the drivers of the container engines share. Only fleet/runtime*.c include it. */
#ifndef FLEET_RUNTIME_IMPL_H
#define FLEET_RUNTIME_IMPL_H

#include "fleet/runtime.h"

#define RUNTIME_ARGV_MAX 4096
#define RUNTIME_WORD_MAX (1u << 20) /* bytes */

struct runtime_driver {
    const char *name;
    int (*commands)(struct arena *arena, const struct runtime_job *job,
                    struct runtime_commands *ret_commands, struct err *err);
};

extern const struct runtime_driver RUNTIME_DRIVER_DOCKER;
extern const struct runtime_driver RUNTIME_DRIVER_PODMAN;
extern const struct runtime_driver RUNTIME_DRIVER_APPTAINER;
extern const struct runtime_driver RUNTIME_DRIVER_ENROOT;
extern const struct runtime_driver RUNTIME_DRIVER_NONE;

/* The environment of the node's own network, set by the script that starts the engine, read by the check inside. */
#define RUNTIME_ENV_NETNS "REPERF_HOST_NETNS"

/* An argv being made. */
struct argv_words {
    struct arena *arena;
    const char **items; /* RUNTIME_ARGV_MAX + 1 */
    size_t n;
    bool is_full;
};
void words_init(struct argv_words *words, struct arena *arena);
void words_add(struct argv_words *words, const char *word);
void words_addf(struct argv_words *words, const char *fmt, ...) PRINTF_LIKE(2, 3);
void words_add_all(struct argv_words *words, const char *const *argv);
/* "/bin/sh -c script reperf-run", then the flags' limits as ulimit's letters, "l=unlimited", in its units, then "--": for engines that
   have no option for them. */
void words_add_limited(struct argv_words *words, const char *script,
                       const struct container_flags *flags);
/* ERR_CONTAINER where it is longer than RUNTIME_ARGV_MAX. */
MUST_CHECK int words_end(struct argv_words *words, const char *const **ret_argv, struct err *err);

/* flags->env and job->env, the latter's values where both have a name; ended by NULL. */
const char *const *runtime_env(struct arena *arena, const struct runtime_job *job);
/* Of "NAME=VALUE": a name that sounds like a secret. */
bool runtime_env_is_secret(const char *entry);
/* Those that are; ended by NULL. */
const char *const *runtime_env_secrets(struct arena *arena, const char *const *env);
struct str runtime_env_name(const char *entry);

/* Never NULL. */
const struct container_flags *runtime_flags(const struct runtime_job *job);

/* Each word of a line "what, what" that the engine cannot do; NULL: all is well. */
MUST_CHECK int runtime_refuse(const char *engine, const char *what, struct err *err);
/* Mount paths with one of these characters cannot be written in the engine's syntax. */
MUST_CHECK int runtime_check_mounts(const struct runtime_job *job, const char *forbidden,
                                    struct err *err);

#endif
