/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and verdicts: what a run would do and what follows from its logs, on the data of a real report. */
#include "unit.h"

#include <math.h>

#include "codec/digest.h"
#include "evidence/result.h"
#include "evidence/rundir.h"
#include "kept.h"
#include "load/load.h"
#include "run/planner.h"
#include "run/run.h"
#include "run/run_data.h"
#include "scratch.h"

#define REPORT  "paddle-perf-2020"
#define CASE_ID "resnet50/reperf/fp32/n1g1/bs96" /* its baseline is published with 383 img/s */
#define RUN_ID  "20261121T000000.000Z-00000001"

TEST(run_ids_sort_by_time)
{
    char id[RUN_ID_SIZE];
    char later[RUN_ID_SIZE];
    run_id_make(1795262400LL * NS_PER_S, 0xabcdef12, id); /* 2026-11-21T12:00:00Z */
    run_id_make(1795262400LL * NS_PER_S + NS_PER_MS, 0, later);
    assert_string_equal(id, "20261121T120000.000Z-abcdef12");
    assert_true(strcmp(id, later) < 0);
    assert_true(run_id_is_valid(str_of(id)));
    assert_false(run_id_is_valid(STR_LIT("20261121T120000.000Z-ABCDEF12")));
    assert_false(run_id_is_valid(STR_LIT("../../etc/passwd/aaaaaaaa/aaaa")));
}

TEST(case_ids_become_folders_only_when_safe)
{
    static const char *const BAD[] = {"", "/", "a//b", "a/../b", "a/", "/a", "a b", "a/.", "a\nb"};
    for (EACH(row, BAD)) {
        assert_false(plan_case_id_is_safe(str_of(*row)));
    }
    assert_true(plan_case_id_is_safe(STR_LIT(CASE_ID)));
}

TEST(globs_cross_slashes)
{
    const struct str globs[] = {STR_LIT("bert/*"), STR_LIT("resnet50/*/n1g1/*")};
    assert_true(plan_selects(globs, 2, STR_LIT(CASE_ID)));
    assert_false(plan_selects(globs, 2, STR_LIT("resnet50/reperf/fp32/n1g8/bs96")));
    assert_true(plan_selects(NULL, 0, STR_LIT("anything")));
}

static int plan_of(struct arena *arena, const struct report *report, enum profile profile,
                   const char *glob, int64_t n_nodes, int64_t n_gpus, struct plan *ret_plan,
                   struct err *err)
{
    struct inventory *inventory = arena_new(arena, struct inventory);
    *inventory = (struct inventory){.id = STR_LIT("local"), .is_local = n_nodes == 1};
    inventory->nodes = arena_array(arena, struct inventory_node, (size_t)n_nodes);
    for (; inventory->n_nodes < (size_t)n_nodes; inventory->n_nodes++) {
        inventory->nodes[inventory->n_nodes] = (struct inventory_node){
            .name = str_printf(arena, "n%zu", inventory->n_nodes), .gpus = n_gpus};
    }
    const char *globs[] = {glob};
    struct planner_opts opts = {.asked.profile = profile,
                                .root = ".",
                                .asked.repeats = 1,
                                .inventory = inventory,
                                .globs = {.items = globs, .n = 1},
                                .asked.report_sha256 = STR_LIT("none"),
                                .train_path = "/bin/true", /* any program will do */
                                .clock = clock_system()};
    return plan_make(arena, report, &opts, ret_plan, err);
}

static struct plan make_plan(struct arena *arena, struct report *report, enum profile profile,
                             const char *glob, int64_t n_nodes, int64_t n_gpus)
{
    struct plan plan;
    PASSES(load_report(arena, ".", REPORT, report, ERR));
    PASSES(plan_of(arena, report, profile, glob, n_nodes, n_gpus, &plan, ERR));
    return plan;
}

/* The report with one case alone, whose stack is its own. */
static struct report_case *only_case(struct report *report)
{
    PASSES(load_report(ARENA, ".", REPORT, report, ERR));
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (str_eq_z(report->cases[idx].id, CASE_ID)) {
            report->cases += idx;
            break;
        }
    }
    assert_true(str_eq_z(report->cases[0].id, CASE_ID));
    report->n_cases = report->n_stacks = 1;
    report->stacks = arena_new(ARENA, struct stack);
    report->stacks[0] = *report->cases[0].stack;
    report->cases[0].stack = report->stacks;
    return report->cases;
}

static struct condition *conditions_made(struct arena *arena, const char *name, const char *value,
                                         size_t n)
{
    struct condition *items = arena_array(arena, struct condition, n);
    for (size_t idx = 0; idx < n; idx++) {
        items[idx] = (struct condition){str_printf(arena, "%s%zu", name, idx), str_of(value)};
    }
    return items;
}

static struct str condition_of(const struct plan_step *step, const char *name)
{
    for (size_t idx = 0; idx < step->n_conditions; idx++) {
        if (str_eq_z(step->conditions[idx].name, name)) {
            return step->conditions[idx].value;
        }
    }
    return STR_EMPTY;
}

/* As many as the closed list may have: none is left out, and the case's value overrides its stack's. */
TEST(every_condition_is_planned_and_the_cases_wins)
{
    struct report report;
    struct plan plan;
    struct report_case *c = only_case(&report);
    struct stack *stack = report.stacks;
    stack->conditions.items = conditions_made(ARENA, "x", "stack", CONDITION_NAMES_MAX);
    stack->conditions.n = CONDITION_NAMES_MAX;
    c->conditions.items = conditions_made(ARENA, "x", "case", CONDITION_NAMES_MAX - 1);
    c->conditions.n = CONDITION_NAMES_MAX - 1;
    stack->env = conditions_made(ARENA, "E", "1", PLAN_ENV_MAX);
    stack->n_env = PLAN_ENV_MAX;
    PASSES(plan_of(ARENA, &report, PROFILE_SMOKE, CASE_ID, 1, 0, &plan, ERR));
    for (size_t idx = 0; idx < CONDITION_NAMES_MAX; idx++) {
        const char *name = arena_printf(ARENA, "x%zu", idx);
        struct str value = condition_of(&plan.steps[0], name);
        if (!str_eq_z(value, idx + 1 < CONDITION_NAMES_MAX ? "case" : "stack")) {
            fail_msg("%s: \"%.*s\"", name, STR_ARG(value));
        }
    }
    assert_true(str_eq_z(condition_of(&plan.steps[0], "iterations"), "20"));
    assert_int_equal(plan.steps[0].n_env, PLAN_ENV_MAX);
}

TEST(too_many_pins_are_an_error)
{
    struct report report;
    struct plan plan;
    (void)only_case(&report);
    struct stack *stack = report.stacks;
    stack->framework = STR_LIT("other");
    stack->image = STR_LIT("pulled"); /* not built: without a digest it is a missing pin */
    stack->image_digest = STR_EMPTY;
    stack->n_sources = PLAN_PINS_MAX - 1;
    stack->sources = arena_array(ARENA, struct pin_source, PLAN_PINS_MAX);
    PASSES(plan_of(ARENA, &report, PROFILE_SMOKE, CASE_ID, 1, 0, &plan, ERR));
    assert_int_equal(plan.n_pins, PLAN_PINS_MAX);
    stack->n_sources++;
    FAILS(plan_of(ARENA, &report, PROFILE_SMOKE, CASE_ID, 1, 0, &plan, ERR), ERR_MANIFEST);
    SAYS("more than 1024");
}

TEST(a_step_gets_the_nodes_that_it_needs)
{
    static const struct {
        const char *glob;
        enum profile profile;
        int64_t n_nodes, n_gpus; /* there */
        int64_t nodes, ranks;
        enum err_code cause;
    } ROWS[] = {
        {"resnet50/reperf/fp32/n4g8/bs96", PROFILE_SMOKE, 4, 0, 4, 4, ERR_NONE},
        {"resnet50/reperf/fp32/n4g8/bs96", PROFILE_SMOKE, 3, 0, 2, 4, ERR_NONE},
        {"resnet50/reperf/fp32/n1g8/bs96", PROFILE_SMOKE, 4, 0, 1, 2, ERR_NONE},
        {"resnet50/reperf/fp32/n4g8/bs96", PROFILE_FULL, 4, 8, 4, 32, ERR_NONE},
        {"resnet50/reperf/fp32/n4g8/bs96", PROFILE_FULL, 3, 8, 4, 32, ERR_NODE},
        {"resnet50/reperf/fp32/n4g8/bs96", PROFILE_FULL, 4, 4, 4, 32, ERR_NODE},
    };
    for (EACH(row, ROWS)) {
        struct report report;
        struct plan plan =
            make_plan(ARENA, &report, row->profile, row->glob, row->n_nodes, row->n_gpus);
        assert_int_equal(plan.steps[0].cause, row->cause);
        assert_int_equal(plan.steps[0].n_nodes, row->nodes);
        assert_int_equal(plan.steps[0].n_ranks, row->ranks);
    }
}

TEST(plans_are_read_back_as_written)
{
    CLEANUP(strbuf) struct strbuf first = STRBUF(16 << 20);
    CLEANUP(strbuf) struct strbuf second = STRBUF(16 << 20);
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct report report;
    struct plan plan = make_plan(ARENA, &report, PROFILE_SMOKE, "*", 1, 0);
    struct plan again;
    plan.n_needs = 0; /* what the store was then is not read */
    plan_encode(&plan, &first);
    PASSES(json_parse(strbuf_str(&first), "plan", &doc, ERR));
    PASSES(plan_decode(&doc.root, ARENA, &again, ERR));
    plan_encode(&again, &second);
    assert_string_equal(first.ptr, second.ptr);
    assert_true(plan.n_pins > 0);
    again.is_rehearsal = true; /* of smoke, which cannot be rehearsed */
    strbuf_clear(&second);
    plan_encode(&again, &second);
    CLEANUP(json_doc) struct json_doc wrong = {0};
    PASSES(json_parse(strbuf_str(&second), "plan", &wrong, ERR));
    FAILS_WITH(plan_decode(&wrong.root, ARENA, &again, ERR), ERR_ANY,
               "a rehearsal needs profile full");
}

/* ---- verdicts ---- */

static void put_log(struct arena *arena, const char *folder, double rate, int64_t exit_status)
{
    CLEANUP(strbuf) struct strbuf log = STRBUF(1 << 20);
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 20);
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    strbuf_add_z(
        &log, "{\"event\":\"run_start\",\"steps\":20,\"warmup_steps\":4,\"ranks\":1,\"rank\":0}\n");
    for (int step = 1; step <= 20; step++) {
        strbuf_printf(&log,
                      "{\"event\":\"step\",\"step\":%d,\"steps\":20,\"rank\":0,\"loss\":7.5,"
                      "\"step_time_ns\":10,\"samples_per_s\":",
                      step);
        strbuf_add_f64(&log, rate);
        strbuf_add_z(&log, ",\"lr\":0.1}\n");
    }
    strbuf_add_z(&log, "{\"event\":\"run_stop\",\"steps\":20,\"warmup_steps\":4,\"rank\":0,"
                       "\"elapsed_ns\":160,\"samples_per_s\":1}\n");
    sha256_of(strbuf_str(&log), sha256);
    hex_encode(sha256, SHA256_BYTES, hex);
    const struct rundir_of of = {.case_id = STR_LIT(CASE_ID), .repeat = 1};
    struct outcome_record outcome = {.case_id = STR_LIT(CASE_ID),
                                     .repeat = 1,
                                     .attempt = 1,
                                     .exit_status = exit_status,
                                     .log = str_of(rundir_name(arena, RUNDIR_LOG, of)),
                                     .log_sha256 = str_of(hex),
                                     .log_bytes = (int64_t)log.len};
    outcome_encode(&outcome, &text);
    PASSES(rundir_write(arena, folder, rundir_name(arena, RUNDIR_LOG, of), strbuf_str(&log), ERR));
    PASSES(rundir_write(arena, folder, rundir_name(arena, RUNDIR_OUTCOME, of), strbuf_str(&text),
                        ERR));
}

/* An evidence folder as run_create would make it, on a machine with a GPU. */
static void put_frozen(struct arena *arena, const char *folder, enum profile profile)
{
    CLEANUP(strbuf) struct strbuf plan_text = STRBUF(1 << 20);
    CLEANUP(strbuf) struct strbuf lock_text = STRBUF(1 << 20);
    struct report report;
    struct plan plan = make_plan(arena, &report, profile, CASE_ID, 1, 1);
    struct str report_text;
    struct str format_text;
    struct str id = STR_LIT(RUN_ID);
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    PASSES(fs_read(arena, "manifests/reports/" REPORT ".json", 16 << 20, &report_text, ERR));
    PASSES(fs_read(arena, "manifests/formats/reperf.json", 16 << 20, &format_text, ERR));
    sha256_of(report_text, sha256);
    hex_encode(sha256, SHA256_BYTES, hex);
    plan.report_sha256 = str_of(hex);
    plan_encode(&plan, &plan_text);
    frozen_encode_lock(&(struct frozen){.report = report, .plan = plan, .run_id = id}, &lock_text);
    const struct {
        const char *name;
        struct str text;
    } files[] = {
        {"manifest/report.json", report_text},
        {"manifest/formats/reperf.json", format_text},
        {"manifest/plan.json", strbuf_str(&plan_text)},
        {"lock/lock.json", strbuf_str(&lock_text)},
        {"environment/local.json", STR_LIT("{\"conditions\": {\"gpu\": \"Another GPU\"}}")},
    };
    for (EACH(row, files)) {
        PASSES(rundir_write(arena, folder, row->name, row->text, ERR));
    }
}

static struct run_result derived(const char *folder, bool is_rehearsal)
{
    CLEANUP(frozen) struct frozen frozen = {0};
    struct run_result result;
    PASSES(frozen_load(ARENA, folder, &frozen, ERR));
    frozen.plan.is_rehearsal = is_rehearsal;
    PASSES(result_derive(ARENA, &frozen, (struct derived_to){keep_nothing, NULL}, &result, ERR));
    return result;
}

TEST_IN_SCRATCH(full_runs_are_held_against_the_published_number)
{
    static const struct {
        double rate;
        int64_t exit_status;
        enum run_verdict verdict;
        int status;
    } ROWS[] = {
        {383.0, 0, RUN_REPRODUCED, 0},         {383.0 * 1.049, 0, RUN_REPRODUCED, 0},
        {383.0 * 0.951, 0, RUN_REPRODUCED, 0}, {383.0 * 1.06, 0, RUN_FASTER, 1},
        {383.0 * 0.94, 0, RUN_SLOWER, 1},      {383.0, 1, RUN_FAILED, 8},
    };
    put_frozen(ARENA, *state, PROFILE_FULL);
    for (EACH(row, ROWS)) {
        put_log(ARENA, *state, row->rate, row->exit_status);
        struct run_result result = derived(*state, false);
        assert_int_equal(result.n_cells, 1);
        assert_int_equal(result.cells[0].verdict, row->verdict);
        assert_int_equal(result.exit_status, row->status);
        if (row->verdict != RUN_FAILED) {
            assert_true(fabs(result.cells[0].value - row->rate) < 1e-6);
            assert_true(fabs(result.cells[0].rel_diff - (row->rate / 383.0 - 1)) < 1e-9);
        } else {
            assert_true(isnan(result.cells[0].value));
        }
    }
}

/* Not even with the published rate: what it ran on is not what was published. A failing rank still counts as one. */
TEST_IN_SCRATCH(a_rehearsal_claims_no_number)
{
    static const struct {
        int64_t exit_status;
        enum run_verdict verdict;
        int status;
    } ROWS[] = {{0, RUN_NOT_COMPARABLE, 0}, {1, RUN_FAILED, 8}};
    put_frozen(ARENA, *state, PROFILE_FULL);
    for (EACH(row, ROWS)) {
        put_log(ARENA, *state, 383.0, row->exit_status);
        struct run_result result = derived(*state, true);
        assert_int_equal(result.cells[0].verdict, row->verdict);
        assert_int_equal(result.exit_status, row->status);
        assert_true(isnan(result.cells[0].rel_diff));
    }
}

/* Its log is read with the batch and ranks that its recipe declares; that of any other run, with the case's. */
TEST_IN_SCRATCH(a_rehearsal_is_read_as_what_it_trains)
{
    CLEANUP(frozen) struct frozen frozen = {0};
    struct condition small[] = {{STR_LIT("batch_per_gpu"), STR_LIT("2")},
                                {STR_LIT("training_ranks"), STR_LIT("4")}};
    struct rule_case of;
    put_frozen(ARENA, *state, PROFILE_FULL);
    PASSES(frozen_load(ARENA, *state, &frozen, ERR));
    struct plan_step *step = &frozen.plan.steps[0];
    step->conditions = small;
    step->n_conditions = ARRAY_LEN(small);
    step->n_ranks = 32;
    of = result_rule_case(&frozen, step);
    assert_int_equal(of.batch_per_gpu, 96);
    assert_int_equal(of.gpus, 32);
    frozen.plan.is_rehearsal = true;
    of = result_rule_case(&frozen, step);
    assert_int_equal(of.batch_per_gpu, 2);
    assert_int_equal(of.gpus, 4);
    step->n_conditions = 0;
    of = result_rule_case(&frozen, step);
    assert_int_equal(of.batch_per_gpu, 96);
    assert_int_equal(of.gpus, 32);
}

/* A result names every condition in force that the published case does not state. */
TEST_IN_SCRATCH(no_condition_of_a_run_is_left_out)
{
    CLEANUP(frozen) struct frozen frozen = {0};
    struct run_result result;
    put_frozen(ARENA, *state, PROFILE_FULL);
    put_log(ARENA, *state, 383, 0);
    PASSES(frozen_load(ARENA, *state, &frozen, ERR));
    frozen.machine = conditions_made(ARENA, "m", "1", 200);
    frozen.n_machine = 200;
    frozen.plan.steps[0].conditions = conditions_made(ARENA, "p", "1", 200);
    frozen.plan.steps[0].n_conditions = 200;
    PASSES(result_derive(ARENA, &frozen, (struct derived_to){keep_nothing, NULL}, &result, ERR));
    assert_true(result.cells[0].n_not_stated >= 400);
}

TEST_IN_SCRATCH(a_machine_of_too_many_conditions_is_refused)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 20);
    put_frozen(ARENA, *state, PROFILE_FULL);
    for (int n = 64; n <= 65; n++) {
        CLEANUP(frozen) struct frozen frozen = {0};
        strbuf_clear(&text);
        strbuf_add_z(&text, "{\"conditions\": {");
        for (int idx = 0; idx < n; idx++) {
            strbuf_printf(&text, "%s\"m%d\": \"1\"", idx ? ", " : "", idx);
        }
        strbuf_add_z(&text, "}}");
        PASSES(rundir_write(ARENA, *state, "environment/local.json", strbuf_str(&text), ERR));
        assert_int_equal(frozen_load(ARENA, *state, &frozen, ERR), n == 64 ? 0 : -1);
    }
    SAYS("expected at most 64 conditions");
}

/* ---- packed data ---- */

#define HEX                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER                  "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PACK(id, synthetic, n) PACK_OF(id, synthetic, "train", n)
#define PACK_OF(id, synthetic, split, n)                                                           \
    "{\"schema_version\":1,\"dataset\":\"" id "\",\"synthetic\":" synthetic                        \
    ",\"kind\":\"segments\",\"split\":\"" split "\",\"n_samples\":" n ",\"source_sha256\":\"" HEX  \
    "\",\"shards\":[]}"

static const char *pack_at(void **state, const char *below, const char *text)
{
    const char *folder = fs_join(&scratch_arena, *state, below);
    scratch_put(folder, "pack.json", str_of(text));
    return folder;
}

static int find(void **state, const char *text, struct plan_data *ret, struct err *err)
{
    return run_data_find(&scratch_arena, ".", *state, text, ret, err);
}

TEST_IN_SCRATCH(packed_data_is_found)
{
    struct plan_data data = {0};
    const char *folder;
    pack_at(state, "packed/cityscapes.synthetic/train", PACK("cityscapes", "true", "4"));
    PASSES(find(state, "cityscapes.synthetic", &data, ERR));
    assert_true(data.is_synthetic);
    assert_int_equal(data.n_samples, 4);
    assert_string_equal(plan_data_name(&scratch_arena, &data), "synthetic twin of cityscapes");
    PASSES(run_data_check(&data, ERR));
    /* The synthetic dataset is not the original. */
    FAILS(find(state, "cityscapes", &data, ERR), ERR_USAGE);
    SAYS("Its synthetic version is there: --data cityscapes.synthetic");
    folder = pack_at(state, "elsewhere", PACK("cityscapes", "false", "2975"));
    PASSES(find(state, folder, &data, ERR));
    assert_false(data.is_synthetic);
    assert_string_equal(plan_data_name(&scratch_arena, &data), "cityscapes");
    /* A synthetic dataset that claims to be the original. */
    folder = pack_at(state, "forged", PACK("cityscapes", "false", "9"));
    FAILS_WITH(find(state, folder, &data, ERR), ERR_INTEGRITY, "has 2975 samples; found 9");
}

TEST_IN_SCRATCH(other_data_is_refused)
{
    struct plan_data data = {0};
    const char *folder = pack_at(state, "here", PACK("cityscapes", "true", "4"));
    PASSES(find(state, folder, &data, ERR));
    pack_at(state, "here", PACK("cityscapes", "true", "5"));
    FAILS(run_data_check(&data, ERR), ERR_INTEGRITY);
    SAYS("the run was planned with one of SHA-256");
    assert_int_equal(unlink(fs_join(&scratch_arena, folder, "pack.json")), 0);
    FAILS(run_data_check(&data, ERR), ERR_INTEGRITY);
    /* Shards of a synthetic dataset in the original's place. */
    pack_at(state, "packed/cityscapes/train", PACK("cityscapes", "true", "4"));
    FAILS(find(state, "cityscapes", &data, ERR), ERR_INTEGRITY);
    FAILS(find(state, "reperf-cpu", &data, ERR), ERR_USAGE);
    FAILS(find(state, "./nowhere", &data, ERR), ERR_USAGE);
    folder = pack_at(state, "bad", "{\"dataset\":\"cityscapes\"}");
    FAILS(find(state, folder, &data, ERR), ERR_MANIFEST);
}

TEST_IN_SCRATCH(data_of_another_split_or_tree_is_refused)
{
    struct plan_data data = {0};
    const char *tree = fs_join(&scratch_arena, *state, "trees/cityscapes.synthetic");
#define TREE(sha256)                                                                               \
    "{\"schema_version\":1,\"dataset\":\"cityscapes\",\"synthetic\":true,\"recipe\":null,"         \
    "\"date\":\"2026-11-21T00:00:00Z\",\"blobs\":[],\"archives\":[],\"splits\":[],"                \
    "\"list_sha256\":\"" sha256 "\",\"files\":1,\"file_bytes\":1}"
    pack_at(state, "packed/cityscapes.synthetic/train", PACK_OF("cityscapes", "true", "val", "4"));
    FAILS(find(state, "cityscapes.synthetic", &data, ERR), ERR_INTEGRITY);
    SAYS("split val, not train");
    pack_at(state, "packed/cityscapes.synthetic/train", PACK("cityscapes", "true", "4"));
    scratch_put(tree, "tree.json", str_of(TREE(HEX)));
    PASSES(find(state, "cityscapes.synthetic", &data, ERR));
    scratch_put(tree, "tree.json", str_of(TREE(OTHER)));
    FAILS(find(state, "cityscapes.synthetic", &data, ERR), ERR_INTEGRITY);
    SAYS("the store's tree has 1123");
    scratch_put(tree, "tree.json", STR_LIT("{}"));
    FAILS(find(state, "cityscapes.synthetic", &data, ERR), ERR_INTEGRITY);
}

TEST(none_is_nothing_to_check)
{
    struct plan_data none = {0};
    PASSES(run_data_check(&none, ERR));
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
