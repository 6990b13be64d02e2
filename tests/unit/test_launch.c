/* SPDX-License-Identifier: Apache-2.0 */
/* run/launch: argv and environment of the jobs of one repeat, word for word. */
#include "unit.h"

#include "run/launch.h"

#define RUN      "20261121T000000.000Z-00000001"
#define RUN_NAME RUN "-resnet50-reperf-fp32-n2g2-bs96-repeat-1-attempt-2"
#define HEX64    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define JOB      RUN "/resnet50/reperf/fp32/n2g2/bs96/repeat-1/attempt-2"

static struct inventory_node nodes[] = {
    {.name = {"node1", 5}, .address = {"10.11.0.2", 9}, .fast_address = {"10.12.0.2", 9}},
    {.name = {"node2", 5}, .address = {"10.11.0.3", 9}, .fast_address = {"10.12.0.3", 9}},
    {.name = {"node3", 5}, .address = {"10.11.0.4", 9}, .fast_address = {"10.12.0.4", 9}},
    {.name = {"node4", 5}, .address = {"10.11.0.5", 9}, .fast_address = {"10.12.0.5", 9}},
};
static const struct runtime_image IMAGE = {
    .name = {"reperf/cpu", 10}, .id = {"sha256:" HEX64, 71}, .digest = {"sha256:" HEX64, 71}};
static const size_t ALL_NODES[] = {0, 1, 2, 3};

#define ENV_RUN "REPERF_RUN_ID=" RUN
#define ENV_JOB "REPERF_JOB=" JOB

struct fixture {
    struct inventory inventory;
    struct condition env[16];
    struct str argv[16];
    struct plan_step step;
    struct launch launch;
    struct launch_job *jobs;
    size_t n_jobs;
};

static void init(struct fixture *f, size_t n_nodes, int64_t ranks_per_node)
{
    *f = (struct fixture){.inventory = {.id = STR_LIT("test"), .nodes = nodes, .n_nodes = 4}};
    f->argv[0] = STR_LIT("reperf-train");
    f->argv[1] = STR_LIT("--model");
    f->argv[2] = STR_LIT("resnet50");
    f->step = (struct plan_step){.case_id = STR_LIT("resnet50/reperf/fp32/n2g2/bs96"),
                                 .argv = f->argv,
                                 .n_argv = 3,
                                 .env = f->env,
                                 .n_ranks = (int64_t)n_nodes * ranks_per_node};
    f->launch = (struct launch){.arena = ARENA,
                                .step = &f->step,
                                .inventory = &f->inventory,
                                .nodes = ALL_NODES,
                                .n_nodes = n_nodes,
                                .ranks_per_node = ranks_per_node,
                                .port = 29501,
                                .run_id = RUN,
                                .job_id = JOB,
                                .program = "/home/a b/bin/reperf-train"};
}

/* A line that starts the ranks of its node itself. */
static void set_shell(struct fixture *f, const char *line)
{
    f->step.is_per_node = true;
    f->argv[0] = STR_LIT("/bin/sh");
    f->argv[1] = STR_LIT("-c");
    f->argv[2] = str_of(line);
}

static void add_env(struct fixture *f, const char *name, const char *value)
{
    f->env[f->step.n_env++] = (struct condition){str_of(name), str_of(value)};
}

static int make(struct fixture *f, struct err *err)
{
    return launch_make(&f->launch, &f->jobs, &f->n_jobs, err);
}

/* The words, each followed by a bar. */
static const char *joined(const char *const *words)
{
    const char *text = "";
    for (size_t idx = 0; words[idx]; idx++) {
        text = arena_printf(ARENA, "%s%s|", text, words[idx]);
    }
    return text;
}
#define assert_words(got, wanted) assert_string_equal(joined(got), wanted)

static const char *value_of(const char *const *env, const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (size_t idx = 0; env[idx]; idx++) {
        if (strncmp(env[idx], name, len) == 0 && env[idx][len] == '=') {
            assert_null(found); /* never twice */
            found = env[idx] + len + 1;
        }
    }
    return found;
}

#define TRAIN  "/home/a b/bin/reperf-train|--model|resnet50|"
#define SHARED ENV_RUN "|" ENV_JOB "|MASTER_ADDR=10.12.0.2|MASTER_PORT=29501|"
#define FOUR   "WORLD_SIZE=4|LOCAL_WORLD_SIZE=2|OMP_WAIT_POLICY=passive|"

TEST(jobs_have_these_words)
{
    static const struct {
        size_t n_nodes;
        int64_t ranks_per_node;
        bool is_shell;
        enum launcher_kind launcher;
        size_t n_jobs, at; /* one of them */
        const char *argv, *env;
    } ROWS[] = {
        {1, 1, false, LAUNCHER_SSH, 1, 0, TRAIN,
         SHARED "WORLD_SIZE=1|LOCAL_WORLD_SIZE=1|RANK=0|LOCAL_RANK=0|"},
        {2, 1, false, LAUNCHER_SSH, 2, 1, TRAIN,
         SHARED "WORLD_SIZE=2|LOCAL_WORLD_SIZE=1|OMP_WAIT_POLICY=passive|RANK=1|LOCAL_RANK=0|"},
        {2, 2, false, LAUNCHER_SSH, 2, 0, NODE_SELF "|ranks|0|2|5|" TRAIN, SHARED FOUR},
        {2, 2, false, LAUNCHER_SSH, 2, 1, NODE_SELF "|ranks|2|2|5|" TRAIN, SHARED FOUR},
        {2, 8, true, LAUNCHER_SSH, 2, 1, "/bin/sh|-c|launch --node_rank=$NODE_RANK 'a b'|",
         SHARED "NNODES=2|NPROC_PER_NODE=8|NODE_IPS=10.12.0.2,10.12.0.3|NODE_RANK=1|"},
        {2, 2, false, LAUNCHER_SLURM, 1, 0,
         NODE_SELF
         "|srun|2|node1|10.12.0.2|node2|10.12.0.3|--nodes=2|--ntasks=4|--ntasks-per-node=2"
         "|--nodelist=node[1-2]|--gpus-per-node=2|--distribution=block|--cpu-bind=none|"
         "--mpi=none|--export=ALL|--kill-on-bad-exit=1|" NODE_SELF "|task|2|" TRAIN,
         SHARED FOUR},
    };
    for (EACH(row, ROWS)) {
        struct fixture f;
        init(&f, row->n_nodes, row->ranks_per_node);
        f.inventory.launcher = row->launcher;
        f.launch.limit_s = 600;
        f.step.gpus_per_node = 2;
        if (row->is_shell) {
            set_shell(&f, "launch --node_rank=$NODE_RANK 'a b'");
        }
        PASSES(make(&f, ERR));
        assert_int_equal(f.n_jobs, row->n_jobs);
        const struct launch_job *job = &f.jobs[row->at];
        assert_int_equal(job->place_idx, row->at);
        assert_int_equal(job->has_metric, row->at == 0);
        assert_string_equal(job->job.id, JOB);
        assert_words(job->job.argv, row->argv);
        assert_words(job->job.env, row->env);
        assert_null(job->job.cleanup);
        if (row->launcher == LAUNCHER_SLURM) {
            const struct remote_batch *batch = job->job.batch;
            assert_int_equal(batch->n_nodes, 2);
            assert_int_equal(batch->tasks_per_node, 2);
            assert_int_equal(batch->gpus_per_node, 2);
            assert_int_equal(batch->limit_s, 600);
            assert_string_equal(batch->nodelist, "node[1-2]");
        }
    }
}

TEST(the_steps_environment_is_kept_but_for_ranks)
{
    static const char *const INHERITED[] = {"PATH=/usr/bin:/bin", "OMP_WAIT_POLICY=active",
                                            "NCCL_DEBUG=INFO", "RANK=9", NULL};
    static const struct {
        const char *name, *of_step, *wanted;
    } ROWS[] = {{"RANK", "7", "1"},
                {"WORLD_SIZE", "1", "2"},
                {"MASTER_ADDR", "127.0.0.1", "10.12.0.2"},
                {"NCCL_DEBUG", "WARN", "WARN"},
                {"OMP_WAIT_POLICY", NULL, "active"},
                {"PATH", NULL, "/usr/bin:/bin"},
                {"ODD", " 'quoted' \"twice\" $HOME `id`\nnext line; \\",
                 " 'quoted' \"twice\" $HOME `id`\nnext line; \\"},
                {"EMPTY", "", ""}};
    struct fixture f;
    init(&f, 2, 1);
    f.launch.env = INHERITED;
    for (EACH(row, ROWS)) {
        if (row->of_step) {
            add_env(&f, row->name, row->of_step);
        }
    }
    PASSES(make(&f, ERR));
    for (EACH(row, ROWS)) {
        assert_string_equal(value_of(f.jobs[1].job.env, row->name), row->wanted);
    }
}

TEST(a_container_is_around_the_ranks)
{
    struct fixture f;
    const char *const *argv;
    size_t n = 0;
    init(&f, 2, 2);
    f.launch.runtime = RUNTIME_DOCKER;
    FAILS(make(&f, ERR), ERR_ANY); /* without an image */
    f.launch.image = &IMAGE;
    f.launch.keeps_cache = true;
    add_env(&f, "ODD", "a 'b'\nc");
    add_env(&f, "CUDA_CACHE_PATH", "/own");
    PASSES(make(&f, ERR));
    assert_int_equal(f.n_jobs, 2);
    argv = f.jobs[1].job.argv;
    while (argv[n]) {
        n++;
    }
    /* Inside it is the image's program; the rest is tested with the runtime (test_runtime). */
    assert_string_equal(argv[n - 3], "reperf-train");
    assert_string_equal(argv[n - 6], "2");
    assert_string_equal(argv[n - 7], "ranks");
    bool has_mount = false; /* of the node's own program, which starts them */
    for (size_t idx = 0; idx < n; idx++) {
        has_mount = has_mount || strcmp(argv[idx], "type=bind,source=" NODE_SELF
                                                   ",target=/reperf-node,readonly") == 0;
    }
    assert_true(has_mount);
    assert_non_null(f.jobs[1].job.cleanup);
    assert_string_not_equal(f.jobs[0].job.cleanup[0], "");
    bool has_odd = false;
    bool has_name = false;
    const char *cache = ""; /* where it is, but where the step says so itself */
    for (size_t idx = 0; idx < n; idx++) {
        has_odd = has_odd || strstr(argv[idx], "ODD=a 'b'\nc");
        has_name = has_name || strstr(argv[idx], "reperf-" RUN_NAME);
        if (strstr(argv[idx], "CACHE_") || strstr(argv[idx], "target=/reperf/cache")) {
            cache = arena_printf(ARENA, "%s%s|", cache, argv[idx]);
        }
    }
    assert_true(has_odd);
    assert_true(has_name);
    assert_string_equal(cache, "type=volume,source=reperf-cache,target=/reperf/cache|"
                               "CUDA_CACHE_PATH=/own|XDG_CACHE_HOME=/reperf/cache|");
}

TEST(mpirun_starts_all_from_the_first_node)
{
    struct fixture f;
    init(&f, 3, 2);
    f.inventory.launcher = LAUNCHER_MPIRUN;
    add_env(&f, "ODD", "a 'b'\nc; d");
    PASSES(make(&f, ERR));
    assert_int_equal(f.n_jobs, 1);
    assert_int_equal(f.jobs[0].place_idx, 0);
    assert_true(f.jobs[0].has_metric);
    const char *const *argv = f.jobs[0].job.argv;
    /* 10.12.0.2 to .4 lie in 10.12.0.0/29 */
    assert_words(
        argv, NODE_SELF
        "|mpirun|10.12.0.0/"
        "29|2|3|10.11.0.2|10.11.0.3|10.11.0.4|-x|ODD|-x|REPERF_RUN_ID|-x|REPERF_JOB|-x|MASTER_ADDR|"
        "-x|MASTER_PORT|-x|WORLD_SIZE|-x|LOCAL_WORLD_SIZE|-x|OMP_WAIT_POLICY|" NODE_SELF
        "|task|2|/home/a b/bin/reperf-train|--model|resnet50|");
    assert_string_equal(value_of(f.jobs[0].job.env, "ODD"), "a 'b'\nc; d");
    init(&f, 2, 8); /* a line that starts its own ranks: one process a node */
    f.inventory.launcher = LAUNCHER_MPIRUN;
    set_shell(&f, "echo $NODE_RANK");
    PASSES(make(&f, ERR));
    assert_true(str_starts(str_of(joined(f.jobs[0].job.argv + 2)),
                           STR_LIT("10.12.0.2/31|1|2|10.11.0.2|10.11.0.3|")));
}

TEST(networks_are_only_of_addresses)
{
    static const struct {
        const char *a, *b, *network;
    } CASES[] = {{"10.0.0.1", "10.0.0.1", "10.0.0.1/32"},
                 {"10.255.0.1", "10.0.0.1", "10.0.0.0/8"},
                 {"10.0.0.1", "192.168.0.1", ""},
                 {"gpu1", "10.0.0.1", ""},
                 {"fe80::1", "fe80::2", ""}};
    for (EACH(row, CASES)) {
        struct inventory_node own[2] = {{.name = STR_LIT("a")}, {.name = STR_LIT("b")}};
        struct fixture f;
        init(&f, 2, 1);
        own[0].address = own[0].fast_address = str_of(row->a);
        own[1].address = own[1].fast_address = str_of(row->b);
        f.inventory.nodes = own;
        f.inventory.launcher = LAUNCHER_MPIRUN;
        PASSES(make(&f, ERR));
        assert_string_equal(f.jobs[0].job.argv[2], row->network);
    }
}

/* mpirun and srun start one container a node, which learns its number there. */
TEST(containers_of_other_launchers_have_a_hole)
{
    for (int launcher = LAUNCHER_MPIRUN; launcher <= LAUNCHER_SLURM; launcher++) {
        struct fixture f;
        size_t n_holes = 0;
        init(&f, 2, 2);
        f.inventory.launcher = (enum launcher_kind)launcher;
        f.launch.runtime = RUNTIME_DOCKER;
        f.launch.image = &IMAGE;
        PASSES(make(&f, ERR));
        for (size_t idx = 0; f.jobs[0].job.argv[idx]; idx++) {
            struct str word = str_of(f.jobs[0].job.argv[idx]);
            n_holes += str_ends(word, STR_LIT("REPERF_NODE_RANK=@"));
        }
        assert_int_equal(n_holes, 1);
    }
}

TEST(what_cannot_be_launched_is_refused)
{
    static const struct {
        const char *name;
        struct str value;
    } BAD[] = {
        {"A-B", {"1", 1}}, {"", {"1", 1}}, {"9A", {"1", 1}}, {"A=B", {"1", 1}}, {"A", {"x\0y", 3}}};
    struct fixture f;
    for (EACH(row, BAD)) {
        init(&f, 1, 1);
        f.env[0] = (struct condition){str_of(row->name), row->value};
        f.step.n_env = 1;
        FAILS(make(&f, ERR), ERR_MANIFEST);
    }
    init(&f, 1, 1);
    f.argv[1] = (struct str){"a\0b", 3};
    FAILS(make(&f, ERR), ERR_MANIFEST);
    init(&f, 2, 2);
    f.step.n_ranks = 3;
    FAILS_WITH(make(&f, ERR), ERR_INTERNAL, "planned for 3 ranks");
}
