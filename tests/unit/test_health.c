/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes compared with each other: a sick one is found and named, equal ones are not. Seeded noise. */
#include "unit.h"

#include <math.h>

#include "base/fs.h"
#include "base/rng.h"
#include "judge/health.h"

#define NODES   4
#define REPEATS 7

static const struct str NAMES[] = {
    {"node1", 5}, {"node2", 5}, {"node3", 5}, {"node4", 5}, {"node1", 5}};
/* A ring's last pair as the inventory orders it. */
static const struct str LAST[] = {{"node1", 5}, {"node4", 5}};
static const struct str ONE_KIND[] = {{"a", 1}, {"a", 1}};

struct group {
    struct health_figure figures[NODES];
    double *values[NODES];
    size_t n;
};

/* Each node's true rate differs by one noise, each repeat by another. Of a network the figures are the pairs of a ring. */
static struct group group_of(uint64_t seed, const char *measure, double value, double noise)
{
    bool is_pairs = strncmp(measure, "network", 7) == 0;
    struct group group = {.n = NODES};
    struct rng rng;
    rng_init(&rng, seed);
    for (size_t at = 0; at < NODES; at++) {
        double own = value * (1 + noise / 2 * rng_normal(&rng));
        double *values = arena_array(ARENA, double, REPEATS);
        for (size_t repeat = 0; repeat < REPEATS; repeat++) {
            values[repeat] = own * (1 + noise * rng_normal(&rng));
        }
        group.values[at] = values;
        group.figures[at] =
            (struct health_figure){.measure = str_of(measure),
                                   .on = is_pairs && at + 1 == NODES ? LAST : &NAMES[at],
                                   .n_on = is_pairs ? 2 : 1,
                                   .kinds = ONE_KIND,
                                   .unit = STR_LIT("MB/s"),
                                   .values = values,
                                   .n = REPEATS};
    }
    return group;
}

static void slow_down(struct group *group, size_t at, double share)
{
    for (size_t repeat = 0; repeat < REPEATS; repeat++) {
        group->values[at][repeat] *= share;
    }
}

static struct health judged(const struct group *group)
{
    struct health_limits limits;
    struct health health;
    struct str text;
    PASSES(fs_read(ARENA, "manifests/node-health.json", 1 << 20, &text, ERR));
    PASSES(health_limits_decode(ARENA, text, "node-health.json", &limits, ERR));
    health_judge(ARENA, &limits, group->figures, group->n, &health);
    return health;
}

/* It, and nothing else, is named. */
static void finds(const struct group *group, struct str who, const char *what)
{
    struct health health = judged(group);
    if (health.n_findings != 1 || !str_eq(health.findings[0].who, who)) {
        fail_msg("%s, %.*s: %zu findings", what, STR_ARG(who), health.n_findings);
    }
}

static const struct {
    const char *measure;
    double value, noise, sick; /* the planted node's share of its rate */
} PLANTED[] = {
    {"memory/likwid/fp64/n1g0/bs0", 200e3, 0.02, 0.5},
    {"disk-write/fio/unstated/n1g0/bs0", 2000, 0.05, 0.5},
    {"disk-read/fio/unstated/n1g0/bs0", 3000, 0.05, 0.4},
    {"disk-sync/fio/unstated/n1g0/bs0", 1200, 0.1, 0.25},
    {"resnet50/reperf/fp32/n1g0/bs4", 40, 0.01, 0.8},
    {"resnet50/reperf/amp/n1g8/bs128", 20e3, 0.02, 0.6},
    {"gpu-memory/nvbandwidth/unstated/n1g1/bs0/all", 8 * 2400, 0.01, 7.0 / 8},
    {"allreduce/nccl-tests/fp32/n1g8/bs0", 230, 0.02, 0.5},
};

TEST(finds_the_sick_node_in_ten_of_ten)
{
    for (EACH(row, PLANTED)) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct group group = group_of(seed, row->measure, row->value, row->noise);
            slow_down(&group, seed % NODES, row->sick);
            finds(&group, NAMES[seed % NODES], row->measure);
        }
    }
}

/* A sick node makes both of its pairs slow, and is named instead of them; a slow link is one pair. */
TEST(finds_the_slow_network_in_ten_of_ten)
{
    static const char *const PAIRS[] = {"node1+node2", "node2+node3", "node3+node4", "node1+node4"};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        size_t sick = seed % NODES;
        struct group group = group_of(seed, "network/iperf3/unstated/n2g0/bs0", 9400, 0.03);
        slow_down(&group, sick, 0.5);
        finds(&group, str_of(PAIRS[sick]), "a link");
        slow_down(&group, (sick + NODES - 1) % NODES, 0.5);
        finds(&group, NAMES[sick], "a node");
    }
}

/* A rank that is missing ends its case: what was not measured is a finding too. */
TEST(finds_what_could_not_be_measured)
{
    struct group group = group_of(1, "allreduce/nccl-tests/fp32/n1g8/bs0", 230, 0.02);
    group.figures[2].n = 0;
    group.figures[2].why = STR_LIT("repeat 1 of 3: exit status 3");
    struct health health = judged(&group);
    assert_int_equal(health.n_findings, 1);
    assert_string_equal(health.findings[0].says.ptr,
                        "node3: allreduce/nccl-tests/fp32/n1g8/bs0: not measured: repeat 1 of 3: "
                        "exit status 3");
    assert_int_equal(health.figures[0].verdict, HEALTH_WITHIN);
}

TEST(names_none_of_twenty_sound_groups)
{
    for (uint64_t seed = 1001; seed <= 1020; seed++) {
        struct group pairs = group_of(seed, "network/iperf3/unstated/n2g0/bs0", 9400, 0.03);
        assert_int_equal(judged(&pairs).n_findings, 0);
        for (EACH(row, PLANTED)) {
            struct group group = group_of(seed, row->measure, row->value, row->noise);
            assert_int_equal(judged(&group).n_findings, 0);
        }
    }
}

/* Beyond the share, but within the uncertainty of the repeats. */
TEST(noise_alone_makes_no_outlier)
{
    size_t n = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct group group = group_of(seed, "memory/x", 100, 0.2);
        n += judged(&group).n_findings;
    }
    assert_true(n <= 5);
}

TEST(noise_hides_no_fiftieth)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct group group = group_of(seed, "disk-write/x", 10, 0);
        struct rng rng;
        rng_init(&rng, seed);
        for (size_t at = 0; at < NODES * REPEATS; at++) {
            group.values[at / REPEATS][at % REPEATS] *= exp(0.4 * rng_normal(&rng));
        }
        slow_down(&group, 1, 0.02);
        finds(&group, NAMES[1], "a fiftieth");
    }
}

TEST(says_the_rate)
{
    struct group group = group_of(1, "memory/x", 8400, 0);
    slow_down(&group, 2, 0.5);
    assert_string_equal(judged(&group).findings[0].says.ptr,
                        "node3: memory/x: 50 % of the median of its kind (4200 of 8400 MB/s)");
}

/* A faster node is no outlier, and neither is a slower one within the share. */
TEST(better_is_no_outlier)
{
    static const double FACTORS[] = {3, 0.92};
    for (EACH(row, FACTORS)) {
        struct group group = group_of(1, "memory/x", 8400, 0);
        slow_down(&group, 2, *row);
        struct health health = judged(&group);
        assert_int_equal(health.n_findings, 0);
        assert_int_equal(health.figures[2].verdict, HEALTH_WITHIN);
    }
}

/* Of two that differ neither has the majority; of two kinds neither is the other's measure; and a case without a limit has none. */
TEST(compares_only_what_can_be)
{
    static const struct str OTHER[] = {{"b", 1}};
    struct group group = group_of(1, "memory/x", 8400, 0);
    slow_down(&group, 0, 0.1);
    group.n = 2;
    struct health health = judged(&group);
    assert_int_equal(health.n_findings, 0);
    assert_int_equal(health.n_alone, 2);
    assert_int_equal(health.figures[0].verdict, HEALTH_NOT_COMPARED);
    assert_true(str_find(health.figures[0].why, STR_LIT("2 of its kind measured")) >= 0);
    group.n = NODES;
    group.figures[0].kinds = OTHER;
    health = judged(&group);
    assert_int_equal(health.n_findings, 0);
    assert_int_equal(health.n_alone, 1);
    group.figures[0].kinds = ONE_KIND;
    finds(&group, NAMES[0], "one of a kind again");
    for (size_t at = 0; at < NODES; at++) {
        group.figures[at].measure = STR_LIT("other/x");
    }
    health = judged(&group);
    assert_int_equal(health.n_alone, NODES);
    assert_true(str_find(health.figures[0].why, STR_LIT("no limit")) >= 0);
}

TEST(refuses_limits)
{
#define LIMITS(deviations, nodes, list)                                                            \
    "{\"schema_version\":1,\"deviations\":" deviations                                             \
    ",\"deviations_origin\":\"x\",\"nodes_min\":" nodes                                            \
    ",\"nodes_min_origin\":\"x\",\"limits\":[" list "]}"
#define LIMIT(share) "{\"cases\":\"*\",\"share\":" share ",\"origin\":\"x\"}"
    static const struct {
        const char *text, *why;
    } BAD[] = {
        {LIMITS("0", "3", LIMIT("0.1")), "deviations"},
        {LIMITS("6", "2", LIMIT("0.1")), "nodes_min"},
        {LIMITS("6", "3", ""), "limits"},
        {LIMITS("6", "3", LIMIT("0")), "between 0 and 1"},
        {LIMITS("6", "3", LIMIT("1")), "between 0 and 1"},
        {LIMITS("6", "3", LIMIT("null")), "share"},
        {"{}", "schema_version"},
    };
    struct health_limits limits;
    PASSES(health_limits_decode(ARENA, STR_LIT(LIMITS("6", "3", LIMIT("0.1"))), "l", &limits, ERR));
    for (EACH(row, BAD)) {
        FAILS(health_limits_decode(ARENA, str_of(row->text), "l", &limits, ERR), ERR_MANIFEST);
        SAYS(row->why);
    }
}
