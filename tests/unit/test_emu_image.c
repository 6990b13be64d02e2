/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise kernels, concatenation, dropout and pooling against the CPU backend, in the emulator. */
#include "emu_kernel.h"

static struct slot *image(struct job *job, int idx, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return job_in(job, idx, ELEM, ROLE_IMAGE, SHAPE(n, c, h, w));
}

static struct slot *image_out(struct job *job, int idx, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return job_out(job, idx, ELEM, ROLE_IMAGE, SHAPE(n, c, h, w));
}

static void relu_values(struct slot *slot)
{
    for (int64_t i = 0; i < slot->count; i++) {
        slot->values[i] = slot->values[i] > 0.0 ? slot->values[i] : 0.0;
    }
}

/* ---- element by element: images with padded channels, and tensors stored as their shape says ---- */

static const struct shape ELEM_SHAPES[] = {
    {4, {2, 18, 5, 7}}, {4, {1, 3, 33, 31}}, {2, {3, 7}}, {2, {5, 1001}}, {1, {1}},
};
#define N_ELEM (sizeof(ELEM_SHAPES) / sizeof(ELEM_SHAPES[0]))

static struct job elem_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                           const struct shape *shape, bool has_relu)
{
    struct job job = job_new(id, run);
    bool is_image = shape->n_dims == 4;
    enum role role = is_image ? ROLE_IMAGE : ROLE_PLAIN;
    job.args.geom.elem = (struct elem_geom){.count = shape_count(shape),
                                            .c = is_image ? shape->dim[1] : 0,
                                            .plane = is_image ? shape->dim[2] * shape->dim[3] : 0,
                                            .has_relu = has_relu};
    job_in(&job, 0, ELEM, role, *shape);
    if (id == K_ADD_FWD || (id != K_RELU_FWD && has_relu)) {
        job_in(&job, 1, ELEM, role, *shape);
    }
    job_out(&job, 0, ELEM, role, *shape);
    return job;
}

TEST(test_relu_and_add)
{
    for (size_t i = 0; i < N_ELEM; i++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            struct job job = elem_job(K_RELU_FWD, cuda_relu_fwd, &ELEM_SHAPES[i], true);
            job.in_place = in_place;
            job_check(&job);
            job_release(&job);
            job = elem_job(K_ADD_FWD, cuda_add_fwd, &ELEM_SHAPES[i], in_place == 0);
            job.in_place = in_place * 2;
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_relu_and_add_backward)
{
    for (size_t i = 0; i < N_ELEM; i++) {
        for (unsigned variant = 0; variant < 4; variant++) {
            bool has_relu = variant % 2 == 0;
            struct job job = elem_job(has_relu ? K_RELU_BWD : K_ADD_BWD, cuda_elem_bwd,
                                      &ELEM_SHAPES[i], has_relu);
            if (has_relu) {
                relu_values(&job.in[1]);
            }
            job.args.accumulate = variant / 2;
            job.in_place = variant < 2 ? 1 : 0;
            job_check(&job);
            job_release(&job);
        }
    }
}

/* ---- concatenation ---- */

static struct job concat_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                             const int64_t parts[CONCAT_IN_MAX])
{
    struct job job = job_new(id, run);
    struct concat_geom *g = &job.args.geom.concat;
    *g = (struct concat_geom){.n = 2, .plane = 15};
    for (int i = 0; i < CONCAT_IN_MAX && parts[i] > 0; i++) {
        g->parts[i] = parts[i];
        g->c += parts[i];
    }
    return job;
}

static const int64_t PARTS[][CONCAT_IN_MAX] = {
    {18, 36, 72, 144}, /* HRNet's */
    {256, 48},         {1, 2, 3, 4, 5}, {7, 8, 9}, {16},
};

TEST(test_concat)
{
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
        struct job job = concat_job(K_CONCAT_FWD, cuda_concat_fwd, PARTS[i]);
        for (int part = 0; part < CONCAT_IN_MAX && PARTS[i][part] > 0; part++) {
            image(&job, part, 2, PARTS[i][part], 3, 5);
        }
        image_out(&job, 0, 2, job.args.geom.concat.c, 3, 5);
        job_check(&job);
        assert_true(job.errors[0] == 0.0);
        job_release(&job);
    }
}

TEST(test_concat_backward)
{
    for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
        for (int part = 0; part < CONCAT_IN_MAX && PARTS[i][part] > 0; part++) {
            struct job job = concat_job(K_CONCAT_BWD, cuda_concat_bwd, PARTS[i]);
            job.args.geom.concat.part = part;
            job.args.accumulate = (unsigned)part % 2;
            image(&job, 0, 2, job.args.geom.concat.c, 3, 5);
            image_out(&job, 0, 2, PARTS[i][part], 3, 5);
            job_check(&job);
            job_release(&job);
        }
    }
}

/* ---- dropout: exactly the elements that the CPU drops ---- */

TEST(test_dropout)
{
    for (size_t i = 0; i < N_ELEM; i++) {
        for (unsigned variant = 0; variant < 6; variant++) {
            const struct shape *shape = &ELEM_SHAPES[i];
            bool is_image = shape->n_dims == 4;
            enum role role = is_image ? ROLE_IMAGE : ROLE_PLAIN;
            int64_t count = shape_count(shape);
            int64_t plane = is_image ? shape->dim[2] * shape->dim[3] : 0;
            struct job job =
                job_new(variant % 2 == 0 ? K_DROPOUT_FWD : K_DROPOUT_BWD, cuda_dropout);
            job.args.geom.dropout =
                (struct dropout_geom){.count = count,
                                      .c = is_image ? shape->dim[1] : 0,
                                      .plane = plane,
                                      .run = variant < 2               ? 1
                                             : variant < 4 && is_image ? plane
                                                                       : 3,
                                      .first = 5 * count, /* as the sixth rank has it */
                                      .rate = variant == 0 ? 0.1 : 0.5,
                                      .stream = 77 + i};
            job_in(&job, 0, ELEM, role, *shape);
            job_in(&job, 1, INT64, ROLE_PLAIN, SHAPE_SCALAR)->values[0] = 123456789.0;
            job_out(&job, 0, ELEM, role, *shape);
            job.args.accumulate = variant % 2;
            job.in_place = variant == 0 ? 1 : 0;
            job_check(&job);
            job_release(&job);
        }
    }
}

/* ---- pooling ---- */

struct pool_case {
    int64_t n, c, h, w, window, stride, pad;
};

static struct job pool_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                           const struct pool_case *of)
{
    struct job job = job_new(id, run);
    bool is_max = id == K_MAXPOOL_FWD || id == K_MAXPOOL_BWD;
    job.args.geom.pool = (struct pool_geom){
        .n = of->n,
        .c = of->c,
        .h = of->h,
        .w = of->w,
        .p = is_max ? (of->h + 2 * of->pad - of->window) / of->stride + 1
                    : (of->h + of->window - 1) / of->window,
        .q = is_max ? (of->w + 2 * of->pad - of->window) / of->stride + 1
                    : (of->w + of->window - 1) / of->window,
        .window = of->window,
        .stride = of->stride,
        .pad = of->pad,
    };
    return job;
}

static const struct pool_case MAX_CASES[] = {
    {2, 18, 9, 11, 3, 2, 1}, {1, 64, 8, 8, 3, 2, 1}, {2, 5, 7, 6, 2, 2, 0},
    {1, 3, 5, 5, 3, 1, 1},   {1, 9, 4, 9, 4, 3, 2},
};
#define N_MAX (sizeof(MAX_CASES) / sizeof(MAX_CASES[0]))

TEST(test_maxpool)
{
    for (size_t i = 0; i < N_MAX; i++) {
        struct job job = pool_job(K_MAXPOOL_FWD, cuda_maxpool_fwd, &MAX_CASES[i]);
        const struct pool_geom *g = &job.args.geom.pool;
        relu_values(image(&job, 0, g->n, g->c, g->h, g->w)); /* many equals */
        image_out(&job, 0, g->n, g->c, g->p, g->q);
        job_out(&job, 1, INT32, ROLE_IMAGE, SHAPE(g->n, g->c, g->p, g->q));
        job_check(&job);
        job_release(&job);
    }
}

TEST(test_maxpool_backward)
{
    for (size_t i = 0; i < N_MAX; i++) {
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            struct job forward = pool_job(K_MAXPOOL_FWD, cuda_maxpool_fwd, &MAX_CASES[i]);
            const struct pool_geom *g = &forward.args.geom.pool;
            double *made[KERNEL_OUT_MAX];
            image(&forward, 0, g->n, g->c, g->h, g->w);
            image_out(&forward, 0, g->n, g->c, g->p, g->q);
            job_out(&forward, 1, INT32, ROLE_IMAGE, SHAPE(g->n, g->c, g->p, g->q));
            job_expect(&forward, made);
            struct job job = pool_job(K_MAXPOOL_BWD, cuda_maxpool_bwd, &MAX_CASES[i]);
            image(&job, 0, g->n, g->c, g->p, g->q);
            struct slot *at = job_in(&job, 1, INT32, ROLE_IMAGE, SHAPE(g->n, g->c, g->p, g->q));
            memcpy(at->values, made[1], (size_t)at->count * sizeof(double));
            image_out(&job, 0, g->n, g->c, g->h, g->w);
            job.args.accumulate = accumulate;
            job_check(&job);
            job_release(&job);
            job_release(&forward);
            free(made[0]);
            free(made[1]);
        }
    }
}

/* The first of equals wins, and a NaN wins over all. */
TEST(test_maxpool_nan)
{
    static const struct pool_case of = {1, 1, 2, 2, 2, 2, 0};
    struct job job = pool_job(K_MAXPOOL_FWD, cuda_maxpool_fwd, &of);
    struct slot *x = image(&job, 0, 1, 1, 2, 2);
    image_out(&job, 0, 1, 1, 1, 1);
    job_out(&job, 1, INT32, ROLE_IMAGE, SHAPE(1, 1, 1, 1));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    struct cuda cuda = {
        .channel_pad = 4, .n_multiprocessors = 2, .n_streams = 1, .streams = {stream}};
    x->values[0] = 1.0;
    x->values[1] = (double)NAN;
    x->values[2] = 3.0;
    x->values[3] = 3.0;
    struct device_run run = job_on_device(&job, &cuda);
    assert_true(isnan(run.values[0][0]));
    assert_true(run.values[1][0] == 1.0);
    device_run_release(&run);
    x->values[1] = 2.0;
    run = job_on_device(&job, &cuda);
    assert_true(run.values[0][0] == 3.0);
    assert_true(run.values[1][0] == 2.0);
    device_run_release(&run);
    OK(cudaStreamDestroy(stream));
    job_release(&job);
}

static const struct pool_case AVERAGE_CASES[] = {
    {2, 18, 7, 9, 9, 9, 0}, {3, 5, 13, 11, 13, 13, 0}, {2, 6, 5, 7, 2, 2, 0},
    {1, 3, 9, 4, 3, 3, 0},  {2, 300, 7, 7, 7, 7, 0},
};

TEST(test_average_pool)
{
    for (size_t i = 0; i < sizeof(AVERAGE_CASES) / sizeof(AVERAGE_CASES[0]); i++) {
        for (unsigned variant = 0; variant < 2; variant++) {
            struct job forward = pool_job(K_AVGPOOL_FWD, cuda_avgpool_fwd, &AVERAGE_CASES[i]);
            struct job backward = pool_job(K_AVGPOOL_BWD, cuda_avgpool_bwd, &AVERAGE_CASES[i]);
            struct pool_geom g = forward.args.geom.pool;
            bool is_flat = variant == 1 && g.p == 1 && g.q == 1;
            struct shape pooled = is_flat ? SHAPE(g.n, g.c) : SHAPE(g.n, g.c, g.p, g.q);
            enum role role = is_flat ? ROLE_PLAIN : ROLE_IMAGE;
            forward.args.geom.pool.is_flat = is_flat;
            backward.args.geom.pool.is_flat = is_flat;
            image(&forward, 0, g.n, g.c, g.h, g.w);
            job_out(&forward, 0, ELEM, role, pooled);
            job_check(&forward);
            job_in(&backward, 0, ELEM, role, pooled);
            image_out(&backward, 0, g.n, g.c, g.h, g.w);
            backward.args.accumulate = variant;
            job_check(&backward);
            job_release(&forward);
            job_release(&backward);
        }
    }
}

/* ---- upsampling ---- */

static const struct resize_geom RESIZE_CASES[] = {
    {2, 18, 4, 6, 8, 12, false}, {1, 19, 5, 7, 20, 28, false}, {2, 5, 3, 4, 7, 11, true},
    {1, 8, 1, 1, 9, 13, false},  {1, 8, 1, 1, 40, 50, true},   {1, 20, 6, 9, 6, 9, false},
    {1, 3, 9, 8, 4, 5, false},   {1, 3, 9, 8, 4, 1, true},     {1, 4, 2, 3, 33, 47, false},
    {1, 6, 1, 5, 1, 17, true},
};

TEST(test_upsample)
{
    for (size_t i = 0; i < sizeof(RESIZE_CASES) / sizeof(RESIZE_CASES[0]); i++) {
        const struct resize_geom *g = &RESIZE_CASES[i];
        struct job job = job_new(K_UPSAMPLE_FWD, cuda_upsample_fwd);
        job.args.geom.resize = *g;
        image(&job, 0, g->n, g->c, g->h, g->w);
        image_out(&job, 0, g->n, g->c, g->p, g->q);
        job_check(&job);
        job_release(&job);
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            job = job_new(K_UPSAMPLE_BWD, cuda_upsample_bwd);
            job.args.geom.resize = *g;
            image(&job, 0, g->n, g->c, g->p, g->q);
            image_out(&job, 0, g->n, g->c, g->h, g->w);
            job.args.accumulate = accumulate;
            job_check(&job);
            job_release(&job);
        }
    }
}
