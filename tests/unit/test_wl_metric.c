/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics against numbers computed by hand. */
#include "unit.h"

#include <math.h>

#include "models/tokens.h"
#include "train/metric.h"

#define CLASSES 4

static const struct model SEGMENTS = {
    .kind = MODEL_IMAGES, .n_classes = CLASSES, .ignore_label = 255};
static const struct model WHOLE = {
    .kind = MODEL_IMAGES, .n_classes = CLASSES, .ignore_label = LOSS_IGNORE_NONE};
static const struct model WORDS = {
    .kind = MODEL_TOKENS, .n_classes = CLASSES, .ignore_label = TOKEN_UNUSED};

/* Two images of three pixels. The ignored pixel's answer is a class that occurs nowhere else, class 2 is never the
   answer. */
static const int64_t LABELS[2][3] = {{0, 0, 1}, {1, 255, 2}};
static const int64_t ANSWERS[2][3] = {{0, 1, 1}, {1, 3, 0}};

/* Logits (2, CLASSES, 3) whose largest are the answers. */
static void fill_logits(float *logits)
{
    for (int64_t i = 0; i < 2 * CLASSES * 3; i++) {
        int64_t class = i / 3 % CLASSES;
        bool is_answer = ANSWERS[i / 3 / CLASSES][i % 3] == class;
        logits[i] = is_answer ? -0.5F : -1.0F - 0.25F * (float)class;
    }
}

static struct metric_batch segments_of(const float *logits, int64_t first, int64_t n)
{
    return (struct metric_batch){.logits = logits + first * CLASSES * 3,
                                 .dtype = DT_F32,
                                 .labels = LABELS[first],
                                 .n = n,
                                 .plane = 3,
                                 .n_samples = n};
}

static void adds(struct metric *metric, struct metric_batch batch)
{
    PASSES(metric_add(metric, &batch, ERR));
}

static double value_of(const struct metric *metric)
{
    double value = (double)NAN;
    PASSES(metric_value(metric, &value, ERR));
    return value;
}

static void assert_close(double got, double wanted, double limit)
{
    assert_true(fabs(got - wanted) <= limit);
}

TEST(miou_leaves_out_what_is_nowhere)
{
    float logits[2 * CLASSES * 3];
    struct metric metric;
    fill_logits(logits);
    metric_init(&metric, &SEGMENTS);
    adds(&metric, segments_of(logits, 0, 2));
    /* Class 0: 1 of 2 + 2 - 1; class 1: 2 of 2 + 3 - 2; class 2: 0 of 1; class 3 occurs only at the ignored pixel. */
    assert_close(value_of(&metric), (1.0 / 3.0 + 2.0 / 3.0 + 0.0) / 3.0, 1e-15);
    assert_int_equal(metric_n_counted(&metric), 5);
    assert_int_equal(metric_n_samples(&metric), 2);
    assert_string_equal(metric_name(metric.kind), "miou");
    metric_clear(&metric);
    assert_int_equal(metric_n_counted(&metric), 0);
    adds(&metric, segments_of(logits, 0, 1)); /* class 0: 1 of 2, class 1: 1 of 2 */
    assert_close(value_of(&metric), 0.5, 1e-15);
    metric_release(&metric);
}

/* The mean of two ranks' values is another number. */
TEST(counts_are_added_before_they_are_divided)
{
    float logits[2 * CLASSES * 3];
    struct metric ranks[2];
    fill_logits(logits);
    for (int i = 0; i < 2; i++) {
        metric_init(&ranks[i], &SEGMENTS);
        adds(&ranks[i], segments_of(logits, i, 1));
    }
    for (int64_t i = 0; i < ranks[0].n_counts; i++) {
        ranks[0].counts[i] += ranks[1].counts[i];
    }
    assert_close(value_of(&ranks[0]), 1.0 / 3.0, 1e-15);
    assert_int_equal(metric_n_samples(&ranks[0]), 2);
    metric_release(&ranks[0]);
    metric_release(&ranks[1]);
}

/* Of equal logits the first is the answer. */
TEST(top1_is_a_share_of_all)
{
    const double logits[4][CLASSES] = {
        {0.5, 0.25, 0, -1}, {-3, -2, -1, -1.5}, {1, 2, 2, 0}, {0, 0, 0, 0}};
    const int64_t labels[] = {0, 1, 1, 3};
    struct metric metric;
    metric_init(&metric, &WHOLE);
    adds(&metric, (struct metric_batch){.logits = logits,
                                        .dtype = DT_F64,
                                        .labels = labels,
                                        .n = 4,
                                        .plane = 1,
                                        .n_samples = 4});
    assert_close(value_of(&metric), 0.5, 0.0);
    assert_int_equal(metric_n_counted(&metric), 4);
    assert_string_equal(metric_name(metric.kind), "top1");
    metric_release(&metric);
}

/* Two sequences of three predictions, of which the second uses one. Word 0 is no word: an answer of 0 is wrong, never right. */
TEST(unused_predictions_do_not_count)
{
    const float logits[6][CLASSES] = {{0, 3, 0, 0}, {0, 0, 3, 0}, {3, 0, 0, 0},
                                      {0, 0, 0, 3}, {3, 0, 0, 0}, {3, 0, 0, 0}};
    const int64_t words[] = {1, 3, 2, 3, TOKEN_UNUSED, TOKEN_UNUSED};
    struct metric metric;
    metric_init(&metric, &WORDS);
    adds(&metric, (struct metric_batch){.logits = logits,
                                        .dtype = DT_F32,
                                        .labels = words,
                                        .n = 6,
                                        .plane = 1,
                                        .n_samples = 2});
    assert_close(value_of(&metric), 2.0 / 4.0, 0.0);
    assert_int_equal(metric_n_counted(&metric), 4);
    assert_int_equal(metric_n_samples(&metric), 2);
    assert_string_equal(metric_name(metric.kind), "masked_lm_accuracy");
    metric_release(&metric);
}

TEST(what_is_not_finite_is_no_answer)
{
    float logits[2 * CLASSES * 3];
    struct metric metric;
    fill_logits(logits);
    logits[CLASSES * 3 + 1] = NAN;     /* at the ignored pixel: not read */
    logits[2 * 3 + 0] = INFINITY;      /* of class 2 at the first pixel, whose answer was right */
    logits[CLASSES * 3 + 3 + 2] = NAN; /* of class 1 at the last one, whose answer was wrong */
    metric_init(&metric, &SEGMENTS);
    adds(&metric, segments_of(logits, 0, 2));
    /* Class 0: 0 of 2; class 1: 2 of 3; class 2: 0 of 1. */
    assert_close(value_of(&metric), 2.0 / 9.0, 1e-15);
    assert_int_equal(metric_n_counted(&metric), 5);
    assert_int_equal(metric_n_unanswered(&metric), 2);
    metric_release(&metric);
    const double rows[2][CLASSES] = {{9, (double)NAN, 0, 0}, {9, 0, 0, 0}};
    const int64_t labels[] = {0, 0};
    metric_init(&metric, &WHOLE);
    adds(
        &metric,
        (struct metric_batch){
            .logits = rows, .dtype = DT_F64, .labels = labels, .n = 2, .plane = 1, .n_samples = 2});
    assert_close(value_of(&metric), 0.5, 0.0);
    assert_int_equal(metric_n_unanswered(&metric), 1);
    metric_release(&metric);
}

TEST(what_is_no_label_is_an_error)
{
    float logits[2 * CLASSES * 3];
    struct metric metric;
    double value = 2.0;
    fill_logits(logits);
    metric_init(&metric, &SEGMENTS);
    FAILS_WITH(metric_value(&metric, &value, ERR), ERR_ANY, "no label that counts");
    assert_true(value > 1.5);
    const int64_t wrong[] = {0, 254, 1};
    struct metric_batch batch = segments_of(logits, 0, 1);
    batch.labels = wrong;
    FAILS(metric_add(&metric, &batch, ERR), ERR_ANY);
    SAYS("label 1 of an evaluation's batch is 254, expected 0 to 3");
    metric_release(&metric);
}
