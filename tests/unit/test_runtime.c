/* SPDX-License-Identifier: Apache-2.0 */
/* The argv of each container engine, word by word, and what the end of a container means. Scripts among the words are left out here:
   tests/integration/test_runtime.sh runs them. */
#include "unit.h"

#include "fleet/runtime.h"

#define ID "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define LINE_ALL                                                                                   \
    "nvidia-docker run --net=host --ipc=host --pid=host --shm-size=1g --ulimit memlock=-1 "        \
    "--ulimit stack=67108864 --ulimit nofile=1024 --ulimit nproc=77 --device=/dev/infiniband "     \
    "--cap-add IPC_LOCK -e A=1 -e B=2 "

static const char *const ARGV[] = {"python", "a b", "-x", NULL};
static const char *const ENV[] = {"B=3", "API_TOKEN=hush", "C=d e", NULL};
static const struct container_mount MOUNTS[] = {{{"/h/data", 7}, {"/data", 5}}};
static const struct runtime_image IMAGE = {
    .name = {"reperf/cpu", 10}, .digest = {"sha256:22", 9}, .id = {ID, sizeof(ID) - 1}};

static struct container_flags flags_of(struct arena *arena, const char *line)
{
    struct container_flags flags = {0};
    PASSES(container_flags_of_command(arena, str_of(line), &flags, ERR));
    assert_int_equal(flags.n_not_understood, 0);
    return flags;
}

static struct runtime_job job_of(const struct container_flags *flags)
{
    return (struct runtime_job){.name = "run-1.case_2.n3",
                                .image = &IMAGE,
                                .flags = flags,
                                .mounts = MOUNTS,
                                .n_mounts = ARRAY_LEN(MOUNTS),
                                .keeps_cache = true,
                                .argv = ARGV,
                                .env = ENV,
                                .run_id = "run-1"};
}

/* Words joined by |; a script is shown as SCRIPT. */
static const char *joined(struct arena *arena, const char *const *argv)
{
    char *text = arena_printf(arena, "%s", "");
    for (size_t idx = 0; argv[idx]; idx++) {
        text = arena_printf(arena, "%s%s%s", text, idx ? "|" : "",
                            strchr(argv[idx], '\n') ? "SCRIPT" : argv[idx]);
    }
    return text;
}

static void is_argv(enum runtime_kind kind, const char *line, bool keeps_entrypoint,
                    const char *wanted, const char *wanted_env)
{
    struct container_flags flags = flags_of(ARENA, line);
    struct runtime_job job = job_of(&flags);
    struct runtime_commands commands = {0};
    struct err err = {0};
    job.keeps_entrypoint = keeps_entrypoint;
    if (runtime_commands(ARENA, kind, &job, &commands, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(joined(ARENA, commands.argv), wanted);
    assert_string_equal(joined(ARENA, commands.env), wanted_env);
    assert_string_equal(joined(ARENA, commands.cleanup),
                        arena_printf(ARENA, "/bin/sh|-c|SCRIPT|reperf-cleanup|%s|%s",
                                     RUNTIME_KIND_NAMES[kind], job.name));
}

#define OCI_HEAD                                                                                   \
    "--name=run-1.case_2.n3|--label=reperf.run=run-1|--label=reperf.job=run-1.case_2.n3|"          \
    "--pull=never|--log-driver=none|"
#define OCI_MOUNTS                                                                                 \
    "--mount|type=bind,source=/h/data,target=/"                                                    \
    "data,readonly|--mount|type=volume,source=reperf-cache,target=/reperf/cache|"
#define OCI_LIMITS                                                                                 \
    "--ulimit|memlock=-1:-1|--ulimit|stack=67108864:67108864|--ulimit|nofile=1024:1024|--ulimit|"  \
    "nproc=77:77|"

TEST(docker_and_podman)
{
    is_argv(
        RUNTIME_DOCKER,
        LINE_ALL "--security-opt seccomp=unconfined -m 1g --cpuset-cpus=0-1 -w /w i", false,
        "/bin/sh|-c|SCRIPT|reperf-run|docker|" OCI_HEAD
        "--network=host|--ipc=host|--pid=host|--gpus=all|" OCI_LIMITS
        "--memory=1073741824|--memory-swap=1073741824|--cpuset-cpus=0-1|--device|/dev/infiniband|"
        "--cap-add|IPC_LOCK|--security-opt|seccomp=unconfined|--workdir=/w|" OCI_MOUNTS
        "--env|REPERF_HOST_NETNS|--env|A=1|--env|B=3|--env|API_TOKEN|--env|C=d e|"
        "--entrypoint=python|" ID "|a b|-x",
        "API_TOKEN=hush");
    is_argv(RUNTIME_PODMAN, "docker run --gpus all --privileged --shm-size=64g i", true,
            "/bin/sh|-c|SCRIPT|reperf-run|podman|" OCI_HEAD "--privileged|"
            "--device|nvidia.com/gpu=all|--shm-size=68719476736|" OCI_MOUNTS
            "--env|REPERF_HOST_NETNS|--env|B=3|--env|API_TOKEN|--env|C=d e|" ID "|python|a b|-x",
            "API_TOKEN=hush");
}

TEST(no_container)
{
    struct container_flags flags = flags_of(ARENA, "docker run -e A=1 -w /w --shm-size=1g i");
    static const struct container_mount SAME = {{"/d", 2}, {"/d", 2}};
    struct runtime_job job = {
        .flags = &flags, .argv = ARGV, .env = ENV, .mounts = &SAME, .n_mounts = 1};
    struct runtime_commands commands = {0};
    PASSES(runtime_commands(ARENA, RUNTIME_NONE, &job, &commands, ERR));
    assert_string_equal(joined(ARENA, commands.argv),
                        "/bin/sh|-c|cd \"$1\" && shift && exec \"$@\"|reperf-run|/w|python|a b|-x");
    assert_string_equal(joined(ARENA, commands.env), "A=1|B=3|API_TOKEN=hush|C=d e");
    assert_null(commands.cleanup);
    job.flags = NULL;
    PASSES(runtime_commands(ARENA, RUNTIME_NONE, &job, &commands, ERR));
    assert_string_equal(joined(ARENA, commands.argv), "python|a b|-x");
    job.mounts = MOUNTS;
    FAILS(runtime_commands(ARENA, RUNTIME_NONE, &job, &commands, ERR), ERR_CONTAINER);
}

static void is_refused(enum runtime_kind kind, const struct runtime_job *job)
{
    struct runtime_commands commands = {0};
    FAILS(runtime_commands(ARENA, kind, job, &commands, ERR), ERR_CONTAINER);
}

TEST(what_cannot_be_given_is_refused)
{
    static const char *const OPTIONS[] = {"-m 1g", "--cpuset-cpus=0", "--privileged", "--cap-add A",
                                          "--security-opt seccomp=/x.json"};
    struct runtime_job job = job_of(NULL);
    is_refused(RUNTIME_APPTAINER, &job);
    is_refused(RUNTIME_ENROOT, &job);
    for (EACH(row, OPTIONS)) {
        struct container_flags flags =
            flags_of(ARENA, arena_printf(ARENA, "docker run %s i", *row));
        job = job_of(&flags);
        job.n_mounts = 0;
        is_refused(RUNTIME_NONE, &job);
    }
}

TEST(bad_jobs_are_refused)
{
    static const struct container_mount COMMA = {{"/a,b", 4}, {"/x", 2}};
    static const struct container_mount RELATIVE = {{"a", 1}, {"/x", 2}};
    struct runtime_image none = IMAGE;
    struct runtime_job job = job_of(NULL);
    job.n_mounts = 1;
    job.mounts = &COMMA;
    is_refused(RUNTIME_DOCKER, &job);
    job.mounts = &RELATIVE;
    is_refused(RUNTIME_PODMAN, &job);
    job.n_mounts = 0;
    job.name = "a b";
    is_refused(RUNTIME_DOCKER, &job);
    job.name = "-a";
    is_refused(RUNTIME_DOCKER, &job);
    job.name = "";
    is_refused(RUNTIME_DOCKER, &job);
    job.name = "a";
    none.id = STR_EMPTY;
    job.image = &none;
    is_refused(RUNTIME_DOCKER, &job);
}

#define END(status, oom_killed, started)                                                           \
    "{\"event\":\"container_end\",\"status\":" #status ",\"oom_killed\":" #oom_killed              \
    ",\"started\":" #started "}\n"

TEST(ends_have_causes)
{
    static const struct {
        int status;
        const char *tail;
        enum err_code code;
        const char *told; /* of the log */
    } CASES[] = {
        {0, "", ERR_NONE, ""},
        {3, "a\nlast words\n", ERR_WORKLOAD, "last words"},
        {3, "", ERR_WORKLOAD, ""},
        {143, "x\n\n" END(143, false, true), ERR_WORKLOAD, "15: x"},
        {125, "docker: Error: no such image.\nSee 'docker run --help'.\n\n" END(125, false, false),
         ERR_CONTAINER, "docker: Error: no such image."},
        {125,
         "docker: exec: \"/nope\": no such file.\ntime=\"2026-11-22T02:43:47Z\" level=error "
         "msg=\"error waiting for container: context canceled\"\n" END(125, false, false),
         ERR_CONTAINER, "docker: exec: \"/nope\""},
        {125,
         "time=\"2026-11-22T02:43:47Z\" level=error msg=\"no daemon\"\n" END(125, false, false),
         ERR_CONTAINER, "time="},
        {125,
         "{\"event\":\"container\",\"holds\":false,\"wrong\":[\"no GPU\"]}\n\n" END(125, false,
                                                                                    true),
         ERR_CONTAINER, "no GPU"},
        {125, "mine\n" END(125, false, true), ERR_WORKLOAD, "mine"},
        {1, "error during connect\n" END(1, null, null), ERR_CONTAINER, "error during connect"},
        {127, "sh: nope: not found\n" END(127, false, true), ERR_CONTAINER, ""},
        {126, "sh: permission denied\n", ERR_CONTAINER, ""},
        {137, "x\n" END(137, true, true), ERR_CONTAINER, ""},
        {137, "x\n" END(137, false, true), ERR_WORKLOAD, ""},
        {137,
         "{\"event\":\"container_oom\",\"oom_kills\":1,\"memory_bytes\":1048576,\"status\":0}\n",
         ERR_CONTAINER, ""},
        {1, "\x1b[31mred\n", ERR_WORKLOAD, "?[31mred"},
    };
    for (EACH(row, CASES)) {
        struct err err = {0};
        int result = runtime_exit_check(RUNTIME_DOCKER, row->status, str_of(row->tail), &err);
        assert_int_equal(result, row->code == ERR_NONE ? 0 : -1);
        assert_int_equal(err.code, row->code);
        assert_non_null(strstr(err.msg, row->told));
        if (row->status == 127 || row->status == 126) { /* of no container it is the workload's */
            struct err plain = {0};
            assert_int_equal(runtime_exit_check(RUNTIME_NONE, row->status, str_of(""), &plain), -1);
            assert_int_equal(plain.code, ERR_WORKLOAD);
        }
    }
}

TEST(an_engine_that_was_lost_is_no_end_of_the_workload)
{
    static const struct {
        int status;
        const char *tail;
        bool is_lost;
    } CASES[] = {
        {125, "x\n" END(125, null, null), true},
        {125, "error waiting for container: unexpected EOF\n" END(125, false, true), true},
        {125, "its own words\n" END(125, false, true), false},
        {137, "x\n" END(137, false, true), false},
        {3, "unexpected EOF\n", false},
    };
    for (EACH(row, CASES)) {
        assert_int_equal(runtime_is_lost(RUNTIME_DOCKER, row->status, str_of(row->tail)),
                         row->is_lost);
        assert_false(runtime_is_lost(RUNTIME_NONE, row->status, str_of(row->tail)));
    }
}
