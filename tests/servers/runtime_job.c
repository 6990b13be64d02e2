/* SPDX-License-Identifier: Apache-2.0 */
/* Runs what fleet/runtime makes, as a node's remote would, for tests/integration/test_runtime.sh:
     runtime_job run|show|cleanup KIND NAME IMAGE_ID plain|check|required DOCKER_RUN_LINE [-v HOST:INSIDE|cache] [-e NAME=VALUE] -- ARGV...
     runtime_job exit KIND STATUS <LOG: prints "CODE: MESSAGE"
   The container's run id is "run-test". */
#include "base/base.h"

#include <unistd.h>

#include "fleet/runtime.h"

#define USAGE       2
#define TAIL_MAX    8192
#define OPTIONS_MAX 16

static int die(const struct err *err)
{
    fprintf(stderr, "runtime_job: %s: %s\n", err_code_name(err->code), err->msg);
    return 99;
}

static int run_argv(const char *const *argv, const char *const *env)
{
    for (; env && *env; env++) {
        putenv((char *)(uintptr_t)*env);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    return 98;
}

static struct container_mount mount_of(struct str text)
{
    struct container_mount mount = {0};
    (void)str_next(&text, ':', &mount.host);
    mount.inside = text;
    return mount;
}

struct asked {
    struct runtime_job job;
    struct runtime_image image;
    struct container_flags flags;
    struct container_mount mounts[OPTIONS_MAX];
    const char *env[OPTIONS_MAX + 1];
};

static int read_job(struct arena *arena, char **argv, struct asked *asked, struct err *err)
{
    size_t n_env = 0;
    asked->image = (struct runtime_image){.name = STR_LIT("test"), .id = str_of(argv[1])};
    if (container_flags_of_command(arena, str_of(argv[3]), &asked->flags, err) < 0) {
        return -1;
    }
    const char *check = argv[2];
    asked->job = (struct runtime_job){.name = argv[0],
                                      .image = &asked->image,
                                      .flags = &asked->flags,
                                      .mounts = asked->mounts,
                                      .env = asked->env,
                                      .run_id = "run-test"};
    for (argv += 4; argv[0] && strcmp(argv[0], "--") != 0; argv += 2) {
        ASSERT(argv[1] && n_env < OPTIONS_MAX && asked->job.n_mounts < OPTIONS_MAX);
        if (strcmp(argv[0], "-v") == 0 && strcmp(argv[1], "cache") == 0) {
            asked->job.keeps_cache = true;
        } else if (strcmp(argv[0], "-v") == 0) {
            asked->mounts[asked->job.n_mounts++] = mount_of(str_of(argv[1]));
        } else {
            asked->env[n_env++] = argv[1];
        }
    }
    ASSERT(argv[0] && argv[1]);
    asked->job.argv = (const char *const *)(argv + 1);
    if (strcmp(check, "plain") == 0) {
        return 0;
    }
    return runtime_inside_check(arena, &asked->flags, strcmp(check, "required") == 0,
                                asked->job.argv, &asked->job.argv, err);
}

static int on_job(const char *what, enum runtime_kind kind, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct asked asked = {0};
    struct runtime_commands commands;
    struct err err = {0};
    if (read_job(&arena, argv, &asked, &err) < 0 ||
        runtime_commands(&arena, kind, &asked.job, &commands, &err) < 0) {
        return die(&err);
    }
    if (strcmp(what, "cleanup") == 0) {
        return commands.cleanup ? run_argv(commands.cleanup, NULL) : 0;
    }
    if (strcmp(what, "run") == 0) {
        return run_argv(commands.argv, commands.env);
    }
    for (size_t idx = 0; commands.argv[idx]; idx++) {
        puts(commands.argv[idx]);
    }
    return 0;
}

static int judge_exit(enum runtime_kind kind, const char *status)
{
    char tail[TAIL_MAX];
    size_t len = fread(tail, 1, sizeof(tail), stdin);
    struct err err = {0};
    int64_t value = 0;
    if (str_to_i64(str_of(status), 0, 255, &value, &err) < 0) {
        return die(&err);
    }
    if (runtime_exit_check(kind, (int)value, (struct str){tail, len}, &err) < 0) {
        printf("%s: %s\n", err_code_name(err.code), err.msg);
    } else {
        puts("none");
    }
    return 0;
}

int main(int argc, char **argv)
{
    enum runtime_kind kind;
    if (argc < 3 || !runtime_kind_of_name(str_of(argv[2]), &kind)) {
        return USAGE;
    }
    if (strcmp(argv[1], "exit") == 0 && argc == 4) {
        return judge_exit(kind, argv[3]);
    }
    return argc > 8 ? on_job(argv[1], kind, argv + 3) : USAGE;
}
