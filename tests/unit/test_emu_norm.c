/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm's kernels against the CPU backend, in the emulator. */
#include "emu_kernel.h"

/* Odd channels, one row a channel, more channels than a tile holds, more rows than a block, and one pixel an image. */
static const struct shape SHAPES[] = {
    {4, {2, 18, 5, 7}},   {4, {3, 5, 1, 1}},   {4, {2, 300, 2, 3}},
    {4, {2, 24, 23, 31}}, {4, {9, 270, 1, 1}},
};
#define N_SHAPES (sizeof(SHAPES) / sizeof(SHAPES[0]))

static struct job norm_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                           const struct shape *shape, bool has_relu)
{
    struct job job = job_new(id, run);
    job.args.geom.bn = (struct bn_geom){.n = shape->dim[0],
                                        .c = shape->dim[1],
                                        .plane = shape->dim[2] * shape->dim[3],
                                        .eps = 1e-5,
                                        .momentum = 0.1,
                                        .has_relu = has_relu,
                                        .n_ranks = 1};
    job.workspace = cuda_bn_workspace;
    return job;
}

static struct slot *image(struct job *job, bool is_out, int idx, const struct shape *shape)
{
    return is_out ? job_out(job, idx, ELEM, ROLE_IMAGE, *shape)
                  : job_in(job, idx, ELEM, ROLE_IMAGE, *shape);
}

static struct slot *channels(struct job *job, bool is_out, int idx, const struct shape *shape)
{
    struct shape of = SHAPE(shape->dim[1]);
    return is_out ? job_out(job, idx, FLOAT, ROLE_CHANNEL, of)
                  : job_in(job, idx, FLOAT, ROLE_CHANNEL, of);
}

static void running(struct job *job, int first, const struct shape *shape)
{
    channels(job, true, first, shape)->is_kept = true;
    struct slot *var = channels(job, true, first + 1, shape);
    var->is_kept = true;
    fill_normal(job, var, 1.0, 0.1);
}

/* rstd is above 0 */
static void mean_and_rstd(struct job *job, int first, const struct shape *shape)
{
    fill_normal(job, channels(job, false, first, shape), 0.2, 0.3);
    struct slot *rstd = channels(job, false, first + 1, shape);
    for (int64_t i = 0; i < rstd->count; i++) {
        rstd->values[i] = 0.5 + fabs(rstd->values[i]);
    }
}

static void relu_values(struct slot *slot)
{
    for (int64_t i = 0; i < slot->count; i++) {
        slot->values[i] = slot->values[i] > 0.0 ? slot->values[i] : 0.0;
    }
}

TEST(test_forward)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        for (int variant = 0; variant < 4; variant++) {
            bool has_add = variant >= 2;
            struct job job = norm_job(has_add ? K_BN_ADD_FWD : K_BN_FWD, cuda_bn_fwd, &SHAPES[i],
                                      variant % 2 == 1);
            fill_normal(&job, image(&job, false, 0, &SHAPES[i]), 0.7, 2.0);
            channels(&job, false, 1, &SHAPES[i]);
            channels(&job, false, 2, &SHAPES[i]);
            if (has_add) {
                image(&job, false, 3, &SHAPES[i]);
            }
            image(&job, true, 0, &SHAPES[i]);
            channels(&job, true, 1, &SHAPES[i]);
            channels(&job, true, 2, &SHAPES[i]);
            running(&job, 3, &SHAPES[i]);
            job.in_place = i == 0 ? 1 : i == 1 && has_add ? 4 : 0;
            job_check(&job);
            job_release(&job);
        }
    }
}

/* A mean a thousand times the deviation, and a first pixel far off: a sum of squares would lose the digits. */
TEST(test_moments_keep_their_digits)
{
    static const struct shape shape = {4, {4, 8, 16, 16}};
    struct job job = norm_job(K_BN_FWD, cuda_bn_fwd, &shape, false);
    struct slot *x = image(&job, false, 0, &shape);
    fill_normal(&job, x, 1000.0, 1.0);
    for (int64_t c = 0; c < 8; c++) {
        x->values[c * 256] = 1030.0;
    }
    channels(&job, false, 1, &shape);
    channels(&job, false, 2, &shape);
    image(&job, true, 0, &shape);
    channels(&job, true, 1, &shape);
    channels(&job, true, 2, &shape);
    running(&job, 3, &shape);
    /* The mean itself is rounded to 6e-8 * 1000: y to 6e-5, no better on any device; the deviation keeps its digits. */
    double *expected[KERNEL_OUT_MAX];
    cudaStream_t stream;
    round_slots(&job, DT_F32);
    job_expect(&job, expected);
    OK(cudaStreamCreate(&stream));
    struct cuda cuda = {
        .channel_pad = 4, .n_multiprocessors = 2, .n_streams = 1, .streams = {stream}};
    struct device_run run = job_on_device(&job, &cuda);
    assert_true(relative_error(run.values[0], expected[0], x->count) < 1e-4);
    assert_true(relative_error(run.values[1], expected[1], 8) < 1e-7);
    assert_true(relative_error(run.values[2], expected[2], 8) < 1e-5);
    device_run_release(&run);
    OK(cudaStreamDestroy(stream));
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(expected[i]);
    }
    job_release(&job);
}

/* mask: 0 no ReLU, 1 from y, 2 from x */
static struct job backward_job(enum kernel_id id, const struct shape *shape, int mask)
{
    struct job job = norm_job(id, cuda_bn_bwd, shape, mask > 0);
    image(&job, false, 0, shape);
    image(&job, false, 1, shape);
    channels(&job, false, 2, shape);
    mean_and_rstd(&job, 3, shape);
    if (mask == 1) {
        relu_values(image(&job, false, 5, shape));
    } else if (mask == 2) {
        channels(&job, false, 6, shape);
    }
    image(&job, true, 0, shape);
    channels(&job, true, 1, shape);
    channels(&job, true, 2, shape);
    return job;
}

TEST(test_backward)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        for (int mask = 0; mask < 3; mask++) {
            struct job job = backward_job(K_BN_BWD, &SHAPES[i], mask);
            job.args.accumulate = (unsigned)(i + (size_t)mask) % 8;
            job.in_place = job.args.accumulate % 2 == 0 ? 1 : 0;
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_backward_with_add)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        for (int variant = 0; variant < 6; variant++) {
            struct job job = backward_job(K_BN_ADD_BWD, &SHAPES[i], variant % 2);
            job.args.accumulate = variant < 2 ? 0 : variant < 4 ? 8 : 1;
            job.in_place = variant < 4 ? 1 : 0;
            image(&job, true, 3, &SHAPES[i]);
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_backward_leaves_out_what_nobody_wants)
{
    struct job job = backward_job(K_BN_BWD, &SHAPES[0], 1);
    job.out[0].is_there = false; /* dx */
    job_check(&job);
    job_release(&job);
    job = backward_job(K_BN_ADD_BWD, &SHAPES[0], 1); /* no da */
    job_check(&job);
    job_release(&job);
}

TEST(test_finalize)
{
    for (int variant = 0; variant < 2; variant++) {
        static const struct shape shape = {4, {2, 300, 5, 7}};
        struct job job = norm_job(K_BN_FINALIZE, cuda_bn_finalize, &shape, false);
        job.workspace = NULL;
        struct slot *sum = channels(&job, false, 0, &shape);
        struct slot *squares = channels(&job, false, 1, &shape);
        for (int64_t c = 0; c < 300; c++) { /* mean 0 to 1, variance 1 to 2 */
            double mean = (double)c / 300.0;
            sum->values[c] = 70.0 * mean;
            squares->values[c] = 70.0 * (mean * mean + 1.0 + mean);
        }
        channels(&job, false, 2, &shape);
        channels(&job, false, 3, &shape);
        channels(&job, true, 0, &shape);
        channels(&job, true, 1, &shape);
        if (variant == 0) {
            job_out(&job, 2, ELEM, ROLE_CHANNEL, SHAPE(300));
            job_out(&job, 3, ELEM, ROLE_CHANNEL, SHAPE(300));
        }
        running(&job, 4, &shape);
        job_check(&job);
        job_release(&job);
    }
}

TEST(test_apply)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        for (int variant = 0; variant < 3; variant++) { /* no a, a, a normalised */
            struct job job = norm_job(K_BN_APPLY, cuda_bn_apply, &SHAPES[i], variant != 1);
            job.workspace = NULL;
            image(&job, false, 0, &SHAPES[i]);
            channels(&job, false, 1, &SHAPES[i]);
            channels(&job, false, 2, &SHAPES[i]);
            mean_and_rstd(&job, 3, &SHAPES[i]);
            if (variant > 0) {
                image(&job, false, 5, &SHAPES[i]);
            }
            if (variant > 1) {
                channels(&job, false, 6, &SHAPES[i]);
                channels(&job, false, 7, &SHAPES[i]);
                mean_and_rstd(&job, 8, &SHAPES[i]);
            }
            image(&job, true, 0, &SHAPES[i]);
            job.in_place = variant == 0 ? 1 : variant == 1 ? 6 : 0;
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_backward_from_sums)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct job job = norm_job(K_BN_BWD_APPLY, cuda_bn_bwd_apply, &SHAPES[i], false);
        job.workspace = NULL;
        image(&job, false, 0, &SHAPES[i]);
        image(&job, false, 1, &SHAPES[i]);
        channels(&job, false, 2, &SHAPES[i]);
        mean_and_rstd(&job, 3, &SHAPES[i]);
        channels(&job, false, 5, &SHAPES[i]);
        channels(&job, false, 6, &SHAPES[i]);
        image(&job, true, 0, &SHAPES[i]);
        channels(&job, true, 1, &SHAPES[i]);
        channels(&job, true, 2, &SHAPES[i]);
        job.args.accumulate = (unsigned)i % 4 << 1;
        job.in_place = i % 2 == 0 ? 1 : 0;
        job_check(&job);
        job_release(&job);
    }
}

/* backward's mask equals forward's y, bit for bit, where it is recomputed from x. */
TEST(test_mask_made_again_is_the_same)
{
    static const struct shape shape = {4, {2, 20, 9, 11}};
    struct job forward = norm_job(K_BN_FWD, cuda_bn_fwd, &shape, true);
    image(&forward, false, 0, &shape);
    channels(&forward, false, 1, &shape);
    fill_normal(&forward, channels(&forward, false, 2, &shape), 0.0, 1e-3);
    image(&forward, true, 0, &shape);
    channels(&forward, true, 1, &shape);
    channels(&forward, true, 2, &shape);
    running(&forward, 3, &shape);
    round_slots(&forward, DT_F16);
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    struct cuda cuda = {.channel_pad = 8,
                        .is_amp = true,
                        .n_multiprocessors = 2,
                        .n_streams = 1,
                        .streams = {stream}};
    struct device_run made = job_on_device(&forward, &cuda);
    struct device_run gradients[2];
    for (int mask = 1; mask <= 2; mask++) {
        struct job job = backward_job(K_BN_BWD, &shape, mask);
        memcpy(job.in[1].values, forward.in[0].values, (size_t)job.in[1].count * 8);
        memcpy(job.in[2].values, forward.in[1].values, 20 * 8);
        memcpy(job.in[3].values, made.values[1], 20 * 8);
        memcpy(job.in[4].values, made.values[2], 20 * 8);
        if (mask == 1) {
            memcpy(job.in[5].values, made.values[0], (size_t)job.in[5].count * 8);
        } else {
            memcpy(job.in[6].values, forward.in[2].values, 20 * 8);
        }
        gradients[mask - 1] = job_on_device(&job, &cuda);
        job_release(&job);
    }
    for (int out = 0; out < 3; out++) {
        assert_memory_equal(gradients[0].raw[out], gradients[1].raw[out], gradients[0].bytes[out]);
    }
    device_run_release(&gradients[0]);
    device_run_release(&gradients[1]);
    device_run_release(&made);
    job_release(&forward);
    OK(cudaStreamDestroy(stream));
}

TEST(test_several_ranks_are_refused)
{
    struct job job = norm_job(K_BN_FWD, cuda_bn_fwd, &SHAPES[0], false);
    struct cuda cuda = {.channel_pad = 4, .n_multiprocessors = 132};
    PASSES(cuda_bn_check(&cuda, &job.args, ERR));
    job.args.geom.bn.n_ranks = 4;
    FAILS(cuda_bn_check(&cuda, &job.args, ERR), ERR_ANY);
    SAYS("4 ranks");
    job_release(&job);
}
