/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes compared with each other: a sick one is found and named, equal ones are not; nothing that a node says is trusted. Seeded
   noise. */
#include "base/base.h"

#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/rng.h"
#include "judge/bench_doc.h"
#include "judge/node_bench.h"

#define NODES   4
#define REPEATS 7

static struct bench_limits the_limits(struct arena *arena)
{
    struct bench_limits limits;
    struct err err = {0};
    struct str text;
    assert_int_equal(fs_read(arena, "manifests/node-bench.json", 1 << 20, &text, &err), 0);
    assert_int_equal(bench_limits_decode(arena, text, "node-bench.json", &limits, &err), 0);
    return limits;
}

static const struct bench_measure *measure_of(const char *id)
{
    const struct bench_measure *measure = bench_measure_of(str_of(id));
    assert_non_null(measure);
    return measure;
}

struct group {
    struct bench_figure figures[NODES];
    struct bench_figure *list[NODES];
};

/* Each node's true figure differs by one noise, each repeat by another. */
static void make_group(struct arena *arena, struct rng *rng, const char *id, double value,
                       double noise, struct group *ret)
{
    for (size_t node = 0; node < NODES; node++) {
        struct bench_figure *figure = &ret->figures[node];
        double own = value * (1 + noise / 2 * rng_normal(rng));
        *figure = (struct bench_figure){
            .measure = measure_of(id), .n = REPEATS, .spread_given = (double)NAN};
        figure->values = arena_array(arena, double, REPEATS);
        for (size_t at = 0; at < REPEATS; at++) {
            figure->values[at] = own * (1 + noise * rng_normal(rng));
        }
        ret->list[node] = figure;
    }
}

static size_t judged(struct arena *arena, const struct bench_limits *limits, struct group *group)
{
    size_t n = 0;
    for (size_t node = 0; node < NODES; node++) {
        bench_figure_sum(arena, &group->figures[node]);
    }
    bench_compare(arena, limits, group->list, NODES);
    for (size_t node = 0; node < NODES; node++) {
        n += group->figures[node].verdict == BENCH_OUTLIER;
    }
    return n;
}

static const struct {
    const char *id;
    double value, noise, sick; /* the planted node's share of its figure */
} PLANTED[] = {
    {"memory.triad", 200, 0.02, 0.61}, {"flops.fp64.all", 3000, 0.01, 0.8},
    {"disk.write", 2000, 0.05, 0.5},   {"disk.fsync", 800, 0.1, 4},
    {"clock.jitter", 5, 0.3, 12},      {"net.latency", 30, 0.05, 5},
    {"net.send", 90, 0.02, 0.5},       {"net.receive", 90, 0.03, 0.1},
};

static void finds_the_sick_node_in_ten_of_ten(void **state UNUSED)
{
    for (size_t idx = 0; idx < ARRAY_LEN(PLANTED); idx++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            CLEANUP(arena) struct arena arena = ARENA_EMPTY;
            struct bench_limits limits = the_limits(&arena);
            struct rng rng;
            struct group group;
            size_t sick = seed % NODES;
            rng_init(&rng, seed);
            make_group(&arena, &rng, PLANTED[idx].id, PLANTED[idx].value, PLANTED[idx].noise,
                       &group);
            for (size_t at = 0; at < REPEATS; at++) {
                group.figures[sick].values[at] *= PLANTED[idx].sick;
            }
            size_t n = judged(&arena, &limits, &group);
            if (n != 1 || group.figures[sick].verdict != BENCH_OUTLIER) {
                fail_msg("%s, seed %d: %zu outliers; the sick one's %g of %g, spread %g",
                         PLANTED[idx].id, (int)seed, n, group.figures[sick].median,
                         group.figures[sick].group_median, group.figures[sick].group_spread);
            }
            assert_true(bench_says(&arena, &group.figures[sick]).len > 0);
        }
    }
}

static void names_none_of_four_equal_nodes(void **state UNUSED)
{
    for (size_t idx = 0; idx < ARRAY_LEN(PLANTED); idx++) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
            CLEANUP(arena) struct arena arena = ARENA_EMPTY;
            struct bench_limits limits = the_limits(&arena);
            struct rng rng;
            struct group group;
            rng_init(&rng, 1000 + seed);
            make_group(&arena, &rng, PLANTED[idx].id, PLANTED[idx].value, PLANTED[idx].noise,
                       &group);
            assert_int_equal(judged(&arena, &limits, &group), 0);
        }
    }
}

/* Beyond the share, but within the uncertainty of the repeats. */
static void noise_alone_makes_no_outlier(void **state UNUSED)
{
    size_t n = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct bench_limits limits = the_limits(&arena);
        struct rng rng;
        struct group group;
        rng_init(&rng, seed);
        make_group(&arena, &rng, "memory.triad", 100, 0.2, &group);
        n += judged(&arena, &limits, &group);
    }
    print_message("outliers of 500 groups with noise of 20 %%: %zu\n", n);
    assert_true(n <= 5);
}

/* A link with a fiftieth of the rate among machines whose figures vary by a half from one moment to the next. */
static void noise_hides_no_fiftieth(void **state UNUSED)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct bench_limits limits = the_limits(&arena);
        struct rng rng;
        struct group group;
        rng_init(&rng, seed);
        make_group(&arena, &rng, "net.send", 10, 0, &group);
        for (size_t node = 0; node < NODES; node++) {
            for (size_t at = 0; at < REPEATS; at++) {
                group.figures[node].values[at] *= exp(0.4 * rng_normal(&rng));
                group.figures[node].values[at] /= node == seed % NODES ? 50 : 1;
            }
        }
        assert_int_equal(judged(&arena, &limits, &group), 1);
        assert_int_equal(group.figures[seed % NODES].verdict, BENCH_OUTLIER);
    }
}

static void says_the_figure(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_limits limits = the_limits(&arena);
    struct rng rng;
    struct group group;
    rng_init(&rng, 1);
    make_group(&arena, &rng, "memory.triad", 8.4, 0, &group);
    for (size_t at = 0; at < REPEATS; at++) {
        group.figures[2].values[at] *= 0.61;
    }
    assert_int_equal(judged(&arena, &limits, &group), 1);
    assert_string_equal(bench_says(&arena, &group.figures[2]).ptr,
                        "memory 61 % of its group's median (5.124 of 8.4 GB/s)");
    assert_int_equal(bench_says(&arena, &group.figures[1]).len, 0);
}

/* A faster node is no outlier, and neither is a slower one within the share. */
static void better_is_no_outlier(void **state UNUSED)
{
    static const double FACTORS[] = {1.5, 0.92};
    for (size_t idx = 0; idx < ARRAY_LEN(FACTORS); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct bench_limits limits = the_limits(&arena);
        struct rng rng;
        struct group group;
        rng_init(&rng, 1);
        make_group(&arena, &rng, "memory.triad", 8.4, 0, &group);
        for (size_t at = 0; at < REPEATS; at++) {
            group.figures[2].values[at] *= FACTORS[idx];
        }
        assert_int_equal(judged(&arena, &limits, &group), 0);
        assert_int_equal(group.figures[2].verdict, BENCH_WITHIN);
    }
}

static void two_nodes_are_not_compared(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_limits limits = the_limits(&arena);
    struct rng rng;
    struct group group;
    rng_init(&rng, 1);
    make_group(&arena, &rng, "memory.triad", 8.4, 0, &group);
    group.figures[0].n = group.figures[3].n = 0; /* not measured: they do not count */
    bench_figure_sum(&arena, &group.figures[1]);
    bench_figure_sum(&arena, &group.figures[2]);
    bench_compare(&arena, &limits, group.list, NODES);
    assert_int_equal(group.figures[0].verdict, BENCH_NOT_MEASURED);
    assert_int_equal(group.figures[1].verdict, BENCH_NOT_COMPARED);
    assert_true(str_find(group.figures[1].why, STR_LIT("has 2 measured")) >= 0);
    assert_true(isnan(group.figures[1].group_median));
}

static void a_clock_that_runs_away_needs_no_group(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_limits limits = the_limits(&arena);
    struct bench_tick ticks[8];
    double spread, drift;
    for (int64_t idx = 0; idx < 8; idx++) { /* 700 us a second, with 20 us of jitter */
        ticks[idx] = (struct bench_tick){idx * 1000000000, idx * 700000 + (idx % 3) * 20000};
    }
    drift = bench_drift(&arena, ticks, 8, &spread);
    assert_true(fabs(drift - 700) < 15 && spread < 30);
    struct bench_figure figure = {
        .measure = measure_of("clock.drift"), .values = &drift, .n = 1, .spread_given = spread};
    struct bench_figure *list[] = {&figure};
    bench_figure_sum(&arena, &figure);
    bench_compare(&arena, &limits, list, 1);
    assert_int_equal(figure.verdict, BENCH_OUTLIER);
    assert_string_equal(bench_says(&arena, &figure).ptr, "drift 700 ppm");
    figure.spread_given = 100; /* it may as well be 300 */
    bench_figure_sum(&arena, &figure);
    bench_compare(&arena, &limits, list, 1);
    assert_int_equal(figure.verdict, BENCH_WITHIN);
    assert_true(isnan(bench_drift(&arena, ticks, 2, &spread)));
}

static void a_ring_is_not_compared(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_limits limits = the_limits(&arena);
    struct rng rng;
    struct group group;
    rng_init(&rng, 1);
    make_group(&arena, &rng, "net.ring", 8, 0.5, &group);
    assert_int_equal(judged(&arena, &limits, &group), 0);
    assert_int_equal(group.figures[0].verdict, BENCH_NOT_COMPARED);
    assert_true(str_find(group.figures[0].why, STR_LIT("slows the one before")) >= 0);
}

/* Of two peers the better one counts for the node. */
static void a_sick_peer_makes_no_sick_node(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    static const double TWO[] = {10, 90}, THREE[] = {90, 10, 80};
    assert_true(bench_peers_median(&arena, measure_of("net.send"), TWO, 2) == 90);
    assert_true(bench_peers_median(&arena, measure_of("net.latency"), TWO, 2) == 10);
    assert_true(bench_peers_median(&arena, measure_of("net.send"), THREE, 3) == 80);
}

/* ---- a node's answer ---- */

#define ANSWER_HEAD                                                                                \
    "{\"schema_version\":1,\"what\":\"memory\",\"cpu_model\":\"X\",\"cpus\":2,\"gpus\":0,"
#define ANSWER_TAIL ",\"notes\":[\"n\"],\"not_measured\":[]}\n"
#define SERIES(measure, size, work, ns)                                                            \
    "{\"measure\":\"" measure "\",\"size_bytes\":" size ",\"work\":" work ",\"ns\":[" ns "]}"
#define LACK(measure, why) "{\"measure\":\"" measure "\",\"why\":\"" why "\"}"
#define LACKS(lacks)       ",\"notes\":[],\"not_measured\":[" lacks "]}\n"
#define MEMORY(work, ns)                                                                           \
    ANSWER_HEAD "\"series\":[" SERIES("memory.triad", "0", work, ns) "]" ANSWER_TAIL

static void reads_an_answer(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_answer answer;
    struct err err = {0};
    double values[3];
    assert_int_equal(bench_answer_read(&arena, STR_LIT(MEMORY("1000", "100,200,50")), BENCH_MEMORY,
                                       1000, &answer, &err),
                     0);
    assert_int_equal(answer.cpus, 2);
    assert_int_equal(answer.n_series, 1);
    assert_int_equal(bench_values(&answer.series[0], values), 3);
    assert_true(values[0] == 10 && values[1] == 5 && values[2] == 20);
    assert_string_equal(answer.notes[0].ptr, "n");
}

/* A measure that a node could not take is listed with its reason, whose text cannot move a terminal's cursor. */
static void reads_what_was_not_measured(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct bench_answer answer;
    struct err err = {0};
    assert_int_equal(bench_answer_read(&arena,
                                       STR_LIT(ANSWER_HEAD "\"series\":[]" LACKS(
                                           LACK("memory.triad", "no \\u001b[2Jmemory"))),
                                       BENCH_MEMORY, 1000, &answer, &err),
                     0);
    assert_int_equal(answer.n_lacks, 1);
    assert_ptr_equal(answer.lacks[0].measure, measure_of("memory.triad"));
    assert_null(memchr(answer.lacks[0].why.ptr, 0x1b, answer.lacks[0].why.len));
    assert_true(str_find(answer.lacks[0].why, STR_LIT("memory")) > 0);
}

static void refuses(void **state UNUSED)
{
    static const struct {
        const char *text, *why;
    } BAD[] = {
        {"", "expected"},
        {"Segmentation fault\n", "expected"},
        {MEMORY("1000", "100,200,9000"), "its repeats add up to"},
        {MEMORY("100000000000", "1,1,1"), "no machine reaches"},
        {MEMORY("1000", ""), "at least one repeat"},
        {MEMORY("1000", "0"), "expected"},
        {MEMORY("1000", "-5"), "expected"},
        {MEMORY("1000", "1e999"), "out of range"},
        {MEMORY("1000", "NaN"), "expected"},
        {MEMORY("0", "100"), "expected"},
        {MEMORY("1000", "100") "more", "expected"},
        {ANSWER_HEAD "\"series\":[]" ANSWER_TAIL, "is there 0 times"},
        {ANSWER_HEAD "\"series\":[" SERIES("memory.triad", "0", "1000", "100") "," SERIES(
             "memory.triad", "0", "1000", "100") "]" ANSWER_TAIL,
         "occurs twice"},
        {ANSWER_HEAD "\"series\":[" SERIES("disk.read", "0", "1000", "100") "]" ANSWER_TAIL,
         "expected a measure of memory"},
        {ANSWER_HEAD "\"series\":[" SERIES("memory.triad", "4096", "1000", "100") "]" ANSWER_TAIL,
         "in messages of"},
        {ANSWER_HEAD "\"series\":[]" LACKS(LACK("disk.read", "x")), "expected a measure of memory"},
        {ANSWER_HEAD "\"series\":[]" LACKS("{\"measure\":\"memory.triad\"}"), "why"},
        {ANSWER_HEAD "\"series\":[" SERIES("memory.triad", "0", "1000",
                                           "100") "]" LACKS(LACK("memory.triad", "x")),
         "is there 2 times"},
        {"{\"schema_version\":2,\"what\":\"memory\",\"cpu_model\":\"X\",\"cpus\":2,\"gpus\":0,"
         "\"series\":[],\"notes\":[],\"not_measured\":[]}",
         "schema_version"},
        {"{\"schema_version\":1,\"what\":\"disk\",\"cpu_model\":\"X\",\"cpus\":2,\"gpus\":0,"
         "\"series\":[],\"notes\":[],\"not_measured\":[]}",
         "expected an answer about memory"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(BAD); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct bench_answer answer;
        struct err err = {0};
        int rc =
            bench_answer_read(&arena, str_of(BAD[idx].text), BENCH_MEMORY, 1000, &answer, &err);
        if (rc == 0 || err.code != ERR_NODE || !strstr(err.msg, BAD[idx].why)) {
            fail_msg("%zu: \"%s\" does not say \"%s\"", idx, err.msg, BAD[idx].why);
        }
    }
}

#define LIMITS(deviations, measures)                                                               \
    "{\"schema_version\":1,\"deviations\":" deviations                                             \
    ",\"deviations_origin\":\"o\",\"nodes_min\":3,\"nodes_min_origin\":\"o\",\"measures\":"        \
    "[" measures "]}"
#define LIMIT(measure, share)                                                                      \
    "{\"measure\":\"" measure "\",\"share\":" share ",\"amount\":0,\"bound\":null,\"origin\":"     \
    "\"o\"}"

static void refuses_limits(void **state UNUSED)
{
    static const struct {
        const char *text, *why;
    } BAD[] = {
        {"{", "expected"},
        {"{}", "schema_version"},
        {LIMITS("5", ""), "no limit for memory.triad"},
        {LIMITS("0", ""), "deviations: expected a number over 0"},
        {LIMITS("5", "3"), "$.measures[0]"},
        {LIMITS("5", LIMIT("memory.peak", "0.1")), "unknown measure \"memory.peak\""},
        {LIMITS("5", LIMIT("memory.triad", "0.1") "," LIMIT("memory.triad", "0.1")),
         "\"memory.triad\" occurs twice"},
        {LIMITS("5", LIMIT("memory.triad", "1")), "expected a share from 0 to 1 or null"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(BAD); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct bench_limits limits;
        struct err err = {0};
        int rc = bench_limits_decode(&arena, str_of(BAD[idx].text), "x", &limits, &err);
        if (rc == 0 || err.code != ERR_MANIFEST || !strstr(err.msg, BAD[idx].why)) {
            fail_msg("%zu: \"%s\" does not say \"%s\"", idx, err.msg, BAD[idx].why);
        }
    }
}

static void a_slow_link_closes_the_gate(void **state UNUSED)
{
    struct bench_doc_node nodes[] = {{.name = STR_LIT("n1"), .n_measured = 1},
                                     {.name = STR_LIT("n2"), .n_measured = 1},
                                     {.name = STR_LIT("n3"), .n_measured = 1}};
    struct bench_doc_link link = {STR_LIT("n1"), STR_LIT("n3"), STR_LIT("n1 to n3"),
                                  STR_LIT("send 10 % of its group's median")};
    const struct bench_doc doc = {.inventory = STR_LIT("four"),
                                  .nodes = nodes,
                                  .n_nodes = 3,
                                  .slow_links = &link,
                                  .n_slow_links = 1};
    const struct str names[] = {STR_LIT("n1"), STR_LIT("n2"), STR_LIT("n3")};
    struct err err = {0};
    assert_int_equal(bench_doc_admits(&doc, STR_LIT("four"), names, 2, &err), 0);
    assert_int_equal(bench_doc_admits(&doc, STR_LIT("four"), names, 3, &err), -1);
    assert_int_equal(err.code, ERR_NODE);
    assert_string_equal(err.msg, "n1 to n3: send 10 % of its group's median");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_sick_node_in_ten_of_ten),
        cmocka_unit_test(names_none_of_four_equal_nodes),
        cmocka_unit_test(noise_alone_makes_no_outlier),
        cmocka_unit_test(noise_hides_no_fiftieth),
        cmocka_unit_test(says_the_figure),
        cmocka_unit_test(better_is_no_outlier),
        cmocka_unit_test(two_nodes_are_not_compared),
        cmocka_unit_test(a_clock_that_runs_away_needs_no_group),
        cmocka_unit_test(a_ring_is_not_compared),
        cmocka_unit_test(a_slow_link_closes_the_gate),
        cmocka_unit_test(a_sick_peer_makes_no_sick_node),
        cmocka_unit_test(reads_an_answer),
        cmocka_unit_test(reads_what_was_not_measured),
        cmocka_unit_test(refuses),
        cmocka_unit_test(refuses_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
