/* SPDX-License-Identifier: Apache-2.0 */
/* Packed images that the device processes, from the shard to the network's inputs, on the emulator: compared with what the reader's
   own threads make of the same samples. */
#include "unit.h"

#include <math.h>
#include <sys/stat.h>

#include "backend_cuda/memory.h"
#include "base/rng.h"
#include "emu_unit.h"
#include "train/device.h"
#include "train/feed.h"
#include "wl_pack.h"
#include "wl_run.h"

#define STEPS  3
#define HEIGHT 10
#define WIDTH  14
#define BATCH  4

static const struct hand_pack FEW_CLASSES = {
    .kind = SHARD_CLASSES, .n_samples = 11, .per_shard = 4, .n_classes = 7};

static const char *folder_of(enum shard_kind kind)
{
    return scratch_path(kind == SHARD_CLASSES ? "classes" : "segments");
}

static int64_t no_time(void *ctx UNUSED)
{
    return 0;
}

/* A network that is little more than its inputs, with everything needed to bring a batch there. */
struct bench {
    struct train_opts opts;
    struct arena arena;
    struct device device;
    struct backend backend;
    struct graph *graph;
    struct net net;
    struct feed feed;
    int input, labels;
};

static void build(struct bench *b, bool is_dense)
{
    const struct graph_types types = device_types(&b->opts);
    int64_t n = b->opts.batch;
    b->graph = graph_new_typed(&b->arena, &types);
    b->input = graph_input(b->graph, "input", SHAPE(n, 3, HEIGHT, WIDTH), types.dtype);
    b->labels =
        graph_input(b->graph, "labels", is_dense ? SHAPE(n, HEIGHT, WIDTH) : SHAPE(n), DT_I64);
    int x = graph_conv(b->graph, b->input,
                       &(struct conv_opts){.name = "conv", .out_channels = 19, .kernel = 1});
    if (!is_dense) {
        x = graph_linear(b->graph, graph_global_avgpool(b->graph, x), "fc", 7);
    }
    (void)graph_loss(b->graph, x, b->labels,
                     &(struct loss_opts){.ignore_label = is_dense ? 255 : LOSS_IGNORE_NONE});
}

static void bench_open_on(struct bench *b, const char *folder, const char *line,
                          const struct ranks *ranks, bool is_host)
{
    struct err err = {0};
    struct clock_src clock = {.mono_ns = no_time};
    *b = (struct bench){0};
    PASSES(options_of(arena_printf(ARENA, "--device=cuda --data=%s --steps=%d --image=%dx%d %s",
                                   folder, STEPS, HEIGHT, WIDTH, line),
                      &b->opts, ERR));
    if (ranks) {
        b->opts.ranks = *ranks;
    }
    assert_true(b->opts.is_augmented_on_device);
    b->opts.is_augmented_on_device = !is_host;
    bool is_ready = device_open(&b->device, &b->opts, &b->backend, &err) == 0;
    if (is_ready) {
        build(b, strcmp(b->opts.model->name, "resnet50") != 0);
        is_ready = graph_finish(b->graph, &err) == 0 &&
                   net_plan(&b->net, &b->arena, b->graph, &b->backend, &err) == 0;
    }
    if (is_ready) {
        net_plan_staging(&b->net, &b->arena);
        is_ready = feed_open(&b->feed, &b->opts, b->graph, clock, &err) == 0 &&
                   feed_plan(&b->feed, &b->net, &err) == 0 && net_alloc(&b->net, &err) == 0 &&
                   feed_start(&b->feed, &err) == 0;
    }
    if (!is_ready) {
        fail_msg("%s: %s", line, err.msg);
    }
}

static void bench_open(struct bench *b, const char *folder, const char *line,
                       const struct ranks *ranks)
{
    bench_open_on(b, folder, line, ranks, false);
}

static void bench_close(struct bench *b)
{
    feed_release(&b->feed);
    net_release(&b->net);
    device_close(&b->device);
    arena_release(&b->arena);
}

/* What the steps' batches are on the device. */
struct batches {
    float pixels[STEPS][BATCH * 3 * HEIGHT * WIDTH];
    int64_t labels[STEPS][BATCH * HEIGHT * WIDTH];
};

static void read_batches(struct bench *b, struct batches *ret)
{
    struct err err = {0};
    memset(ret, 0, sizeof(*ret));
    for (int i = 0; i < STEPS; i++) {
        struct mlog_step step = {.step = i + 1};
        if (feed_next(&b->feed, &b->net, 0, NULL, &step, &err) < 0 ||
            b->backend.async.check(b->backend.self, &err) < 0) {
            fail_msg("step %d: %s", i + 1, err.msg);
        }
        net_read(&b->net, b->input, ret->pixels[i]);
        net_read(&b->net, b->labels, ret->labels[i]);
    }
}

/* In groups of so many images; 0: as a CPU gets them, made by the host. */
static void batches_of(const char *folder, const char *line, int group, struct batches *ret)
{
    struct bench b;
    bench_open_on(&b, folder, line, NULL, group == 0);
    if (group > 0) {
        cuda_images_set_group(b.device.opened, group);
    }
    read_batches(&b, ret);
    bench_close(&b);
}

static double off_by(const struct batches *got, const struct batches *want)
{
    double off = 0.0;
    double norm = 0.0;
    for (int i = 0; i < STEPS; i++) {
        for (size_t k = 0; k < ARRAY_LEN(got->pixels[0]); k++) {
            double difference = (double)got->pixels[i][k] - (double)want->pixels[i][k];
            off += difference * difference;
            norm += (double)want->pixels[i][k] * (double)want->pixels[i][k];
        }
    }
    return norm > 0.0 ? sqrt(off / norm) : 1.0;
}

/* The device's batches equal the host's except for rounding, with the same bits for any number of threads, order of the
   device's work and size of its groups; their labels are the host's. Another seed is noticed. */
TEST(device_makes_what_the_host_makes)
{
    static const char *const models[] = {"resnet50", "hrnet_w18", "deeplabv3p_mmseg"};
    static struct batches host;
    static struct batches device;
    static struct batches again;
    for (int i = 0; i < 6; i++) {
        const char *folder = folder_of(i / 2 == 0 ? SHARD_CLASSES : SHARD_SEGMENTS);
        bool is_amp = i % 2 == 1;
        const char *line = arena_printf(&scratch_arena, "--model=%s --batch=%d --precision=%s",
                                        models[i / 2], BATCH, is_amp ? "amp" : "fp32");
        batches_of(folder, line, 0, &host);
        emu_seed(1);
        batches_of(folder, arena_printf(&scratch_arena, "%s --workers=1", line), BATCH, &device);
        emu_seed(2);
        batches_of(folder, arena_printf(&scratch_arena, "%s --workers=3", line), 3, &again);
        assert_memory_equal(&device, &again, sizeof(device));
        assert_memory_equal(device.labels, host.labels, sizeof(host.labels));
        double off = off_by(&device, &host);
        if (!(off <= (is_amp ? TOLERANCE_F16 : TOLERANCE_F32))) {
            fail_msg("%s is off by %g", line, off);
        }
        batches_of(folder, arena_printf(&scratch_arena, "%s --data-seed=5", line), BATCH, &again);
        assert_true(off_by(&again, &host) > 0.1);
    }
}

/* Two ranks' batches are the halves of one rank's. */
TEST(ranks_see_the_same_images)
{
    static struct batches whole;
    static struct batches part;
    const char *folder = folder_of(SHARD_CLASSES);
    size_t half = ARRAY_LEN(part.pixels[0]) / 2;
    batches_of(folder, "--model=resnet50 --batch=4", BATCH, &whole);
    for (int rank = 0; rank < 2; rank++) {
        struct bench b;
        const struct ranks ranks = {.rank = rank, .n_ranks = 2, .local_rank = 0};
        bench_open(&b, folder, "--model=resnet50 --batch=2", &ranks);
        read_batches(&b, &part);
        bench_close(&b);
        for (int i = 0; i < STEPS; i++) {
            assert_memory_equal(part.pixels[i], whole.pixels[i] + (size_t)rank * half,
                                half * sizeof(float));
            assert_memory_equal(part.labels[i], whole.labels[i] + 2 * rank, 2 * sizeof(int64_t));
        }
    }
}

/* Larger than a piece of pinned memory, and a rectangle within it whose rows are no neighbours: each pixel of a constant image. */
TEST(an_image_goes_over_in_pieces)
{
    enum { SIDE_H = 1500, SIDE_W = 1100 };
    static uint8_t pixels[SIDE_H * SIDE_W * 3];
    static uint8_t labels[SIDE_H * SIDE_W];
    static float got[2 * 3 * HEIGHT * WIDTH];
    static int64_t got_labels[2 * HEIGHT * WIDTH];
    struct bench b;
    for (int64_t i = 0; i < SIDE_H * SIDE_W; i++) {
        bool is_inside = i / SIDE_W >= 20 && i % SIDE_W >= 30 && i % SIDE_W < 1060;
        memset(pixels + 3 * i, is_inside ? 51 : 255, 3);
        labels[i] = is_inside ? 3 : 9;
    }
    struct image_cut cuts[2] = {{.pixels = pixels,
                                 .labels = labels,
                                 .height = SIDE_H,
                                 .width = SIDE_W,
                                 .src_y = 20,
                                 .src_x = 30,
                                 .src_h = SIDE_H - 20,
                                 .src_w = 1030,
                                 .res_h = HEIGHT,
                                 .res_w = WIDTH,
                                 .is_antialiased = true}};
    cuts[1] = cuts[0];
    cuts[1].is_flipped = true;
    const struct image_batch batch = {.images = cuts,
                                      .n = 2,
                                      .height = HEIGHT,
                                      .width = WIDTH,
                                      .std = {1.0, 1.0, 1.0},
                                      .ignored = 255};
    bench_open(&b, folder_of(SHARD_SEGMENTS), "--model=hrnet_w18 --batch=2", NULL);
    net_write_images(&b.net, b.input, b.labels, &batch);
    PASSES(b.backend.async.check(b.backend.self, ERR));
    net_read(&b.net, b.input, got);
    net_read(&b.net, b.labels, got_labels);
    for (size_t i = 0; i < ARRAY_LEN(got); i++) {
        assert_true(fabsf(got[i] - 0.2F) < 1e-5F);
    }
    for (size_t i = 0; i < ARRAY_LEN(got_labels); i++) {
        assert_int_equal(got_labels[i], 3);
    }
    cuts[0].src_h = cuts[0].res_h = 1; /* more than fits is reported, not truncated */
    cuts[0].src_w = INT32_MAX / 4;
    net_write_images(&b.net, b.input, b.labels, &batch);
    FAILS(b.backend.async.check(b.backend.self, ERR), ERR_ANY);
    SAYS("need more memory than was reserved");
    bench_close(&b);
}

static int set_up(void **state)
{
    int status = scratch_group_start(state);
    const struct hand_pack *packs[] = {&FEW_CLASSES, &SEGMENTS};
    for (size_t i = 0; i < ARRAY_LEN(packs); i++) {
        assert_int_equal(mkdir(folder_of(packs[i]->kind), 0700), 0);
        hand_write(packs[i], folder_of(packs[i]->kind));
    }
    return status;
}

UNIT_MAIN(set_up, scratch_group_end)
