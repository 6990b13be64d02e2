/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the container engines share. Only fleet/runtime*.c include it. */
#ifndef FLEET_RUNTIME_IMPL_H
#define FLEET_RUNTIME_IMPL_H

#include "fleet/runtime.h"

#define RUNTIME_ARGV_MAX 4096
#define RUNTIME_WORD_MAX (1u << 20) /* bytes */

/* runtime_commands of a job whose name was checked (runtime_table.c). */
MUST_CHECK int runtime_table_commands(struct arena *arena, enum runtime_kind kind,
                                      const struct runtime_job *job,
                                      struct runtime_commands *ret_commands, struct err *err);

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

/* Mount paths with one of these characters cannot be written in the engine's syntax. */
MUST_CHECK int runtime_check_mounts(const struct runtime_job *job, const char *forbidden,
                                    struct err *err);

#endif
