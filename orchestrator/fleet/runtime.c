/* SPDX-License-Identifier: Apache-2.0 */
/* Words, environment and checks of a container's command, and the meaning of its end. */
#include "base/base.h"

#include "fleet/runtime.h"

#include "base/secret.h"
#include "base/str.h"
#include "fleet/runtime_impl.h"

/* ---- argv ---- */

void words_init(struct argv_words *words, struct arena *arena)
{
    *words = (struct argv_words){.arena = arena,
                                 .items = arena_array(arena, const char *, RUNTIME_ARGV_MAX + 1)};
}

void words_add(struct argv_words *words, const char *word)
{
    words->is_full = words->is_full || words->n == RUNTIME_ARGV_MAX;
    if (!words->is_full) {
        words->items[words->n++] = word;
    }
}

void words_addf(struct argv_words *words, const char *fmt, ...)
{
    CLEANUP(free) char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    ASSERT(len >= 0);
    words_add(words, arena_strndup(words->arena, text, (size_t)len));
}

void words_add_all(struct argv_words *words, const char *const *argv)
{
    for (; *argv; argv++) {
        words_add(words, *argv);
    }
}

int words_end(struct argv_words *words, const char *const **ret_argv, struct err *err)
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

struct str runtime_env_name(const char *entry)
{
    struct str rest = str_of(entry), name = STR_EMPTY;
    (void)str_next(&rest, '=', &name);
    return name;
}

static bool has_name(const char *const *env, struct str name)
{
    for (; env && *env; env++) {
        if (str_eq(runtime_env_name(*env), name)) {
            return true;
        }
    }
    return false;
}

const char *const *runtime_env(struct arena *arena, const struct runtime_job *job)
{
    const struct container_flags *flags = runtime_flags(job);
    size_t n = 0, n_job = 0;
    const char **env;
    while (job->env && job->env[n_job]) {
        n_job++;
    }
    env = arena_array(arena, const char *, n_job + flags->n_env + 1);
    for (size_t idx = 0; idx < flags->n_env; idx++) {
        const char *entry = str_z(arena, flags->env[idx]);
        if (!has_name(job->env, runtime_env_name(entry))) {
            env[n++] = entry;
        }
    }
    for (size_t idx = 0; idx < n_job; idx++) {
        env[n++] = job->env[idx];
    }
    return env;
}

bool runtime_env_is_secret(const char *entry)
{
    struct str name = runtime_env_name(entry);
    struct str value = str_sub(str_of(entry), name.len + 1, SIZE_MAX);
    return secret_is(name, value);
}

const char *const *runtime_env_secrets(struct arena *arena, const char *const *env)
{
    size_t n = 0;
    for (const char *const *entry = env; *entry; entry++) {
        n++;
    }
    const char **secrets = arena_array(arena, const char *, n + 1);
    n = 0;
    for (; *env; env++) {
        if (runtime_env_is_secret(*env)) {
            secrets[n++] = *env;
        }
    }
    return secrets;
}

/* ---- checks ---- */

const struct container_flags *runtime_flags(const struct runtime_job *job)
{
    static const struct container_flags NONE;
    return job->flags ? job->flags : &NONE;
}

int runtime_check_mounts(const struct runtime_job *job, const char *forbidden, struct err *err)
{
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        const struct str paths[] = {job->mounts[idx].host, job->mounts[idx].inside};
        for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
            bool is_bad = !container_is_path(paths[p]);
            for (const char *c = forbidden; *c && !is_bad; c++) {
                is_bad = memchr(paths[p].ptr, *c, paths[p].len) != NULL;
            }
            if (is_bad) {
                return err_set(err, ERR_CONTAINER,
                               "\"%.*s\" cannot be mounted: expected an absolute path without "
                               "blanks, $ ` and %s",
                               (int)(paths[p].len < 200 ? paths[p].len : 200),
                               paths[p].ptr ? paths[p].ptr : "", forbidden);
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

int runtime_commands(struct arena *arena, enum runtime_kind kind, const struct runtime_job *job,
                     struct runtime_commands *ret_commands, struct err *err)
{
    struct runtime_commands commands = {0};
    static const char *const NO_ENV[] = {NULL};
    ASSERT(kind < RUNTIME_KIND_COUNT && job->argv && job->argv[0]);
    if (kind != RUNTIME_NONE) {
        ASSERT(job->image && job->run_id);
        if (check_name(job->name, err) < 0) {
            return -1;
        }
    }
    commands.env = NO_ENV;
    if (runtime_table_commands(arena, kind, job, &commands, err) < 0) {
        return err->code == ERR_CONTAINER ? err_wrap(err, "runtime %s", RUNTIME_KIND_NAMES[kind])
                                          : -1;
    }
    *ret_commands = commands;
    return 0;
}

/* ---- the end ---- */

/* The last line that starts with `start`; ptr NULL: none. */
static struct str last_line(struct str log, struct str start)
{
    struct str line, found = STR_EMPTY;
    while (str_next(&log, '\n', &line)) {
        line = str_trim(line);
        if (line.len && str_starts(line, start)) {
            found = line;
        }
    }
    return found;
}

/* The last line that is not one of ours. */
static struct str last_words(struct str log)
{
    struct str line, found = STR_EMPTY, logged = STR_EMPTY;
    while (str_next(&log, '\n', &line)) {
        line = str_trim(line);
        /* docker's and podman's own log, which may follow the error itself: used if there is nothing better. */
        if (str_starts(line, STR_LIT("time=\"")) && str_find(line, STR_LIT(" level=")) >= 0) {
            logged = line;
        } else if (line.len && !str_starts(line, STR_LIT("{\"event\":\"container")) &&
                   /* docker's own last line says where its help is. */
                   !str_starts(line, STR_LIT("See 'docker run --help'")) &&
                   !str_starts(line, STR_LIT("Run 'docker run --help'"))) {
            found = line;
        }
    }
    return found.ptr ? found : logged.ptr ? logged : STR_LIT("its log says nothing");
}

static bool says(struct str line, const char *what)
{
    return line.ptr && str_find(line, str_of(what)) >= 0;
}

static int fail_with(struct err *err, enum err_code code, const char *what, struct str line)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return err_set(err, code, "%s: %s", what, said_shown(&arena, line));
}

/* oom: the line from inside, if there is one. */
static int fail_memory(struct err *err, struct str oom)
{
    const struct str key = STR_LIT("\"memory_bytes\":");
    struct err ignored = {0};
    int64_t limit = 0;
    int64_t at = oom.ptr ? str_find(oom, key) : -1;
    if (at >= 0) {
        struct str rest = str_sub(oom, (size_t)at + key.len, SIZE_MAX), number;
        if (str_next(&rest, ',', &number) &&
            str_to_i64(number, 1, INT64_MAX, &limit, &ignored) == 0) {
            return err_set(err, ERR_CONTAINER, "out of memory (limit %lld bytes)",
                           (long long)limit);
        }
    }
    return err_set(err, ERR_CONTAINER, "out of memory: the kernel killed a process of it");
}

/* 125 is the engine's own status, also where its client lost it after the container was started. */
bool runtime_is_lost(enum runtime_kind kind, int exit_status, struct str log_tail)
{
    struct str end = last_line(log_tail, STR_LIT("{\"event\":\"container_end\""));
    struct str words = last_words(log_tail);
    return kind != RUNTIME_NONE && exit_status != 0 &&
           (says(end, "\"started\":null") ||
            (exit_status == 125 && says(end, "\"started\":true") &&
             (says(words, "unexpected EOF") || says(words, "error waiting for container") ||
              says(words, "annot connect to the Docker daemon"))));
}

int runtime_exit_check(enum runtime_kind kind, int exit_status, struct str log_tail,
                       struct err *err)
{
    struct str end = last_line(log_tail, STR_LIT("{\"event\":\"container_end\""));
    struct str oom = last_line(log_tail, STR_LIT("{\"event\":\"container_oom\""));
    struct str check = last_line(log_tail, STR_LIT("{\"event\":\"container\","));
    struct str words = last_words(log_tail);
    char status[32];
    if (exit_status == 0) {
        return 0;
    }
    snprintf(status, sizeof(status), "status %d", exit_status);
    if (oom.ptr || says(end, "\"oom_killed\":true")) {
        return fail_memory(err, oom);
    }
    if (exit_status == 125 && says(check, "\"holds\":false")) {
        return fail_with(err, ERR_CONTAINER, "a flag of the launch does not hold in the container",
                         check);
    }
    if (kind != RUNTIME_NONE && says(end, "\"started\":false")) {
        return fail_with(err, ERR_CONTAINER, "the container could not be started", words);
    }
    if (kind != RUNTIME_NONE && says(end, "\"started\":null")) {
        return fail_with(err, ERR_CONTAINER, "the container was lost", words);
    }
    if (kind != RUNTIME_NONE && exit_status == 127) {
        return fail_with(err, ERR_CONTAINER, "no such program in the container (status 127)",
                         words);
    }
    if (kind != RUNTIME_NONE && exit_status == 126) {
        return fail_with(err, ERR_CONTAINER, "cannot be run in the container (status 126)", words);
    }
    if (exit_status > 128 && exit_status < 128 + 65) {
        snprintf(status, sizeof(status), "ended by signal %d", exit_status - 128);
    }
    return fail_with(err, ERR_WORKLOAD, status, words);
}
