/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy, and upsampling fused with it, against the CPU backend, in the emulator. */
#include "emu_kernel.h"

struct loss_case {
    int64_t n, c, h, w; /* h 0: rows, no image */
    double smoothing;
    int64_t ignore_label;
    double weight;
    double n_ignored; /* share of the labels */
};

static const struct loss_case CASES[] = {
    {2, 19, 7, 9, 0.0, 255, 1.0, 0.3},
    {1, 3, 40, 41, 0.1, 255, 0.4, 0.1},
    {2, 64, 3, 5, 0.0, LOSS_IGNORE_NONE, 1.0, 0.0},
    {2, 70, 3, 5, 0.1, 255, 1.0, 0.2},
    {5, 1000, 0, 0, 0.1, LOSS_IGNORE_NONE, 1.0, 0.0},
    {7, 10, 0, 0, 0.0, LOSS_IGNORE_NONE, 2.0, 0.0},
    {3, 5, 4, 4, 0.0, 255, 1.0, 1.0}, /* all ignored */
};
#define N_CASES (sizeof(CASES) / sizeof(CASES[0]))

static void fill_labels(struct job *job, struct slot *labels, int64_t n_classes, int64_t ignored,
                        double share)
{
    for (int64_t i = 0; i < labels->count; i++) {
        bool is_ignored = rng_f64(&job->rng) < share;
        labels->values[i] =
            is_ignored ? (double)ignored : (double)rng_below(&job->rng, (uint64_t)n_classes);
    }
}

static struct shape logits_shape(const struct loss_case *of)
{
    return of->h > 0 ? SHAPE(of->n, of->c, of->h, of->w) : SHAPE(of->n, of->c);
}

static struct job loss_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                           const struct loss_case *of)
{
    struct job job = job_new(id, run);
    job.args.geom.loss = (struct loss_geom){.n = of->n,
                                            .c = of->c,
                                            .plane = of->h > 0 ? of->h * of->w : 1,
                                            .smoothing = of->smoothing,
                                            .ignore_label = of->ignore_label,
                                            .weight = of->weight,
                                            .n_ranks = 1,
                                            .is_image = of->h > 0};
    job.workspace = cuda_loss_workspace;
    return job;
}

static void add_labels(struct job *job, const struct loss_case *of, uint64_t seed)
{
    struct shape shape = of->h > 0 ? SHAPE(of->n, of->h, of->w) : SHAPE(of->n);
    struct slot *labels = job_in(job, 1, INT64, ROLE_PLAIN, shape);
    rng_init(&job->rng, seed);
    fill_labels(job, labels, of->c, of->ignore_label, of->n_ignored);
}

static struct job forward_job(const struct loss_case *of)
{
    struct job job = loss_job(K_LOSS_FWD, cuda_loss_fwd, of);
    enum role role = of->h > 0 ? ROLE_IMAGE : ROLE_PLAIN;
    fill_normal(&job, job_in(&job, 0, ELEM, role, logits_shape(of)), 0.0, 3.0);
    add_labels(&job, of, 99);
    job_out(&job, 0, FLOAT, ROLE_PLAIN, SHAPE_SCALAR);
    job_out(&job, 1, ELEM, role, logits_shape(of));
    return job;
}

TEST(test_forward)
{
    for (size_t i = 0; i < N_CASES; i++) {
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            struct job job = forward_job(&CASES[i]);
            job.args.accumulate = accumulate;
            job_check(&job);
            job_release(&job);
        }
    }
}

/* prob over the logits */
TEST(test_forward_in_place)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct job job = forward_job(&CASES[i]);
        double *expected[KERNEL_OUT_MAX];
        cudaStream_t stream;
        OK(cudaStreamCreate(&stream));
        struct cuda cuda = {
            .channel_pad = 4, .n_multiprocessors = 2, .n_streams = 1, .streams = {stream}};
        round_slots(&job, DT_F32);
        job_expect(&job, expected);
        struct kernel_args args = job.args;
        args.dtype = DT_F32;
        void *logits = slot_upload(&job.in[0], &cuda, true);
        args.in[0] = logits;
        args.in[1] = slot_upload(&job.in[1], &cuda, true);
        args.out[0] = slot_upload(&job.out[0], &cuda, false);
        args.out[1] = logits;
        OK(cudaMalloc(&args.workspace, (size_t)cuda_loss_workspace(&cuda, &args)));
        cuda_loss_fwd(&cuda, &args);
        OK(cudaStreamSynchronize(stream));
        void *raw = NULL;
        double *prob = slot_download(&job.out[1], &cuda, logits, &raw);
        assert_true(relative_error(prob, expected[1], job.out[1].count) <= TOLERANCE_F32);
        free(prob);
        free(raw);
        free(expected[0]);
        free(expected[1]);
        OK(cudaFree(logits));
        OK(cudaFree((void *)(uintptr_t)args.in[1]));
        OK(cudaFree(args.out[0]));
        OK(cudaFree(args.workspace));
        OK(cudaStreamDestroy(stream));
        job_release(&job);
    }
}

TEST(test_backward)
{
    for (size_t i = 0; i < N_CASES; i++) {
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            const struct loss_case *of = &CASES[i];
            enum role role = of->h > 0 ? ROLE_IMAGE : ROLE_PLAIN;
            struct job forward = forward_job(of);
            double *made[KERNEL_OUT_MAX];
            job_expect(&forward, made);
            struct job job = loss_job(K_LOSS_BWD, cuda_loss_bwd, of);
            struct slot *prob = job_in(&job, 0, ELEM, role, logits_shape(of));
            memcpy(prob->values, made[1], (size_t)prob->count * sizeof(double));
            add_labels(&job, of, 99);
            struct slot *dx = job_out(&job, 0, ELEM, role, logits_shape(of));
            fill_normal(&job, dx, 0.0, 1e-2); /* as large as the gradient */
            job.args.accumulate = accumulate;
            job.in_place = accumulate == 0 ? 1 : 0;
            job_check(&job);
            free(made[0]);
            free(made[1]);
            job_release(&forward);
            job_release(&job);
        }
    }
}

/* A pixel whose own class has a probability near 1: half precision cannot hold 1 - prob, but the sum of the others
   can. */
TEST(test_backward_of_sure_pixels)
{
    static const struct loss_case of = {1, 19, 4, 4, 0.0, 255, 1.0, 0.0};
    struct job job = loss_job(K_LOSS_BWD, cuda_loss_bwd, &of);
    struct slot *prob = job_in(&job, 0, ELEM, ROLE_IMAGE, logits_shape(&of));
    struct slot *labels = job_in(&job, 1, INT64, ROLE_PLAIN, SHAPE(1, 4, 4));
    for (int64_t i = 0; i < 16; i++) {
        labels->values[i] = 3.0;
        for (int64_t c = 0; c < 19; c++) {
            prob->values[c * 16 + i] = c == 3 ? 1.0 - 18e-6 : 1e-6;
        }
    }
    job_out(&job, 0, ELEM, ROLE_IMAGE, logits_shape(&of));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    struct cuda cuda = {.channel_pad = 8,
                        .is_amp = true,
                        .n_multiprocessors = 2,
                        .n_streams = 1,
                        .streams = {stream}};
    job.loss_scale = 1024.0F;
    struct device_run run = job_on_device(&job, &cuda);
    double wanted = -18e-6 / 16.0 * 1024.0;
    assert_true(fabs(run.values[0][3 * 16] - wanted) < 0.05 * fabs(wanted)); /* 1e-6 as a half */
    device_run_release(&run);
    OK(cudaStreamDestroy(stream));
    job_release(&job);
}

/* ---- upsampling and loss in one ---- */

struct fused_case {
    struct resize_geom resize;
    double smoothing, n_ignored;
};

static const struct fused_case FUSED[] = {
    {{2, 19, 5, 7, 20, 28, false}, 0.0, 0.2},
    {{1, 19, 9, 33, 36, 132, false}, 0.1, 0.1}, /* two tiles each way */
    {{1, 3, 2, 2, 32, 300, false}, 0.0, 0.0},   /* more columns than a block makes at once */
    {{1, 35, 3, 4, 11, 13, true}, 0.0, 0.3},    /* more classes than a chunk */
    {{1, 5, 1, 1, 6, 7, false}, 0.0, 0.1},
    {{1, 4, 6, 5, 3, 2, false}, 0.0, 0.0}, /* smaller */
    {{2, 2, 4, 4, 8, 8, false}, 0.0, 1.0},
};
#define N_FUSED (sizeof(FUSED) / sizeof(FUSED[0]))

static struct job fused_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                            const struct fused_case *of)
{
    struct job job = job_new(id, run);
    const struct resize_geom *r = &of->resize;
    job.args.geom.upsample_loss = (struct upsample_loss_geom){
        .resize = *r,
        .loss = {.n = r->n,
                 .c = r->c,
                 .plane = r->p * r->q,
                 .smoothing = of->smoothing,
                 .ignore_label = 255,
                 .weight = 0.4,
                 .n_ranks = 1,
                 .is_image = true},
    };
    job.workspace = cuda_upsample_loss_workspace;
    rng_init(&job.rng, 7);
    struct slot *x = job_in(&job, 0, ELEM, ROLE_IMAGE, SHAPE(r->n, r->c, r->h, r->w));
    fill_normal(&job, x, 0.0, 3.0);
    struct slot *labels = job_in(&job, 1, INT64, ROLE_PLAIN, SHAPE(r->n, r->p, r->q));
    fill_labels(&job, labels, r->c, 255, of->n_ignored);
    return job;
}

static struct job fused_forward(const struct fused_case *of)
{
    const struct resize_geom *r = &of->resize;
    struct job job = fused_job(K_UPSAMPLE_LOSS_FWD, cuda_upsample_loss_fwd, of);
    job_out(&job, 0, FLOAT, ROLE_PLAIN, SHAPE_SCALAR);
    job_out(&job, 1, FLOAT, ROLE_PLAIN, SHAPE(r->n, r->p, r->q));
    job_out(&job, 2, FLOAT, ROLE_PLAIN, SHAPE_SCALAR);
    return job;
}

TEST(test_fused_forward)
{
    for (size_t i = 0; i < N_FUSED; i++) {
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            struct job job = fused_forward(&FUSED[i]);
            job.args.accumulate = accumulate;
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_fused_backward)
{
    for (size_t i = 0; i < N_FUSED; i++) {
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            const struct resize_geom *r = &FUSED[i].resize;
            struct job job = fused_job(K_UPSAMPLE_LOSS_BWD, cuda_upsample_loss_bwd, &FUSED[i]);
            struct job forward = fused_forward(&FUSED[i]);
            double *made[KERNEL_OUT_MAX];
            round_slots(&forward, DT_F16); /* lse of exactly the logits that are rounded below */
            round_slots(&job, DT_F16);
            job_expect(&forward, made);
            struct slot *lse = job_in(&job, 2, FLOAT, ROLE_PLAIN, SHAPE(r->n, r->p, r->q));
            memcpy(lse->values, made[1], (size_t)lse->count * sizeof(double));
            job_in(&job, 3, FLOAT, ROLE_PLAIN, SHAPE_SCALAR)->values[0] = made[2][0];
            struct slot *dx = job_out(&job, 0, ELEM, ROLE_IMAGE, SHAPE(r->n, r->c, r->h, r->w));
            fill_normal(&job, dx, 0.0, 1e-2);
            job.args.accumulate = accumulate;
            job_check(&job);
            for (int k = 0; k < 3; k++) {
                free(made[k]);
            }
            job_release(&forward);
            job_release(&job);
        }
    }
}

/* Gradients carry the loss scale, losses do not. */
TEST(test_loss_scale)
{
    struct cuda cuda = {.channel_pad = 4, .n_multiprocessors = 2, .n_streams = 1};
    OK(cudaStreamCreate(&cuda.streams[0]));
    for (int fused = 0; fused < 2; fused++) {
        struct device_run runs[2];
        for (int scaled = 0; scaled < 2; scaled++) {
            struct job job = fused
                                 ? fused_job(K_UPSAMPLE_LOSS_BWD, cuda_upsample_loss_bwd, &FUSED[0])
                                 : loss_job(K_LOSS_BWD, cuda_loss_bwd, &CASES[0]);
            const struct resize_geom *r = &FUSED[0].resize;
            if (fused) {
                job_in(&job, 2, FLOAT, ROLE_PLAIN, SHAPE(r->n, r->p, r->q));
                job_in(&job, 3, FLOAT, ROLE_PLAIN, SHAPE_SCALAR)->values[0] = 100.0;
                job_out(&job, 0, ELEM, ROLE_IMAGE, SHAPE(r->n, r->c, r->h, r->w));
            } else {
                job_in(&job, 0, ELEM, ROLE_IMAGE, logits_shape(&CASES[0]));
                add_labels(&job, &CASES[0], 99);
                job_out(&job, 0, ELEM, ROLE_IMAGE, logits_shape(&CASES[0]));
            }
            job.loss_scale = scaled ? 4096.0F : 0.0F;
            runs[scaled] = job_on_device(&job, &cuda);
            for (int64_t i = 0; scaled && i < job.out[0].count; i++) {
                runs[0].values[0][i] *= 4096.0;
            }
            if (scaled) {
                assert_true(relative_error(runs[1].values[0], runs[0].values[0], job.out[0].count) <
                            1e-6);
            }
            job_release(&job);
        }
        device_run_release(&runs[0]);
        device_run_release(&runs[1]);
    }
    OK(cudaStreamDestroy(cuda.streams[0]));
}

/* A label that is no class reads nothing and makes the loss NaN. */
TEST(test_wrong_label)
{
    struct cuda cuda = {.channel_pad = 4, .n_multiprocessors = 2, .n_streams = 1};
    OK(cudaStreamCreate(&cuda.streams[0]));
    for (int variant = 0; variant < 3; variant++) {
        struct job job = variant == 2 ? fused_forward(&FUSED[0]) : forward_job(&CASES[variant * 4]);
        job.in[1].values[0] = 1e9;
        struct device_run run = job_on_device(&job, &cuda);
        assert_true(isnan(run.values[0][0]));
        device_run_release(&run);
        job_release(&job);
    }
    OK(cudaStreamDestroy(cuda.streams[0]));
}

TEST(test_several_ranks_are_refused)
{
    struct cuda cuda = {.channel_pad = 4};
    struct job job = loss_job(K_LOSS_FWD, cuda_loss_fwd, &CASES[0]);
    PASSES(cuda_loss_check(&cuda, &job.args, ERR));
    job.args.geom.loss.n_ranks = 2;
    FAILS(cuda_loss_check(&cuda, &job.args, ERR), ERR_ANY);
    SAYS("2 ranks");
}
