/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates at points computed by hand, and the effect of recipes and options on them. */
#include "unit.h"

#include <math.h>

#include "train/options.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= 1e-12 * fmax(1e-9, fabs(b)))

TEST(falls_as_it_says)
{
    struct schedule s = {.kind = SCHEDULE_CONSTANT, .lr = 0.5};
    NEAR(schedule_lr(&s, 1), 0.5);
    NEAR(schedule_lr(&s, 1000000), 0.5);
    s = (struct schedule){.kind = SCHEDULE_POLY, .lr = 0.01, .end = 1e-4, .power = 0.9, .steps = 8};
    NEAR(schedule_lr(&s, 1), 0.01);
    NEAR(schedule_lr(&s, 5), 1e-4 + 0.0099 * 0.5358867312681466); /* 0.5^0.9 */
    NEAR(schedule_lr(&s, 9), 1e-4);
    NEAR(schedule_lr(&s, 90), 1e-4);
    s = (struct schedule){.kind = SCHEDULE_LINEAR, .lr = 1.0, .steps = 4};
    NEAR(schedule_lr(&s, 2), 0.75);
    NEAR(schedule_lr(&s, 5), 0.0);
    s = (struct schedule){.kind = SCHEDULE_COSINE, .lr = 1.0, .end = 0.5, .steps = 6};
    NEAR(schedule_lr(&s, 1), 1.0);
    NEAR(schedule_lr(&s, 3), 0.875); /* a third of the way: cos(60 degrees) */
    NEAR(schedule_lr(&s, 4), 0.75);
    NEAR(schedule_lr(&s, 7), 0.5);
    s = (struct schedule){
        .kind = SCHEDULE_PIECEWISE, .lr = 8.0, .factor = 0.5, .drops = {3, 5}, .n_drops = 2};
    NEAR(schedule_lr(&s, 3), 8.0);
    NEAR(schedule_lr(&s, 4), 4.0); /* after three steps */
    NEAR(schedule_lr(&s, 5), 4.0);
    NEAR(schedule_lr(&s, 6), 2.0);
}

TEST(a_warm_up_stands_in_front)
{
    struct schedule s = {
        .kind = SCHEDULE_LINEAR, .lr = 1.0, .steps = 12, .warmup_steps = 4, .warmup_start = 0.2};
    NEAR(schedule_lr(&s, 1), 0.4);
    NEAR(schedule_lr(&s, 4), 1.0);
    NEAR(schedule_lr(&s, 5), 1.0);
    NEAR(schedule_lr(&s, 9), 0.5); /* four of eight */
    NEAR(schedule_lr(&s, 13), 0.0);
    s.covers_warmup = true;
    NEAR(schedule_lr(&s, 4), 1.0);
    NEAR(schedule_lr(&s, 5), 8.0 / 12.0);
    NEAR(schedule_lr(&s, 13), 0.0);
    s.warmup_steps = 100; /* longer than the schedule: nothing of it remains */
    s.covers_warmup = false;
    NEAR(schedule_lr(&s, 100), 1.0);
    NEAR(schedule_lr(&s, 101), 0.0);
}

static struct train_opts opts_of(const char *line)
{
    char *words[64];
    char text[512];
    int n = 0;
    struct train_opts opts = {0};
    struct err err = {0};
    static char kept[32][512]; /* options point into the text they were parsed from */
    static int n_kept;
    char *own = kept[n_kept++ % 32];
    snprintf(text, sizeof(text), "%s", line);
    memcpy(own, text, sizeof(text));
    char *rest = own;
    for (char *word = strsep(&rest, " "); word && n < 64; word = strsep(&rest, " ")) {
        words[n++] = word;
    }
    if (train_options(n, words, &opts, &err) < 0) {
        fail_msg("%s: %s", line, err.msg);
    }
    return opts;
}

TEST(a_recipe_is_its_reports)
{
    struct train_opts o = opts_of("--model resnet50 --batch 128");
    assert_string_equal(o.recipe->name, "paddle");
    assert_int_equal(o.rule.method, OPT_SGD);
    assert_int_equal(o.decay, NET_DECAY_ALL);
    NEAR(o.rule.weight_decay, 1e-4);
    NEAR(o.schedule.lr, 0.1);
    assert_int_equal(o.schedule.n_drops, 3);
    assert_int_equal(o.schedule.drops[0], 30 * 1281167 / 128);
    assert_int_equal(o.rule.scaling, OPT_SCALE_NONE); /* fp32 */
    o = opts_of("--model resnet50 --recipe dlperf --batch 64 --accumulate 4");
    NEAR(o.schedule.lr, 0.256);
    NEAR(o.rule.momentum, 0.875);
    NEAR(o.label_smoothing, 0.1);
    assert_int_equal(o.schedule.warmup_steps, 1281167 / 256);
    o = opts_of("--model deeplabv3p_mmseg --steps 400");
    NEAR(o.schedule.end, 1e-4);
    assert_int_equal(o.schedule.steps, 400);
    o = opts_of("--model bert_base");
    assert_int_equal(o.rule.method, OPT_ADAMW);
    assert_int_equal(o.decay, NET_DECAY_MATRICES);
    assert_int_equal(o.schedule.warmup_steps, 10000);
    for (int i = 0; model_at(i); i++) {
        assert_non_null(recipe_of(model_at(i)->name, 0)); /* every model has one */
    }
    assert_null(recipe_of("resnet50", 2));
}

TEST(options_replace_a_recipes_numbers)
{
    struct train_opts o =
        opts_of("--model resnet50 --optimizer adamw --lr 0.003 --beta2 0.98 --decay matrices "
                "--schedule cosine --lr-end 1e-5 --warmup-lr-steps 7 --warmup-lr-start 1e-6");
    assert_int_equal(o.rule.method, OPT_ADAMW);
    NEAR(o.rule.beta1, 0.9);
    NEAR(o.rule.beta2, 0.98);
    NEAR(o.rule.eps, 1e-8);
    NEAR(o.rule.weight_decay, 1e-4);
    assert_int_equal(o.decay, NET_DECAY_MATRICES);
    assert_int_equal(o.schedule.kind, SCHEDULE_COSINE);
    assert_int_equal(o.schedule.steps, 20);
    assert_int_equal(o.schedule.n_drops, 0);
    NEAR(o.schedule.end, 1e-5);
    assert_int_equal(o.schedule.warmup_steps, 7);
    o = opts_of("--model hrnet_w18 --schedule piecewise --lr-drops 5,9 --lr-factor 0.2");
    assert_int_equal(o.schedule.n_drops, 2);
    assert_int_equal(o.schedule.drops[1], 9);
    NEAR(schedule_lr(&o.schedule, 10), 0.01 * 0.2 * 0.2);
    o = opts_of("--model hrnet_w18 --schedule-steps 1000 --steps 5");
    assert_int_equal(o.schedule.steps, 1000);
    o.start_step = 700; /* a resumed run keeps an explicit length, */
    fit_schedule(&o);
    assert_int_equal(o.schedule.steps, 1000);
    o = opts_of("--model hrnet_w18 --steps 5");
    o.start_step = 700; /* and otherwise ends with the run */
    fit_schedule(&o);
    assert_int_equal(o.schedule.steps, 705);
}
