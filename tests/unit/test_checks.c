/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts about nodes: what a launch needs, what differs. */
#include "unit.h"

#include "base/clock.h"
#include "fleet/checks.h"
#include "report/container.h"

static struct node_facts facts_of(struct arena *arena, const char *lines)
{
    struct node_facts facts;
    PASSES(facts_parse(arena, str_of(lines), &facts, ERR));
    PASSES(facts_expand_gpus(arena, &facts, ERR));
    return facts;
}

TEST(versions)
{
    static const struct {
        const char *a, *b;
        int order;
    } ROWS[] = {{"450.80.02", "450.80.2", 0}, {"450.80.02", "450.36.06", 1}, {"450", "450.1", -1},
                {"9.2", "10.0", -1},          {"525.60.13", "525.60.13", 0}, {"11", "11.0", 0}};
    for (EACH(row, ROWS)) {
        assert_int_equal(version_cmp(str_of(row->a), str_of(row->b)), row->order);
        assert_int_equal(version_cmp(str_of(row->b), str_of(row->a)), -row->order);
    }
    assert_string_equal(cuda_needs_driver(STR_LIT("10.1")), "418.39");
    assert_string_equal(cuda_needs_driver(STR_LIT("11")), "450.36.06");
    assert_string_equal(cuda_needs_driver(STR_LIT("11.2")), "450.80.02");
    assert_string_equal(cuda_needs_driver(STR_LIT("12.9")), "525.60.13");
    assert_null(cuda_needs_driver(STR_LIT("7.5")));
    assert_null(cuda_needs_driver(STR_LIT("14.0")));
    assert_string_equal(capability_needs_cuda(STR_LIT("9.0")), "11.8");
    assert_null(capability_needs_cuda(STR_LIT("13.7")));
}

TEST(wants_are_joined)
{
    static struct wants wants;
    static const struct {
        struct want want;
        size_t n;
        int64_t number;
    } ROWS[] = {
        {{.kind = WANT_GPUS, .number = 1}, 1, 1},
        {{.kind = WANT_GPUS, .number = 8}, 1, 8},
        {{.kind = WANT_GPUS, .number = 4}, 1, 8},
        {{.kind = WANT_MEMLOCK, .number = 1024}, 2, 8},
        {{.kind = WANT_MEMLOCK, .number = LIMIT_UNLIMITED}, 2, 8},
        {{.kind = WANT_MEMLOCK, .number = 4096}, 2, 8},
    };
    for (EACH(row, ROWS)) {
        PASSES(wants_add(&wants, row->want, ERR));
        assert_int_equal(wants.n, row->n);
        assert_int_equal(wants.items[0].number, row->number);
    }
    assert_int_equal(wants.items[0].n_cases, 3);
    assert_int_equal(wants.items[1].number, LIMIT_UNLIMITED);
    struct want model = {.kind = WANT_GPU_MODEL, .text = STR_LIT("Tesla V100-SXM2-16GB")};
    PASSES(wants_add(&wants, model, ERR));
    PASSES(wants_add(&wants, model, ERR));
    model.text = STR_LIT("Tesla V100-SXM2-32GB");
    PASSES(wants_add(&wants, model, ERR));
    assert_int_equal(wants.n, 4);
}

/* ---- one want, one node ---- */

static struct check check_of(struct arena *arena, const char *lines, enum runtime_kind runtime,
                             struct want want)
{
    struct inventory_node spec = {.name = STR_LIT("n1")};
    struct inventory inventory = {.runtime = runtime, .nodes = &spec, .n_nodes = 1};
    struct node_probe probe = {.spec = &spec, .is_reached = true, .facts = facts_of(arena, lines)};
    struct checks checks = {.arena = arena};
    struct wants *wants = arena_new(arena, struct wants);
    wants->items[wants->n++] = want;
    checks_of_wants(&checks, &inventory, &probe, wants);
    assert_true(checks.n >= 1);
    return checks.items[0];
}

#define GPU(name, mib)                                                                             \
    "= smi.all.0 index, name, memory.total [MiB]\n= smi.all.1 0, " name ", " mib " MiB\n"

TEST(limits_and_sizes)
{
    static const struct {
        const char *lines;
        enum runtime_kind runtime;
        enum want_kind kind;
        int64_t number;
        enum check_verdict verdict;
    } ROWS[] = {
        /* no container: the node's own limits and /dev/shm */
        {"= limit.memlock.hard unlimited\n", RUNTIME_NONE, WANT_MEMLOCK, -1, CHECK_HOLDS},
        {"= limit.memlock.hard 8388608\n= limit.caps 0000000000000000\n", RUNTIME_NONE,
         WANT_MEMLOCK, -1, CHECK_FAILS},
        {"= limit.memlock.hard 8388608\n= limit.caps 000001ffffffffff\n", RUNTIME_NONE,
         WANT_MEMLOCK, -1, CHECK_HOLDS},
        {"= limit.memlock.hard 8388608\n= limit.caps 000001fffeffffff\n", RUNTIME_PODMAN,
         WANT_MEMLOCK, -1, CHECK_FAILS},
        {"= limit.memlock.hard 8388608\n", RUNTIME_NONE, WANT_MEMLOCK, 65536, CHECK_HOLDS},
        {"= limit.memlock.hard 8\n= limit.caps ?\n", RUNTIME_NONE, WANT_MEMLOCK, -1, CHECK_FAILS},
        {"= limit.stack.hard 8388608\n", RUNTIME_NONE, WANT_STACK, 67108864, CHECK_FAILS},
        {"= limit.stack.hard unlimited\n", RUNTIME_NONE, WANT_STACK, 67108864, CHECK_HOLDS},
        {"= limit.nofile.hard 1048576\n", RUNTIME_NONE, WANT_NOFILE, 65536, CHECK_HOLDS},
        {"= limit.nofile.hard 1024\n", RUNTIME_NONE, WANT_NOFILE, 65536, CHECK_FAILS},
        {"? disk.work.free_kb df ended with 1\n", RUNTIME_NONE, WANT_DISK, 1, CHECK_UNKNOWN},
        {"? nvidia.smi status 9\n", RUNTIME_NONE, WANT_GPU_MEMORY, 16, CHECK_UNKNOWN},
        {"? memory.total_kb no /proc\n", RUNTIME_NONE, WANT_MEMORY, 16, CHECK_UNKNOWN},
        {"= memory.total_kb 16252928\n", RUNTIME_NONE, WANT_MEMORY, 16, CHECK_HOLDS},
        {"? limit.memlock.hard no /proc\n", RUNTIME_NONE, WANT_MEMLOCK, -1, CHECK_UNKNOWN},
        /* docker: its daemon's, whatever the login has */
        {"= limit.memlock.hard unlimited\n", RUNTIME_DOCKER, WANT_MEMLOCK, -1, CHECK_UNKNOWN},
        {"= limit.memlock.hard 1\n= engine.docker.memlock.hard unlimited\n", RUNTIME_DOCKER,
         WANT_MEMLOCK, -1, CHECK_HOLDS},
        {"= shm.size_kb 1048576\n", RUNTIME_NONE, WANT_SHM, 1LL << 30, CHECK_HOLDS},
        {"= shm.size_kb 1048575\n", RUNTIME_NONE, WANT_SHM, 1LL << 30, CHECK_FAILS},
        {"= shm.size_kb 64\n= memory.total_kb 9048576\n", RUNTIME_DOCKER, WANT_SHM, 1LL << 30,
         CHECK_HOLDS},
        {"? shm.size_kb no /dev/shm\n", RUNTIME_NONE, WANT_SHM, 1LL << 30, CHECK_UNKNOWN},
        {"= disk.work.free_kb 1000\n", RUNTIME_NONE, WANT_DISK, 1024001, CHECK_HOLDS},
        {"= disk.work.free_kb 1000\n", RUNTIME_NONE, WANT_DISK, 1026000, CHECK_FAILS},
        {GPU("Tesla V100-SXM2-16GB", "16160"), RUNTIME_NONE, WANT_GPU_MEMORY, 16, CHECK_HOLDS},
        {GPU("Tesla V100-SXM2-16GB", "16160"), RUNTIME_NONE, WANT_GPU_MEMORY, 32, CHECK_FAILS},
        {GPU("NVIDIA A100-SXM4-40GB", "39538"), RUNTIME_NONE, WANT_GPU_MEMORY, 40, CHECK_HOLDS},
        {GPU("A", "1"), RUNTIME_NONE, WANT_GPUS, 1, CHECK_HOLDS},
        {GPU("A", "1"), RUNTIME_NONE, WANT_GPUS, 2, CHECK_FAILS},
        {"? nvidia.smi status 9\n", RUNTIME_NONE, WANT_GPUS, 1, CHECK_UNKNOWN},
        {"= ib.ports 1\n= ib.mlx5_0.1.state 4: ACTIVE\n= ib.mlx5_0.1.link_layer InfiniBand\n"
         "= ib.mlx5_0.1.rate 100 Gb/sec (4X EDR)\n",
         RUNTIME_NONE, WANT_INFINIBAND, 100, CHECK_HOLDS},
        {"= ib.ports 1\n= ib.mlx5_0.1.state 4: ACTIVE\n= ib.mlx5_0.1.link_layer InfiniBand\n"
         "= ib.mlx5_0.1.rate 56 Gb/sec (4X FDR)\n",
         RUNTIME_NONE, WANT_INFINIBAND, 100, CHECK_FAILS},
        {"= ib.ports 1\n= ib.mlx5_0.1.state 1: DOWN\n= ib.mlx5_0.1.link_layer InfiniBand\n"
         "= ib.mlx5_0.1.rate 100 Gb/sec (4X EDR)\n",
         RUNTIME_NONE, WANT_INFINIBAND, 100, CHECK_FAILS},
        {"= ib.ports 1\n= ib.mlx5_0.1.state 4: ACTIVE\n= ib.mlx5_0.1.link_layer Ethernet\n"
         "= ib.mlx5_0.1.rate 100 Gb/sec\n",
         RUNTIME_NONE, WANT_INFINIBAND, 100, CHECK_FAILS},
        {"", RUNTIME_NONE, WANT_INFINIBAND, 100, CHECK_UNKNOWN},
    };
    for (EACH(row, ROWS)) {
        struct want want = {.kind = row->kind, .number = row->number};
        assert_int_equal(check_of(ARENA, row->lines, row->runtime, want).verdict, row->verdict);
    }
}

/* The advice names the limit that is too low, and where it is set. */
TEST(a_limit_that_is_too_low_says_what_to_do)
{
    static const struct {
        const char *lines, *found, *advice;
        enum runtime_kind runtime;
        enum want_kind kind;
    } ROWS[] = {
        {"= limit.memlock.hard 65536\n", "hard limit 65536",
         "/etc/security/limits.conf: hard memlock unlimited; log in again", RUNTIME_NONE,
         WANT_MEMLOCK},
        {"= limit.stack.hard 65536\n", "hard limit 65536",
         "/etc/security/limits.conf: hard stack unlimited; log in again", RUNTIME_NONE, WANT_STACK},
        {"= engine.docker.nofile.hard 1024\n", "hard limit 1024 of dockerd",
         "start dockerd with LimitNOFILE=infinity and CAP_SYS_RESOURCE", RUNTIME_DOCKER,
         WANT_NOFILE},
    };
    for (EACH(row, ROWS)) {
        struct want want = {.kind = row->kind, .number = 1 << 20};
        struct check check = check_of(ARENA, row->lines, row->runtime, want);
        assert_int_equal(check.verdict, CHECK_FAILS);
        assert_string_equal(check.found.ptr, row->found);
        assert_string_equal(check.advice.ptr, row->advice);
    }
}

TEST(models_and_drivers)
{
    static const struct {
        const char *lines;
        enum want_kind kind;
        const char *text;
        enum check_verdict verdict;
    } ROWS[] = {
        {GPU("Tesla V100-SXM2-16GB", "1"), WANT_GPU_MODEL, "Tesla V100-SXM2-16GB", CHECK_HOLDS},
        {GPU("Tesla V100-SXM2-16GB", "1"), WANT_GPU_MODEL, "Tesla V100", CHECK_HOLDS},
        {GPU("NVIDIA A100-SXM4-40GB", "1"), WANT_GPU_MODEL, "A100-SXM4-40GB", CHECK_HOLDS},
        {GPU("Tesla V100-SXM2-32GB", "1"), WANT_GPU_MODEL, "Tesla V100-SXM2-16GB", CHECK_FAILS},
        {GPU("Tesla V1000", "1"), WANT_GPU_MODEL, "Tesla V100", CHECK_FAILS},
        {"= nvidia.devices 0\n", WANT_GPU_MODEL, "Tesla V100", CHECK_FAILS},
        {"? nvidia.smi status 18\n", WANT_GPU_MODEL, "Tesla V100", CHECK_UNKNOWN},
        {"= nvidia.module 418.39\n", WANT_CUDA, "10.1", CHECK_HOLDS},
        {"= nvidia.module 410.48\n", WANT_CUDA, "10.1", CHECK_FAILS},
        {"= nvidia.module 450.80.02\n", WANT_CUDA, "11.2", CHECK_HOLDS},
        {"= nvidia.module 450.80.02\n", WANT_CUDA, "12.0", CHECK_FAILS},
        {"= nvidia.module 450.80.02\n", WANT_CUDA, "6.5", CHECK_UNKNOWN},
        {"= nvidia.devices 0\n", WANT_CUDA, "10.1", CHECK_FAILS},
        {"? nvidia.module not there\n", WANT_CUDA, "10.1", CHECK_UNKNOWN},
        {"= cpu.model Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\n", WANT_CPU,
         "Intel Xeon Gold 6148 2.40GHz", CHECK_HOLDS},
        {"= cpu.model Intel(R) Xeon(R) Gold 6248 CPU @ 2.40GHz\n", WANT_CPU,
         "Intel Xeon Gold 6148 2.40GHz", CHECK_FAILS},
        {"? system.os no /etc/os-release\n", WANT_OS, "Debian 12", CHECK_UNKNOWN},
        {"= ib.device 1\n", WANT_DEVICE, "/dev/infiniband", CHECK_HOLDS},
        {"= ib.device 0\n", WANT_DEVICE, "/dev/infiniband", CHECK_FAILS},
        {"= ib.device 1\n", WANT_DEVICE, "/dev/fuse", CHECK_UNKNOWN},
    };
    for (EACH(row, ROWS)) {
        struct want want = {.kind = row->kind, .text = str_of(row->text)};
        assert_int_equal(check_of(ARENA, row->lines, RUNTIME_NONE, want).verdict, row->verdict);
    }
}

/* ---- a node by itself ---- */

/* The only one of this id, of a node with a GPU that was reached. */
static struct check own_check(struct node_probe *probe, const char *id)
{
    struct inventory_node spec = {.name = STR_LIT("n1"), .gpus = 1};
    struct inventory inventory = {.nodes = &spec, .n_nodes = 1};
    struct checks checks = {.arena = ARENA};
    struct check found = {0};
    size_t n = 0;
    probe->spec = &spec;
    probe->is_reached = true;
    checks_of_probe(&checks, &inventory, probe);
    for (size_t at = 0; at < checks.n; at++) {
        if (strcmp(checks.items[at].id, id) == 0) {
            found = checks.items[at];
            n++;
        }
    }
    assert_int_equal(n, 1);
    return found;
}

#define GPU_OF(fields, values) "= smi.all.0 index, " fields "\n= smi.all.1 0, " values "\n"

TEST(a_node_by_itself)
{
    static const struct {
        const char *lines, *id;
        enum check_verdict verdict;
        const char *found; /* NULL: whatever */
    } ROWS[] = {
        {"", "clock", CHECK_UNKNOWN, "its date command prints no number"},
        {"= disk.work.path /w\n= disk.work.writable 1\n= disk.work.kind tmpfs\n", "work-on-disk",
         CHECK_FAILS, "tmpfs"},
        {"= disk.work.path /w\n= disk.work.writable 0\n", "work-folder", CHECK_FAILS,
         "it cannot, on an unknown file system"},
        {"? disk.work.path mkdir ended with 1\n", "work-folder", CHECK_UNKNOWN,
         "mkdir ended with 1"},
        {"= disk.work.inodes_free 0\n", "inodes", CHECK_HOLDS,
         "the file system does not count them"},
        {"= disk.work.inodes_free 99999\n", "inodes", CHECK_FAILS, "99999"},
        {"= cpu.governor powersave\n", "cpu-governor", CHECK_FAILS, "powersave"},
        {"= cpu.governor performance\n", "cpu-governor", CHECK_HOLDS, NULL},
        {"? cpu.governor no cpufreq here\n", "cpu-governor", CHECK_UNKNOWN, "no cpufreq here"},
        {"? nvidia.smi status 9\n", "inventory-gpus", CHECK_UNKNOWN, NULL},
        {GPU_OF("persistence_mode", "Enabled"), "gpu-persistence", CHECK_HOLDS, "Enabled"},
        {GPU_OF("persistence_mode", "Disabled"), "gpu-persistence", CHECK_FAILS, "GPU 0: Disabled"},
        {GPU_OF("persistence_mode", "[N/A]"), "gpu-persistence", CHECK_UNKNOWN, "[N/A]"},
        {GPU_OF("name", "A"), "gpu-persistence", CHECK_UNKNOWN, "the node did not say"},
        {GPU_OF("persistence_mode", "Enabled") "= smi.all.2 1, [N/A]\n", "gpu-persistence",
         CHECK_UNKNOWN, "not known for every GPU"},
        {GPU_OF("clocks.applications.graphics [MHz], clocks.max.sm [MHz]", "1290 MHz, 1530 MHz"),
         "gpu-clocks", CHECK_FAILS, "GPU 0: 1290 of 1530 MHz"},
        {GPU_OF("clocks.applications.graphics [MHz], clocks.max.sm [MHz]", "1530 MHz, 1530 MHz"),
         "gpu-clocks", CHECK_HOLDS, "they are"},
        {GPU_OF("clocks.applications.graphics [MHz]", "[N/A]"), "gpu-clocks", CHECK_UNKNOWN,
         "[N/A]"},
        {GPU_OF("clocks.applications.graphics [MHz]", "1290 MHz"), "gpu-clocks", CHECK_UNKNOWN,
         "not known for every GPU"},
    };
    for (EACH(row, ROWS)) {
        struct node_probe probe = {.facts = facts_of(ARENA, row->lines)};
        struct check check = own_check(&probe, row->id);
        assert_int_equal(check.verdict, row->verdict);
        if (row->found) {
            assert_string_equal(str_z(ARENA, check.found), row->found);
        }
    }
}

/* ---- between nodes ---- */

TEST(what_differs)
{
    struct inventory_node specs[3] = {
        {.name = STR_LIT("n1")}, {.name = STR_LIT("n2")}, {.name = STR_LIT("n3")}};
    struct inventory inventory = {.nodes = specs, .n_nodes = 3};
    struct node_probe items[3] = {
        {.spec = &specs[0],
         .is_reached = true,
         .facts = facts_of(ARENA, "= system.kernel 6.1\n= nvidia.module 450.1\n")},
        {.spec = &specs[1],
         .is_reached = true,
         .facts = facts_of(ARENA, "= system.kernel 6.1\n? nvidia.module none\n")},
        {.spec = &specs[2],
         .is_reached = true,
         .facts = facts_of(ARENA, "= system.kernel 6.1\n= nvidia.module 450.1\n")}};
    struct node_probes probes = {&inventory, items, 3};
    struct checks checks = {.arena = ARENA};
    struct differences differences;
    checks_of_differences(&checks, &probes, &differences);
    assert_int_equal(differences.n, 1);
    assert_string_equal(differences.items[0].what, "driver");
    assert_int_equal(differences.items[0].n_values, 2);
    assert_int_equal(differences.items[0].values[0].n_nodes, 2);
    assert_null(differences.items[0].values[1].value.ptr);
    assert_int_equal(checks.n,
                     2); /* kernel agrees, driver does not; what is unknown is not compared */
    assert_int_equal(checks.items[0].verdict, CHECK_HOLDS);
    assert_int_equal(checks.items[1].verdict, CHECK_FAILS);
    assert_true(str_eq_z(checks.items[1].found, "450.1 on n[1,3]; not known on n2"));
    /* A node that was not reached is no difference. */
    items[1].is_reached = false;
    checks.n = 0;
    checks_of_differences(&checks, &probes, &differences);
    assert_int_equal(differences.n, 0);
}

TEST(ports_of_many)
{
    enum { N = 1000 };
    struct inventory_node *specs = arena_array(ARENA, struct inventory_node, N);
    struct node_probe *items = arena_array(ARENA, struct node_probe, N);
    struct inventory inventory = {.nodes = specs, .n_nodes = N};
    struct node_probes probes = {&inventory, items, N};
    struct checks checks = {.arena = ARENA};
    size_t n_ports = 0;
    for (size_t idx = 0; idx < N; idx++) {
        specs[idx].name = str_printf(ARENA, "n%zu", idx);
        specs[idx].address = specs[idx].name;
        items[idx] = (struct node_probe){.spec = &specs[idx], .is_reached = true};
    }
    checks_of_network(&checks, &probes);
    for (size_t idx = 0; idx < checks.n; idx++) {
        n_ports += strcmp(checks.items[idx].id, "port") == 0;
        assert_int_not_equal(checks.items[idx].verdict, CHECK_HOLDS);
    }
    /* Each to the next and to the first (the last's next is the first), and one line that says so. */
    assert_int_equal(n_ports, (N - 1) + (N - 1) + 1);
    assert_null(checks.items[0].node.ptr);
    probes.n = 3;
    checks.n = 0;
    checks_of_network(&checks, &probes);
    assert_int_equal(checks.n, 3 * 2);
}

TEST(clocks)
{
    static const struct {
        int64_t low_ms, high_ms;
        enum check_verdict verdict;
    } ROWS[] = {{-5, 20, CHECK_HOLDS},
                {2500, 2600, CHECK_FAILS},
                {-3600000, -3599000, CHECK_FAILS},
                {1500, 2500, CHECK_UNKNOWN}, /* too coarse to judge */
                {-2500, 2500, CHECK_UNKNOWN}};
    for (EACH(row, ROWS)) {
        struct node_probe probe = {.has_clock = true,
                                   .clock_low_ns = row->low_ms * NS_PER_MS,
                                   .clock_high_ns = row->high_ms * NS_PER_MS,
                                   .facts = facts_of(ARENA, "")};
        assert_int_equal(own_check(&probe, "clock").verdict, row->verdict);
    }
}
