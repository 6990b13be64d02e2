/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of the end of a container's command. */
#include "base/base.h"

#include "base/str.h"
#include "fleet/runtime.h"

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
    return err_set(err, code, "%s: %s", what, quote_shown(&arena, line));
}

/* oom: the line from inside, if there is one. */
static int fail_memory(struct err *err, struct str oom)
{
    const struct str key = STR_LIT("\"memory_bytes\":");
    int64_t limit = 0;
    int64_t at = oom.ptr ? str_find(oom, key) : -1;
    if (at >= 0) {
        struct str rest = str_sub(oom, (size_t)at + key.len, SIZE_MAX), number;
        if (str_next(&rest, ',', &number) &&
            str_to_i64(number, 1, INT64_MAX, &limit, ERR_IGNORED) == 0) {
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
