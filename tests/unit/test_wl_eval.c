/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations of a run on packed data: which samples, what is reported, that they change nothing, what is refused. */
#include "unit.h"

#include <math.h>

#include "train/train.h"
#include "wl_pack.h"
#include "wl_run.h"

static const struct hand_pack FEW_CLASSES = {
    .kind = SHARD_CLASSES, .n_samples = 7, .per_shard = 4, .n_classes = 7};
static const struct hand_pack FEW_SEGMENTS = {
    .kind = SHARD_SEGMENTS, .n_samples = 5, .per_shard = 3, .n_classes = 19};

/* The pack as split train in FOLDER/train, and as the other split in FOLDER/eval. */
static void write_both(const struct hand_pack *pack, const char *folder, const char *split)
{
    struct hand_pack held_out = *pack;
    held_out.split = split;
    const char *const paths[] = {fs_join(&scratch_arena, folder, "train"),
                                 fs_join(&scratch_arena, folder, "eval")};
    PASSES(fs_mkdir_p(paths[0], ERR));
    PASSES(fs_mkdir_p(paths[1], ERR));
    hand_write(pack, paths[0]);
    hand_write(&held_out, paths[1]);
}

static const char *with_eval(const char *folder, const char *line)
{
    return arena_printf(ARENA, "--data %s/train --threads=1 --eval-data %s/eval %s", folder, folder,
                        line);
}

/* The n-th line, from 0, of those of an event. */
static const char *nth_of(const char *text, const char *event, int n)
{
    const char *start = arena_printf(ARENA, "{\"event\":\"%s\",", event);
    for (int line = 0; *nth_line(text, line); line++) {
        if (strncmp(nth_line(text, line), start, strlen(start)) == 0 && n-- == 0) {
            return nth_line(text, line);
        }
    }
    fail_msg("no such %s", event);
    return "";
}

TEST_IN_SCRATCH(an_evaluation_reads_each_sample_once)
{
    write_both(&FEW_CLASSES, *state, "val");
    const char *text = must_run(
        with_eval(*state, "--model resnet50 --backend plain --image 16 --batch 4 --lr 1e-3 "
                          "--steps 3 --eval-every 2 --eval-image 17x19"));
    const char *start = nth_of(text, "run_start", 0);
    holds(start, "\"eval_metric\":\"top1\",\"eval_every\":2,\"eval_data\":\"by-hand\",");
    holds(start, "\"eval_split\":\"val\",\"eval_pack_sha256\":\"");
    holds(start, "\"eval_size\":{\"image\":[17,19]}}");
    holds(nth_of(text, "eval", 0), "\"step\":2,\"rank\":0,\"metric\":\"top1\",\"value\":");
    holds(nth_of(text, "eval", 0),
          ",\"samples\":7,\"counted\":7,\"unanswered\":0,\"eval_time_ns\":");
    holds(nth_of(text, "eval", 1), "\"step\":3,");
    /* Ticks between the first step's start and the first evaluation's end: 6 a step; for an evaluation its start and end, and two
       for each of two batches, of whose seven samples the second has three. */
    holds(nth_of(text, "eval", 0), "\"eval_time_ns\":1250000000,\"elapsed_ns\":4500000000}");
    for (int i = 0; i < 3; i++) {
        holds(nth_of(text, "step", i), "\"step_time_ns\":1000000000,"); /* no evaluation in it */
    }
    holds(nth_of(text, "run_stop", 0), "\"steps\":3,\"warmup_steps\":0,\"rank\":0,"
                                       "\"elapsed_ns\":3000000000,");
    assert_null(strstr(text, "time_to_train")); /* without a target */
}

TEST_IN_SCRATCH(what_does_not_count_is_left_out)
{
    write_both(&TOKENS, *state, "val");
    const char *text =
        must_run(with_eval(*state, "--model bert_tiny --sequence 8 --predictions 3 --batch 4 "
                                   "--steps 1 --eval-every 1"));
    holds(nth_of(text, "run_start", 0), "\"eval_metric\":\"masked_lm_accuracy\",");
    holds(nth_of(text, "run_start", 0), "\"eval_size\":{\"sequence\":8,\"predictions\":3}}");
    holds(nth_of(text, "eval", 0), ",\"samples\":10,\"counted\":30,");
    write_both(&FEW_SEGMENTS, *state, "val");
    text = must_run(with_eval(*state, "--model hrnet_w18 --image 64x32 --batch 2 --steps 1 "
                                      "--eval-every 1"));
    int64_t n_labelled = 0;
    for (uint32_t n = 0; n < FEW_SEGMENTS.n_samples; n++) { /* each is smaller than the crop */
        for (uint32_t i = 0; i < (uint32_t)hand_height(n) * hand_width(n); i++) {
            n_labelled += hand_segment(&FEW_SEGMENTS, n, i) != 255;
        }
    }
    holds(nth_of(text, "run_start", 0), "\"eval_metric\":\"miou\",");
    holds(nth_of(text, "eval", 0),
          arena_printf(&scratch_arena, ",\"samples\":5,\"counted\":%" PRId64 ",", n_labelled));
}

/* Running statistics, dropout's steps, the order of the data: a run continues as if it had not been evaluated. */
TEST_IN_SCRATCH(an_evaluation_changes_nothing)
{
    static const char *const line =
        "--model deeplabv3p --backend plain --image 32 --batch 2 --steps 3 --lr 1e-3";
    write_both(&FEW_SEGMENTS, *state, "val");
    const char *bare =
        must_run(arena_printf(ARENA, "--data %s/train --threads=1 %s", (const char *)*state, line));
    const char *text =
        must_run(with_eval(*state, arena_printf(&scratch_arena, "%s --eval-every 1", line)));
    for (int i = 0; i < 3; i++) {
        assert_true(strcmp(nth_of(bare, "step", i), nth_of(text, "step", i)) == 0);
    }
}

TEST_IN_SCRATCH(a_target_ends_the_run)
{
    write_both(&FEW_SEGMENTS, *state, "val");
    const char *line =
        with_eval(*state, "--model hrnet_w18 --backend plain --image 32 --batch 2 --dtype f64 "
                          "--steps 8 --schedule-steps 4 --eval-every 4");
    const char *text = must_run(arena_printf(ARENA, "%s --until 1e-4", line));
    const char *end = nth_of(text, "time_to_train", 0);
    holds(end, "\"step\":4,\"rank\":0,\"metric\":\"miou\",\"target\":0.0001,\"reached\":true,");
    holds(end, "\"samples\":8,\"elapsed_ns\":");
    holds(nth_of(text, "run_stop", 0), "\"steps\":4,");
    holds(nth_of(text, "run_stop", 0), "\"next_step\":4}");
    text = run_of(arena_printf(ARENA, "%s --until 1", line), NULL);
    assert_int_equal(ERR->code, ERR_WORKLOAD);
    SAYS("after the last of 8 steps, the target was not reached");
    holds(nth_of(text, "time_to_train", 0), "\"step\":8,");
    holds(nth_of(text, "time_to_train", 0), "\"reached\":false,");
    holds(nth_of(text, "run_stop", 0), "\"steps\":8,");
    assert_null(strstr(text, "\"event\":\"fatal\""));
}

TEST_IN_SCRATCH(what_is_not_held_out_is_refused)
{
    static const char *const line = "--model resnet50 --image 16 --batch 4 --eval-every 1";
    write_both(&FEW_CLASSES, *state, "train");
    refused(with_eval(*state, line), ERR_USAGE,
            "split train is what --data trains on, expected a held-out one");
    struct hand_pack other = FEW_CLASSES;
    other.is_synthetic = true;
    other.split = "val";
    hand_write(&other, fs_join(&scratch_arena, *state, "eval"));
    refused(with_eval(*state, line), ERR_USAGE, "of by-hand.synthetic, but --data is of by-hand");
    other = FEW_SEGMENTS;
    other.split = "val";
    hand_write(&other, fs_join(&scratch_arena, *state, "eval"));
    refused(with_eval(*state, line), ERR_USAGE, "kind segments, but resnet50 trains on classes");
}

/* The run ends at a damaged sample of an evaluation, and counts none. */
TEST_IN_SCRATCH(a_bad_sample_ends_the_run)
{
    write_both(&FEW_CLASSES, *state, "val");
    const char *path =
        fs_join(&scratch_arena, fs_join(&scratch_arena, *state, "eval"), "00001.shard");
    scratch_spoil(path);
    const char *text = run_of(
        with_eval(*state, "--model resnet50 --image 16 --batch 4 --steps 2 --eval-every 1"), NULL);
    assert_int_equal(ERR->code, ERR_INTEGRITY);
    holds(nth_of(text, "fatal", 0), "sample 2 (6 of the set): CRC-32C is");
    assert_null(strstr(text, "\"event\":\"eval\""));
    assert_null(strstr(text, "run_stop"));
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
