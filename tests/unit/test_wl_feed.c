/* SPDX-License-Identifier: Apache-2.0 */
/* Training on packed datasets: what run_start and step print of the data, resuming, and what is refused. */
#include "unit.h"

#include <math.h>

#include "train/feed.h"
#include "wl_pack.h"
#include "wl_run.h"

static const struct hand_pack FEW_SEGMENTS = {
    .kind = SHARD_SEGMENTS, .n_samples = 5, .per_shard = 3, .n_classes = 19, .is_synthetic = true};

static const char *on_data(const char *folder, const char *line)
{
    return arena_printf(ARENA, "--data %s --threads=1 %s", folder, line);
}

static const char *runs(const char *folder, const char *line)
{
    return must_run(on_data(folder, line));
}

static struct str loss_of(const char *text, int step)
{
    struct str line = str_of(nth_line(text, step));
    int64_t at = str_find(line, STR_LIT("\"loss\":"));
    assert_true(at >= 0);
    struct str rest = str_sub(line, (size_t)at + 7, line.len);
    struct str loss;
    assert_true(str_next(&rest, ',', &loss));
    return loss;
}

TEST_IN_SCRATCH(a_run_says_what_it_reads)
{
    hand_write(&CLASSES, *state);
    struct sha256 sha;
    char hex[SHA256_HEX_LEN + 1];
    struct str json = scratch_read(fs_join(&scratch_arena, *state, PACK_NAME));
    sha256_init(&sha);
    sha256_add(&sha, json.ptr, json.len);
    sha256_hex(&sha, hex);
    const char *text =
        runs(*state, "--model resnet50 --backend plain --image 16 --batch 20 --steps 3 "
                     "--warmup 1 --seed 3 --start-step 2 --workers 3 --mean 0.5,0.25,0");
    const char *start = nth_line(text, 0);
    holds(start, "\"data\":\"by-hand\",");
    holds(start, arena_printf(&scratch_arena,
                              "\"synthetic\":false,\"split\":\"train\",\"n_samples\":50,"
                              "\"pack_sha256\":\"%s\",\"data_seed\":3,\"workers\":3,\"start_step\":"
                              "2,\"steps_per_epoch\":2,\"epoch\":1,\"augment\":\"resized-crop\","
                              "\"augment_on\":\"host\","
                              "\"mean\":[0.5,0.25,0],\"std\":[0.229,0.224,0.225],\"recipe\":",
                              hex));
    /* Ticks: fed_step, feed_next twice, fed_step, one_step twice: 3 and 1 quarters of a second. */
    holds(nth_line(text, 1), "\"step_time_ns\":1000000000,\"samples_per_s\":20,");
    holds(nth_line(text, 1), ",\"data_wait_ns\":250000000,\"epoch\":1,\"position\":0}");
    holds(nth_line(text, 2), ",\"data_wait_ns\":250000000,\"epoch\":1,\"position\":20}");
    holds(nth_line(text, 3), ",\"data_wait_ns\":250000000,\"epoch\":2,\"position\":0}");
    holds(nth_line(text, 4), "\"elapsed_ns\":2000000000,\"samples_per_s\":20,");
    holds(nth_line(text, 4), ",\"data_wait_ns\":500000000,\"first_batch_ns\":");
    holds(nth_line(text, 4), ",\"next_step\":5}");
}

/* With a learning rate of 0 a step's loss depends on its data alone. */
TEST_IN_SCRATCH(a_resumed_run_sees_the_same_batches)
{
    static const char *const line =
        "--model resnet50 --backend plain --image 16 --batch 4 --lr 0 --weight-decay 0 --steps";
    hand_write(&CLASSES, *state);
    const char *whole = runs(*state, arena_printf(&scratch_arena, "%s 4", line));
    const char *resumed =
        runs(*state, arena_printf(&scratch_arena, "%s 2 --start-step 2 --workers 1", line));
    const char *other = runs(*state, arena_printf(&scratch_arena, "%s 2 --data-seed 1", line));
    for (int i = 1; i <= 2; i++) {
        assert_true(str_eq(loss_of(whole, i + 2), loss_of(resumed, i)));
        assert_false(str_eq(loss_of(whole, i), loss_of(resumed, i)));
        assert_false(str_eq(loss_of(whole, i), loss_of(other, i)));
    }
    const char *wide = runs(*state, arena_printf(&scratch_arena, "%s 1 --dtype f64", line));
    double f32 = 0;
    double f64 = 0;
    PASSES(str_to_f64(loss_of(whole, 1), &f32, ERR));
    PASSES(str_to_f64(loss_of(wide, 1), &f64, ERR));
    assert_true(fabs(f32 - f64) < 1e-3 * f64);
}

TEST_IN_SCRATCH(segments_train_a_segmentation_model)
{
    hand_write(&FEW_SEGMENTS, *state);
    const char *text = runs(*state, "--model hrnet_w18 --image 64x32 --batch 2 --steps 1");
    holds(nth_line(text, 0), "\"data\":\"by-hand.synthetic\",");
    holds(nth_line(text, 0), "\"synthetic\":true,\"split\":\"train\",\"n_samples\":5,");
    holds(nth_line(text, 0), "\"augment\":\"scale-crop\",\"augment_on\":\"host\",\"mean\":[0.5,0.5,"
                             "0.5],\"std\":[0.5,0.5,0.5],\"recipe\":");
    holds(nth_line(text, 2), "\"event\":\"run_stop\"");
    text = runs(*state, "--model deeplabv3p_mmseg --image 32x64 --batch 2 --steps 1");
    holds(nth_line(text, 0),
          "\"augment\":\"scale-crop\",\"augment_on\":\"host\",\"mean\":[0.485,0.456,0.406],");
}

/* Tokens are not augmented, and no line says so. */
TEST_IN_SCRATCH(tokens_train_a_language_model)
{
    hand_write(&TOKENS, *state);
    const char *text =
        runs(*state, "--model bert_tiny --sequence 8 --predictions 3 --batch 4 --steps 3");
    holds(nth_line(text, 0), "\"batch\":4,\"sequence\":8,\"predictions\":3,\"steps\":3,");
    holds(nth_line(text, 0), "\"start_step\":0,\"steps_per_epoch\":2,\"epoch\":0,\"recipe\":");
    holds(nth_line(text, 3), "\"epoch\":1,\"position\":0}");
    const char *wide = runs(
        *state, "--model bert_tiny --sequence 8 --predictions 3 --batch 4 --steps 1 --dtype f64");
    double f32 = 0;
    double f64 = 0;
    PASSES(str_to_f64(loss_of(text, 1), &f32, ERR));
    PASSES(str_to_f64(loss_of(wide, 1), &f64, ERR));
    assert_true(fabs(f32 - f64) < 1e-5 * f64);
}

TEST_IN_SCRATCH(what_does_not_go_with_the_model_is_refused)
{
    struct hand_pack pack = CLASSES;
    hand_write(&pack, *state);
    refused(on_data(*state, "--model hrnet_w18 --image 64x32 --batch 2"), ERR_USAGE,
            "kind classes, but hrnet_w18 trains on segments");
    refused(on_data(*state, "--model resnet50 --image 32 --batch 51"), ERR_USAGE,
            "50 samples are less than one batch of 51");
    pack.n_classes = 1001;
    pack.n_samples = 1002;
    hand_write(&pack, *state);
    refused(on_data(*state, "--model resnet50 --image 32 --batch 2"), ERR_USAGE,
            "1001 classes, but resnet50 has 1000");
    hand_write(&FEW_SEGMENTS, *state);
    refused(on_data(*state, "--model resnet50 --image 32 --batch 2"), ERR_USAGE,
            "kind segments, but resnet50 trains on classes");
    pack = FEW_SEGMENTS;
    pack.n_classes = 20;
    hand_write(&pack, *state);
    refused(on_data(*state, "--model hrnet_w18 --image 64x32 --batch 2"), ERR_USAGE,
            "20 classes, but hrnet_w18 has 19");
    refused(on_data(*state, "--model bert_tiny --sequence 8 --batch 2"), ERR_USAGE,
            "kind segments, but bert_tiny trains on tokens");
    hand_write(&TOKENS, *state);
    refused(on_data(*state, "--model resnet50 --image 32 --batch 2"), ERR_USAGE, "kind tokens");
    refused(on_data(*state, "--model bert_tiny --batch 2"), ERR_USAGE,
            "sequences of 8 with 3 predictions, but --sequence 128 --predictions 20");
    unlink(fs_join(&scratch_arena, *state, PACK_NAME));
    refused(on_data(*state, "--model resnet50 --image 32 --batch 2"), ERR_INTEGRITY, "not whole");
}

TEST_IN_SCRATCH(a_bad_sample_ends_the_run_in_a_fatal_line)
{
    hand_write(&CLASSES, *state);
    const char *path = fs_join(&scratch_arena, *state, "00002.shard");
    scratch_spoil(path);
    const char *text = run_of(
        on_data(*state, "--model resnet50 --backend plain --image 16 --batch 10 --steps 5"), NULL);
    assert_int_equal(ERR->code, ERR_INTEGRITY);
    SAYS("00002.shard: sample 15 (49 of the set): CRC-32C is");
    const char *last = strstr(text, "{\"event\":\"fatal\"");
    assert_non_null(last);
    holds(last, "00002.shard: sample 15 (49 of the set): CRC-32C is");
    assert_string_equal(strchr(last, '\n'), "\n"); /* the last line */
    assert_null(strstr(text, "run_stop"));
}

/* A shard may hold any token; the network has rows for 30,522, and sample 31 begins with 31,000. */
TEST_IN_SCRATCH(a_token_without_a_row_ends_the_run)
{
    struct hand_pack pack = TOKENS;
    pack.n_samples = 32;
    pack.per_shard = 16;
    hand_write(&pack, *state);
    const char *text = run_of(
        on_data(*state, "--model bert_tiny --sequence 8 --predictions 3 --batch 32 --steps 1"),
        NULL);
    assert_int_equal(ERR->code, ERR_INTEGRITY);
    SAYS("sample 31: input_ids: element 0 is 31000, expected 0 to 30521");
    assert_non_null(strstr(text, "{\"event\":\"fatal\""));
    assert_null(strstr(text, "run_stop"));
}

TEST_IN_SCRATCH(memory_is_what_machine_and_groups_leave)
{
    const char *proc = fs_join(&scratch_arena, *state, "proc");
    const char *groups = fs_join(&scratch_arena, *state, "cgroup");
    assert_true(memory_available_by(proc, groups) == INT64_MAX);
    scratch_put(proc, "meminfo",
                STR_LIT("MemTotal:       9000 kB\nMemFree:  10 kB\nMemAvailable:   8000 kB\n"));
    assert_int_equal(memory_available_by(proc, groups), 8000 * 1024);
    scratch_put(proc, "self/cgroup", STR_LIT("12:cpu:/x\n0::/slice/job\n"));
    scratch_put(groups, "slice/memory.max", STR_LIT("max\n"));
    scratch_put(groups, "slice/job/memory.max", STR_LIT("4000000\n"));
    assert_int_equal(memory_available_by(proc, groups), 4000000);
    scratch_put(groups, "slice/job/memory.current", STR_LIT("1500000\n"));
    scratch_put(groups, "slice/job/memory.stat",
                STR_LIT("anon 1000000\ninactive_file 500000\nactive_file 1\n"));
    assert_int_equal(memory_available_by(proc, groups), 3000000);
    scratch_put(groups, "slice/memory.max", STR_LIT("2000000\n")); /* above, and full but for 100 */
    scratch_put(groups, "slice/memory.current", STR_LIT("1999900\n"));
    assert_int_equal(memory_available_by(proc, groups), 100);
    scratch_put(groups, "slice/memory.current", STR_LIT("2000001\n"));
    assert_int_equal(memory_available_by(proc, groups), 0);
    scratch_put(proc, "self/cgroup",
                STR_LIT("0::/\n")); /* a namespace of its own: the root is its group */
    scratch_put(groups, "memory.max", STR_LIT("77\n"));
    assert_int_equal(memory_available_by(proc, groups), 77);
    scratch_put(proc, "self/cgroup",
                STR_LIT("5:devices:/\n4:memory:/job\n0::/\n")); /* version 1 next to it */
    scratch_put(groups, "memory/memory.limit_in_bytes", STR_LIT("9223372036854771712\n"));
    scratch_put(groups, "memory/memory.usage_in_bytes", STR_LIT("5\n"));
    scratch_put(groups, "memory/job/memory.limit_in_bytes", STR_LIT("60\n"));
    assert_int_equal(memory_available_by(proc, groups), 60);
    scratch_put(groups, "memory/job/memory.usage_in_bytes", STR_LIT("50\n"));
    scratch_put(groups, "memory/job/memory.stat",
                STR_LIT("inactive_file 1\ntotal_inactive_file 20\n"));
    assert_int_equal(memory_available_by(proc, groups), 30);
    assert_true(memory_available() > 0);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
