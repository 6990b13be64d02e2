/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-train from the inside: what it accepts, what it prints, how it stops. */
#include "wl_run.h"

#include <math.h>

#include "base/str.h"
#include "core/interrupt.h"
#include "core/mlog.h"
#include "train/device.h"

static const struct {
    const char *line, *message;
} REFUSED[] = {
    {"", "--model is needed"},
    {"--model alexnet", "unknown model; expected one of resnet50"},
    {"--model resnet50 --tf32", "--device cuda"},
    {"--model resnet50 --device tpu", "unknown device"},
    {"--model resnet50 --precision amp", "fp32 only"},
    {"--model resnet50 --precision fp16", "unknown precision"},
    {"--model resnet50 --precision bf17", "unknown precision"},
    {"--model resnet50 --precision fp32 --dtype f64", "does not go with"},
    {"--model resnet50 --dtype f16", "expected f32 or f64"},
    {"--model resnet50 --backend blas", "expected plain or onednn"},
    {"--model resnet50 --backend onednn --dtype f64", "oneDNN"},
    {"--model resnet50 --batch 0", "--batch"},
    {"--model resnet50 --batch -1", "--batch"},
    {"--model resnet50 --batch 1e3", "--batch"},
    {"--model resnet50 --batch 99999999999999999999", "--batch"},
    {"--model resnet50 --image 0", "--image 0"},
    {"--model resnet50 --image 64x", "--image 64x"},
    {"--model resnet50 --image x64", "--image x64"},
    {"--model resnet50 --image 64x64x64", "--image 64x64x64"},
    {"--model resnet50 --steps 0", "--steps"},
    {"--model resnet50 --steps 5 --warmup 5", "leaves none"},
    {"--model resnet50 --lr nan", "--lr"},
    {"--model resnet50 --lr -1", "--lr"},
    {"--model resnet50 --momentum 1", "--momentum"},
    {"--model resnet50 --recipe nvidia", "it has paddle, dlperf"},
    {"--model resnet50 --optimizer adam", "expected sgd or adamw"},
    {"--model resnet50 --beta1 0.9", "--beta1 means nothing to sgd"},
    {"--model resnet50 --optimizer adamw --momentum 0.9", "--momentum means nothing to adamw"},
    {"--model resnet50 --optimizer adamw --beta2 1", "--beta2 1: expected 0 to below 1"},
    {"--model resnet50 --weight-decay -1", "--weight-decay -1: expected 0 or more"},
    {"--model resnet50 --decay some", "expected all or matrices"},
    {"--model resnet50 --schedule step", "expected constant, poly"},
    {"--model hrnet_w18 --schedule piecewise", "needs --lr-drops"},
    {"--model hrnet_w18 --lr-drops 5", "means nothing to schedule poly"},
    {"--model resnet50 --lr-drops 5,5", "rising numbers of steps"},
    {"--model resnet50 --lr-drops 5.5", "rising numbers of steps"},
    {"--model resnet50 --lr-drops 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "16 at most"},
    {"--model resnet50 --lr-end 0.1", "--lr-end means nothing to schedule piecewise"},
    {"--model resnet50 --schedule-steps 5", "mean nothing to schedule piecewise"},
    {"--model resnet50 --schedule constant --lr-power 2", "means nothing to schedule constant"},
    {"--model resnet50 --accumulate 0", "--accumulate"},
    {"--model resnet50 --check a --out b --steps 3", "needs --optimizer and --lr"},
    {"--model resnet50 --check a --out b --steps 3 --optimizer sgd", "needs --optimizer and"},
    {"--model resnet50 --device cuda --precision amp --check a --out b --steps 3 --optimizer "
     "sgd --lr 1",
     "does not go with --steps"},
    {"--model resnet50 --check a --out b --accumulate 2", "does not go with --check"},
    {"--model resnet50 --save-every 5", "needs --save"},
    {"--model resnet50 --describe --save a", "training only"},
    {"--model resnet50 --check a --out b --load c", "training only"},
    {"--model resnet50 --data d --start-step 5 --load c", "does not go with it"},
    {"--model resnet50 --loss-scale 128", "with --precision amp only"},
    {"--model resnet50 --warmup-lr-steps -1", "--warmup-lr-steps"},
    {"--model resnet50 --label-smoothing 1", "--label-smoothing"},
    {"--model resnet50 --workers 2", "FOLDER only"},
    {"--model resnet50 --data synthetic --start-step 0", "FOLDER only"},
    {"--model resnet50 --data-only", "FOLDER only"},
    {"--model resnet50 --data d --data-only --describe", "exclude each other"},
    {"--model resnet50 --data d --workers 0", "--workers"},
    {"--model resnet50 --data d --mean 1,2", "three numbers"},
    {"--model resnet50 --data d --mean 1,0,1,1", "three numbers"},
    {"--model resnet50 --data d --mean 1,x,1", "--mean 1,x,1"},
    {"--model resnet50 --data d --mean 1,2,1", "expected 0 to 1"},
    {"--model resnet50 --data d --std 0,1,1", "--std"},
    {"--model resnet50 --data d --data-seed -1", "--data-seed"},
    {"--model resnet50 --threads 100000", "--threads"},
    {"--model resnet50 --seed -1", "--seed"},
    {"--model resnet50 --check a", "need each other"},
    {"--model resnet50 --out a", "need each other"},
    {"--model resnet50 --check a --out b --describe", "exclude each other"},
    {"--model resnet50 --check a --out b --dtype f64", "do not go with it"},
    {"--model resnet50 --check a --out b --batch 3", "do not go with it"},
    {"--model resnet50 --bogus", "--bogus"},
    {"--model resnet50 --eval-every 0", "--eval-every"},
    {"--model resnet50 --until 0.5", "the last three with the first"},
    {"--model resnet50 --eval-image 64 --describe", "go with training"},
    {"--model resnet50 --eval-every 5 --eval-data d", "--data FOLDER only"},
    {"--model resnet50 --data d --eval-every 5", "needs --eval-data"},
    {"--model resnet50 --eval-every 5 --until 0", "expected above 0, at most 1"},
    {"--model resnet50 --eval-every 5 --until 1.5", "expected above 0, at most 1"},
    {"--model resnet50 --eval-every 5 --until nan", "--until"},
    {"--model resnet50 --eval-every 5 --until 1 --warmup 5", "within its --warmup of 5"},
    {"--model resnet50 --eval-every 5 --eval-image 0", "--eval-image 0"},
    {"--model bert_nano --eval-every 5 --eval-image 64", "reads tokens and no images"},
    {"--model resnet50 --eval-every 5 --turn 2", "--turn does not go with"},
    {"--model bert_nano --data synthetic-learnable", "is of images"},
    {"--model resnet50 --inference", "goes with --check without --steps"},
    {"--model resnet50 --check a --out b --inference --steps 1 --optimizer sgd --lr 1",
     "goes with --check without --steps"},
    {"--model resnet50 more", "unexpected argument more"},
    {"--model", "--model"},
};

TEST(what_cannot_be_done_is_refused)
{
    for (EACH(row, REFUSED)) {
        struct train_opts opts;
        FAILS_WITH(options_of(row->line, &opts, ERR), ERR_USAGE, row->message);
    }
}

TEST(a_device_is_there_or_refused)
{
    static const char *const lines[][2] = {
        {"--model resnet50 --device cuda --dtype f64", "fp32 or amp"},
        {"--model resnet50 --device cuda --precision fp64", "fp32 or amp"},
        {"--model resnet50 --device cuda --backend plain", "--device cpu only"},
        {"--model resnet50 --device cuda --precision amp --tf32", "--precision fp32"},
        {"--model resnet50 --device cuda --eval-every 5",
         "--eval-every: --device cuda has no forward pass by running statistics yet"},
        {"--model resnet50 --device cuda --check a --out b --inference", "--inference: --device"},
    };
    struct train_opts opts;
    bool is_built = device_is_built("cuda");
    for (EACH(row, lines)) {
        FAILS_WITH(options_of((*row)[0], &opts, ERR), ERR_USAGE,
                   is_built ? (*row)[1] : "no CUDA backend");
    }
    struct err err = {0};
    int status = options_of("--model resnet50 --device cuda --precision amp", &opts, &err);
    assert_int_equal(status, is_built ? 0 : -1);
    if (is_built) {
        assert_int_equal(opts.dtype, DT_F16);
        assert_string_equal(opts.precision, "amp");
        struct graph_types types = device_types(&opts);
        assert_true(types.dtype == DT_F16 && types.norm == DT_F32 && types.stat == DT_F32);
    }
    assert_true(device_is_known("cpu") && device_is_built("cpu") && !device_is_known("tpu"));
}

TEST(choices_are_understood)
{
    struct train_opts opts;
    PASSES(options_of("--model resnet50 --image 64x48 --batch 4 --dtype f64 --steps 7 "
                      "--warmup 2 --label-smoothing 0.1 --data synthetic-fresh",
                      &opts, ERR));
    assert_int_equal(opts.size.height, 64);
    assert_int_equal(opts.size.width, 48);
    assert_int_equal(opts.dtype, DT_F64);
    assert_string_equal(opts.precision, "fp64");
    assert_int_equal(opts.flavour, CPU_PLAIN);
    assert_true(opts.is_fresh_data);
    assert_int_equal(opts.warmup_steps, 2);
    PASSES(options_of("--model resnet50 --backend plain", &opts, ERR));
    assert_int_equal(opts.size.height, 224);
    assert_int_equal(opts.batch, 32);
    assert_int_equal(opts.flavour, CPU_PLAIN);
}

TEST(a_launchers_ranks_are_not_ignored)
{
    struct train_opts opts;
    setenv("WORLD_SIZE", "4", 1);
    FAILS_WITH(options_of("--model resnet50", &opts, ERR), ERR_ANY, "WORLD_SIZE=4 without RANK");
    PASSES(options_of("--model resnet50 --describe", &opts, ERR));
    assert_int_equal(opts.ranks.rank, 0);
    setenv("RANK", "3", 1);
    setenv("MASTER_ADDR", "10.11.0.2", 1);
    PASSES(options_of("--model resnet50 --comm-timeout 5", &opts, ERR));
    assert_int_equal(opts.ranks.rank, 3);
    assert_int_equal(opts.ranks.n_ranks, 4);
    assert_string_equal(opts.ranks.master_addr, "10.11.0.2");
    assert_int_equal(opts.ranks.master_port, 29500);
    assert_int_equal(opts.comm_timeout_s, 5);
    assert_int_equal(opts.rendezvous_s, 60);
    setenv("WORLD_SIZE", "1", 1);
    setenv("RANK", "1", 1);
    FAILS_WITH(options_of("--model resnet50", &opts, ERR), ERR_ANY, "RANK");
    setenv("RANK", "0", 1);
    PASSES(options_of("--model resnet50", &opts, ERR));
    unsetenv("WORLD_SIZE");
    unsetenv("RANK");
    unsetenv("MASTER_ADDR");
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

TEST(a_run_prints_its_lines)
{
    static const char LINE[] =
        "--model hrnet_w18 --backend plain --image 32x40 --batch 2 --steps 3 --warmup 1 --threads "
        "2 --seed 9 --lr 0.005 --schedule piecewise --lr-drops 5,70";
    const char *text = must_run(LINE);
    assert_true(begins(
        text,
        "{\"event\":\"run_start\",\"version\":\"" REPERF_VERSION
        "\",\"model\":\"hrnet_w18\",\"device\":\"cpu\",\"backend\":\"cpu-plain\",\"precision\":"
        "\"fp32\","
        "\"dtype\":\"f32\",\"batch\":2,\"image\":[32,40],\"steps\":3,\"warmup_steps\":1,\"ranks\":"
        "1,\"rank\":0,\"global_batch\":2,\"comm\":\"self\",\"sync_bn\":false,\"gradient_bytes\":0,"
        "\"threads\":2,\"seed\":9,\"parameters\":9640830,\"data\":\"synthetic\",\"lr\":0.005,"
        "\"momentum\":0.9,\"weight_decay\":0.0005,\"label_smoothing\":0,\"synthetic\":true,"
        "\"recipe\":\"paddle\",\"optimizer\":\"sgd\",\"decay\":\"all\",\"schedule\":\"piecewise\","
        "\"lr_drops\":[5,70],\"lr_factor\":0.1,\"warmup_lr_steps\":0,"
        "\"warmup_lr_start\":0,\"accumulate\":1,\"loss_scaling\":\"none\",\"loss_scale\":1,"
        "\"first_step\":1}\n"));
    for (int i = 1; i <= 3; i++) {
        char prefix[96];
        snprintf(prefix, sizeof(prefix),
                 "{\"event\":\"step\",\"step\":%d,\"steps\":3,\"rank\":0,\"loss\":", i);
        const char *line = nth_line(text, i);
        assert_true(begins(line, prefix));
        const char *rest = strstr(line, ",\"step_time_ns\":");
        assert_true(
            begins(rest, ",\"step_time_ns\":250000000,\"samples_per_s\":8,\"lr\":0.005}\n"));
    }
    assert_true(begins(nth_line(text, 4),
                       "{\"event\":\"run_stop\",\"steps\":3,\"warmup_steps\":1,\"rank\":0,"
                       "\"elapsed_ns\":500000000,\"samples_per_s\":8,\"loss_first\":"));
    assert_string_equal(nth_line(text, 5), "");
    /* The same seed prints the same bytes, with the same clock. */
    assert_string_equal(text, must_run(LINE));
}

TEST(a_loss_that_is_not_finite_ends_the_run)
{
    const char *text =
        run_of("--model hrnet_w18 --backend plain --image 32 --batch 2 --steps 9 --lr 1e300", NULL);
    assert_int_equal(ERR->code, ERR_WORKLOAD);
    assert_int_equal(err_exit_status(ERR->code), 8);
    const char *fatal =
        strstr(text, "{\"event\":\"fatal\",\"rank\":0,\"device\":\"cpu\",\"where\":\"step ");
    assert_non_null(fatal);
    assert_non_null(strstr(fatal, "\"what\":\"loss is "));
    assert_string_equal(nth_line(fatal, 1), ""); /* nothing follows it */
    assert_null(strstr(text, "run_stop"));
    assert_null(strstr(text, "nan"));
}

TEST(a_signal_ends_the_run_without_run_stop)
{
    static const stop_flag interrupted = SIGINT;
    const char *text = run_of("--model bert_nano --sequence 8 --batch 2 --steps 9", &interrupted);
    assert_int_equal(ERR->code, ERR_INTERRUPTED);
    assert_true(begins(text, "{\"event\":\"run_start\""));
    assert_string_equal(nth_line(text, 1), "");
}

TEST(what_does_not_fit_is_said_before_the_first_step)
{
    const char *text = run_of("--model resnet50 --image 2000 --batch 4000", NULL);
    assert_int_equal(ERR->code, ERR_WORKLOAD);
    SAYS("the network needs ");
    assert_string_equal(text, "");
    assert_true(memory_available() > 0);
}

TEST(a_full_disk_is_an_error)
{
    struct train_opts opts;
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        print_message("/dev/full is not here\n");
        skip();
    }
    PASSES(options_of("--model bert_nano --sequence 8 --batch 2", &opts, ERR));
    FAILS(train_run(&opts, clock_system(), fileno(full), &(stop_flag){0}, ERR), ERR_ANY);
    assert_int_equal(err_exit_status(ERR->code), 10);
    fclose(full);
}

/* Data that a kernel keeps below the stack pointer is still there after a signal. */
__attribute__((no_sanitize("address"), noinline)) static size_t n_changed_by_a_signal(void)
{
    enum { NEAR_BYTES = 1024, FAR_BYTES = 16384, MARK = 0xa5 }; /* kill's own frames are closer */
    volatile unsigned char *here = __builtin_frame_address(0);
    size_t n_changed = 0;
    kill(getpid(), 0); /* the loader has looked both up before the marks are set */
    for (int below = NEAR_BYTES; below < FAR_BYTES; below++) {
        here[-below] = MARK;
    }
    kill(getpid(), SIGTERM);
    for (int below = NEAR_BYTES; below < FAR_BYTES; below++) {
        n_changed += here[-below] != MARK;
    }
    return n_changed;
}

TEST(a_signal_leaves_the_stack_as_it_is)
{
    struct sigaction before;
    sigaction(SIGTERM, NULL, &before);
    const volatile sig_atomic_t *caught = interrupt_catch();
    assert_int_equal(*caught, 0);
    assert_int_equal(n_changed_by_a_signal(), 0);
    assert_int_equal(*caught, SIGTERM);
    struct sigaction on_the_stack;
    sigaction(SIGTERM, NULL, &on_the_stack);
    on_the_stack.sa_flags &= ~SA_ONSTACK;
    sigaction(SIGTERM, &on_the_stack, NULL);
    assert_int_not_equal(n_changed_by_a_signal(), 0); /* the test would notice it */
    sigaction(SIGTERM, &before, NULL);
}
