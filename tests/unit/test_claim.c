/* SPDX-License-Identifier: Apache-2.0 */
/* Ratios of columns that took turns, and what is claimed of them. */
#include "unit.h"

#include <math.h>

#include "judge/claim.h"

struct claim_row {
    const char *what;
    double published, low, high;
    enum claim_verdict verdict;
};

static const struct claim_row CLAIMS[] = {
    {"as far as published", 1.5, 1.48, 1.55, CLAIM_HOLDS},
    {"further than published", 1.5, 1.9, 2.1, CLAIM_HOLDS},
    {"within the tolerance below it", 1.5, 1.43, 1.47, CLAIM_HOLDS},
    {"short of it", 1.5, 1.1, 1.3, CLAIM_WEAKER},
    {"short of it, and perhaps not faster at all", 1.5, 0.95, 1.2, CLAIM_WEAKER},
    {"the other is the faster", 1.5, 0.8, 0.9, CLAIM_REVERSED},
    {"across the bound", 1.5, 1.2, 1.6, CLAIM_UNDECIDED},
    {"across both", 1.5, 0.7, 1.7, CLAIM_UNDECIDED},
    {"no interval", 1.5, (double)NAN, (double)NAN, CLAIM_UNDECIDED},
    {"slower, as published", 0.5, 0.48, 0.51, CLAIM_HOLDS},
    {"slower, by less", 0.5, 0.7, 0.8, CLAIM_WEAKER},
    {"slower, and it is faster", 0.5, 1.1, 1.2, CLAIM_REVERSED},
    {"slower, across the bound", 0.5, 0.45, 0.6, CLAIM_UNDECIDED},
    {"published as equal", 1.03, 1.3, 1.4, CLAIM_NONE},
    {"published as equal, too", 0.97, 1.3, 1.4, CLAIM_NONE},
};

TEST(claims_are_judged_by_the_whole_interval)
{
    for (size_t idx = 0; idx < ARRAY_LEN(CLAIMS); idx++) {
        const struct claim_row *row = &CLAIMS[idx];
        const struct ratio measured = {
            .value = sqrt(row->low * row->high), .low = row->low, .high = row->high, .n_pairs = 3};
        if (claim_judge(row->published, &measured, 0.05) != row->verdict) {
            fail_msg("%s: expected verdict %d", row->what, (int)row->verdict);
        }
    }
}

struct ratio_row {
    const char *what;
    double values[4], references[4];
    size_t n;
    double value, low, high; /* 0: none */
    const char *why;
};

static const struct ratio_row RATIOS[] = {
    {"no pair", {0}, {0}, 0, 0, 0, 0, "no repeat counts on both sides"},
    {"one pair", {30}, {10}, 1, 0, 0, 0, "one repeat gives no interval"},
    {"one program on a machine that something else slows down",
     {4.295, 1.6, 3.0},
     {1.585, 4.2, 3.1},
     3,
     0,
     0.0873,
     11.45,
     "the repeats do not tell them apart"},
    /* Both become slower together: each pair has the same ratio. */
    {"a drift that both share", {30, 20, 10}, {15, 10, 5}, 3, 2, 2, 2, NULL},
    {"a little noise", {20.2, 20, 19.8}, {10, 10, 10}, 3, 2, 1.9509, 2.0502, NULL},
};

static bool is_near(double value, double wanted)
{
    return wanted == 0 ? isnan(value) : fabs(value / wanted - 1) < 1e-2;
}

TEST(a_ratio_is_shown_where_its_interval_has_a_side)
{
    for (size_t idx = 0; idx < ARRAY_LEN(RATIOS); idx++) {
        const struct ratio_row *row = &RATIOS[idx];
        struct ratio ratio = ratio_of_turns(row->values, row->references, row->n);
        if (!is_near(ratio.value, row->value) || !is_near(ratio.low, row->low) ||
            !is_near(ratio.high, row->high)) {
            fail_msg("%s: %g, %g to %g", row->what, ratio.value, ratio.low, ratio.high);
        }
        assert_true(row->why ? ratio.why && strcmp(ratio.why, row->why) == 0 : !ratio.why);
    }
}

TEST(counts_within_a_percent_are_of_one_network)
{
    assert_true(claim_network_times(STR_LIT("9640830"), STR_LIT("9675306")) == 1);
    assert_true(fabs(claim_network_times(STR_LIT("26723395"), STR_LIT("43589878")) - 1.6311) <
                1e-3);
    assert_true(claim_network_times(STR_LIT("26723395"), STR_EMPTY) == 1);
    assert_true(claim_network_times(STR_LIT("many"), STR_LIT("43589878")) == 1);
}

/* Two published cells and their audits, alike until a test changes one of them. */
struct pair {
    struct report_case cases[2];
    struct stack stack;
    struct condition conditions[2][1];
    struct cell_audit audits[2];
};

static void alike(struct pair *pair)
{
    *pair = (struct pair){0};
    for (size_t idx = 0; idx < 2; idx++) {
        pair->cases[idx] = (struct report_case){.id = idx ? STR_LIT("m/b/fp32/n1g1/bs8")
                                                          : STR_LIT("m/a/fp32/n1g1/bs8"),
                                                .batch_per_gpu = 8,
                                                .stack = &pair->stack,
                                                .conditions = {pair->conditions[idx], 1}};
        pair->conditions[idx][0] = (struct condition){STR_LIT("parameters"), STR_LIT("9640830")};
        pair->audits[idx] = (struct cell_audit){.of_case = &pair->cases[idx]};
    }
}

static const char *objection(struct arena *arena, const struct pair *pair)
{
    return claim_objection(arena, &pair->cases[0], &pair->cases[1], &pair->audits[0],
                           &pair->audits[1]);
}

TEST(what_the_audit_found_unlike_is_no_claim)
{
    struct pair pair;
    alike(&pair);
    assert_null(objection(ARENA, &pair));
    assert_null(claim_objection(ARENA, &pair.cases[0], &pair.cases[1], NULL, NULL));
    pair.cases[1].batch_per_gpu = 4;
    assert_non_null(strstr(objection(ARENA, &pair), "batch 8 per GPU against 4"));
    alike(&pair);
    pair.conditions[1][0].value = STR_LIT("15724000");
    assert_non_null(strstr(objection(ARENA, &pair), "two networks, one with 1.63 times"));
    alike(&pair);
    pair.conditions[0][0] = (struct condition){STR_LIT("grad_accumulation"), STR_LIT("264")};
    pair.conditions[1][0] = (struct condition){STR_LIT("grad_accumulation"), STR_LIT("1")};
    assert_non_null(strstr(objection(ARENA, &pair), "accumulated over 264 steps against 1"));
    alike(&pair);
    pair.audits[1].proof = PROOF_CONTRADICTED;
    assert_non_null(strstr(objection(ARENA, &pair), "m/b/fp32/n1g1/bs8 belongs to another row"));
}
