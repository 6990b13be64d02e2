/* SPDX-License-Identifier: Apache-2.0 */
/* A run's frameworks side by side: which ratios are shown, and what is said of the report's claims. */
#include "unit.h"

#include <math.h>

#include "evidence/columns.h"
#include "load/load.h"
#include "report/vocabulary.h"

#define REPORT "paddle-perf-hrnetw18"
#define GPU    "Tesla V100-SXM2-32GB"

static const char *const CASES[] = {"hrnetw18/paddle/fp32/n1g1/bs8", "hrnetw18/mmseg/fp32/n1g1/bs8",
                                    "hrnetw18/reperf/fp32/n1g1/bs8"};
enum { PADDLE, MMSEG, OURS, N_CASES };
#define N_REPEATS 3

/* A finished run of one row, every part of which a test may change before the columns are made. */
struct bench {
    struct report report;
    struct frozen frozen;
    struct rule rule;
    struct plan_step steps[N_CASES];
    struct cell_result cells[N_CASES];
    struct repeat_result repeats[N_CASES][N_REPEATS];
    struct run_difference differs[1];
    struct run_result result;
    struct columns columns;
};

static void set_values(struct bench *b, int cell, double first, double second, double third)
{
    const double values[N_REPEATS] = {first, second, third};
    b->cells[cell].value = (first + second + third) / N_REPEATS;
    for (size_t idx = 0; idx < N_REPEATS; idx++) {
        b->repeats[cell][idx] = (struct repeat_result){.counts = true, .value = values[idx]};
    }
}

static void set_up(struct bench *b)
{
    *b = (struct bench){0};
    PASSES(load_report(ARENA, ".", REPORT, &b->report, ERR));
    b->frozen.vocabulary = vocabulary_builtin(ARENA);
    b->frozen.plan = (struct plan){
        .profile = PROFILE_FULL, .takes_turns = true, .repeats = N_REPEATS, .n_steps = N_CASES};
    b->differs[0] = (struct run_difference){STR_LIT("gpu"), STR_LIT(GPU), STR_LIT("H100")};
    for (size_t idx = 0; idx < N_CASES; idx++) {
        const struct report_case *c = report_case_find(&b->report, str_of(CASES[idx]));
        assert_non_null(c);
        const struct report_case *baseline =
            c->baseline.ptr ? report_case_find(&b->report, c->baseline) : c;
        b->steps[idx].bound.rule = &b->rule;
        b->cells[idx] = (struct cell_result){.step = &b->steps[idx],
                                             .of_case = c,
                                             .baseline = baseline,
                                             .published = &baseline->cells[0],
                                             .unit = STR_LIT("samples/s"),
                                             .repeats = b->repeats[idx],
                                             .n_repeats = N_REPEATS,
                                             .differs = b->differs,
                                             .n_differs = 1};
    }
    set_values(b, PADDLE, 40.0, 40.2, 40.1);
    set_values(b, MMSEG, 31.0, 31.1, 31.0);
    set_values(b, OURS, 50.0, 30.0, 40.0);
    b->result = (struct run_result){.cells = b->cells, .n_cells = N_CASES};
}

static const struct column_cell *look(struct bench *b, int cell)
{
    columns_of(ARENA, &b->frozen, &b->result, NULL, &b->columns);
    assert_int_equal(b->columns.n_rows, 1);
    assert_int_equal(b->columns.rows[0].n_cells, N_CASES);
    return columns_find(&b->columns.rows[0], (size_t)cell);
}

static void says(const struct column_cell *at, const char *words)
{
    struct str text = columns_claim_text(ARENA, at);
    if (!text.ptr || !strstr(text.ptr, words)) {
        fail_msg("\"%s\" is not in \"%.*s\"", words, STR_ARG(text));
    }
}

TEST(a_claim_is_judged_by_the_repeats)
{
    struct bench b;
    set_up(&b);
    const struct column_cell *at = look(&b, MMSEG);
    /* The report prints 19.428 and 15.498: 0.798. */
    assert_int_equal(at->claim.verdict, CLAIM_HOLDS);
    assert_true(fabs(at->claim.published - 0.798) < 0.001);
    assert_true(fabs(at->ratio.value - 31.03 / 40.1) < 0.002);
    says(at, "holds: published 0.80, here 0.77 to 0.78; gpu " GPU " there, H100 here");
    assert_int_equal(columns_find(&b.columns.rows[0], PADDLE)->claim.verdict, CLAIM_NONE);
    assert_null(columns_find(&b.columns.rows[0], PADDLE)->claim.why);
    set_values(&b, MMSEG, 44.0, 44.1, 44.0);
    says(look(&b, MMSEG), "reversed: ");
    set_values(&b, MMSEG, 36.0, 36.1, 36.0);
    says(look(&b, MMSEG), "weaker: ");
    set_values(&b, MMSEG, 20.0, 31.1, 60.0);
    says(look(&b, MMSEG), "undecided: ");
}

/* What is not known to hold on its own is shown without a ratio, and why. */
TEST(no_ratio_of_columns_that_the_repeats_do_not_tell_apart)
{
    struct bench b;
    set_up(&b);
    const struct column_cell *at = look(&b, OURS);
    assert_true(isnan(at->ratio.value) && at->ratio.low < 1 && at->ratio.high > 1);
    assert_string_equal(at->ratio.why, "the repeats do not tell them apart");
    assert_string_equal(columns_cell_text(ARENA, at).ptr, "40");
    says(at, "the report prints no number for both");
}

TEST(no_ratio_without_turns)
{
    struct bench b;
    set_up(&b);
    b.frozen.plan.takes_turns = false;
    const struct column_cell *at = look(&b, MMSEG);
    assert_true(isnan(at->ratio.value) && isnan(at->ratio.low));
    assert_string_equal(at->ratio.why, "they did not take turns on the same nodes");
    assert_string_equal(columns_cell_text(ARENA, at).ptr, "31.03");
    says(at, "no claim: they did not take turns");
}

TEST(a_smoke_run_judges_no_claim)
{
    struct bench b;
    set_up(&b);
    b.frozen.plan.profile = PROFILE_SMOKE;
    const struct column_cell *at = look(&b, MMSEG);
    assert_true(at->ratio.value > 0);
    assert_int_equal(at->claim.verdict, CLAIM_NONE);
    says(at, "a smoke run judges no claim");
    b.frozen.plan.is_rehearsal = true;
    assert_string_equal(look(&b, MMSEG)->ratio.why, "a rehearsal");
}

/* One column over InfiniBand and the other over sockets is no race of frameworks. */
TEST(columns_of_different_transports_are_not_alike)
{
    static const struct fact FACTS[] = {
        {.name = {"nccl_transport", 14}, .value = {"IB", 2}},
        {.name = {"nccl_transport", 14}, .value = {"Socket", 6}},
    };
    struct bench b;
    set_up(&b);
    for (size_t idx = 0; idx < N_REPEATS; idx++) {
        b.repeats[PADDLE][idx].facts = &FACTS[0];
        b.repeats[MMSEG][idx].facts = &FACTS[1];
        b.repeats[PADDLE][idx].n_facts = b.repeats[MMSEG][idx].n_facts = 1;
    }
    const struct column_cell *at = look(&b, MMSEG);
    assert_int_equal(at->n_differs, 1);
    assert_string_equal(at->differs[0], "nccl_transport");
    for (size_t idx = 0; idx < N_REPEATS; idx++) {
        b.repeats[MMSEG][idx].facts = &FACTS[0];
    }
    assert_int_equal(look(&b, MMSEG)->n_differs, 0);
}
