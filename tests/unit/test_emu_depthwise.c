/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution's kernels against the CPU backend, in the emulator. */
#include "emu_kernel.h"

struct dw_case {
    int64_t n, c, h, w, pad_h, pad_w, dilation;
    bool has_bias;
};

static const struct dw_case CASES[] = {
    {2, 18, 9, 11, 1, 1, 1, true},
    {1, 5, 17, 7, 12, 12, 12, false}, /* most taps beside the image */
    {1, 40, 40, 9, 1, 1, 1, false},   /* chains in pieces */
    {1, 7, 20, 13, 3, 3, 3, true},
    {1, 6, 9, 8, 0, 0, 2, false},
    {1, 6, 9, 8, 5, 4, 2, false}, /* larger than the input */
    {1, 9, 5, 6, 36, 36, 36, false},
    {1, 300, 4, 4, 1, 1, 1, true}, /* several tiles of channels */
};
#define N_CASES (sizeof(CASES) / sizeof(CASES[0]))

static int64_t slide(int64_t size, int64_t pad, const struct dw_case *of)
{
    return size + 2 * pad - of->dilation * 2;
}

static struct job dw_job(enum kernel_id id, void (*run)(void *, const struct kernel_args *),
                         const struct dw_case *of)
{
    struct job job = job_new(id, run);
    job.args.geom.conv = (struct conv_geom){
        .n = of->n,
        .c = of->c,
        .h = of->h,
        .w = of->w,
        .k = of->c,
        .r = 3,
        .s = 3,
        .p = slide(of->h, of->pad_h, of),
        .q = slide(of->w, of->pad_w, of),
        .stride_h = 1,
        .stride_w = 1,
        .pad_h = of->pad_h,
        .pad_w = of->pad_w,
        .dil_h = of->dilation,
        .dil_w = of->dilation,
        .groups = of->c,
    };
    job.args.has_bias = of->has_bias;
    job.workspace = cuda_depthwise_workspace;
    return job;
}

static struct shape filter_shape(const struct dw_case *of)
{
    return SHAPE(of->c, 1, 3, 3);
}

static struct shape in_shape(const struct job *job)
{
    const struct conv_geom *g = &job->args.geom.conv;
    return SHAPE(g->n, g->c, g->h, g->w);
}

static struct shape out_shape(const struct job *job)
{
    const struct conv_geom *g = &job->args.geom.conv;
    return SHAPE(g->n, g->c, g->p, g->q);
}

TEST(test_forward)
{
    for (size_t i = 0; i < N_CASES; i++) {
        struct job job = dw_job(K_CONV_FWD, cuda_depthwise_fwd, &CASES[i]);
        job_in(&job, 0, ELEM, ROLE_IMAGE, in_shape(&job));
        job_in(&job, 1, ELEM, ROLE_FILTER_DEPTHWISE, filter_shape(&CASES[i]));
        if (CASES[i].has_bias) {
            job_in(&job, 2, ELEM, ROLE_CHANNEL, SHAPE(CASES[i].c));
        }
        job_out(&job, 0, ELEM, ROLE_IMAGE, out_shape(&job));
        job_check(&job);
        job_release(&job);
    }
}

TEST(test_backward_data)
{
    for (size_t i = 0; i < N_CASES; i++) {
        for (unsigned accumulate = 0; accumulate < 2; accumulate++) {
            struct job job = dw_job(K_CONV_BWD_DATA, cuda_depthwise_bwd_data, &CASES[i]);
            job_in(&job, 0, ELEM, ROLE_IMAGE, out_shape(&job));
            job_in(&job, 1, ELEM, ROLE_FILTER_DEPTHWISE, filter_shape(&CASES[i]));
            job_out(&job, 0, ELEM, ROLE_IMAGE, in_shape(&job));
            job.args.accumulate = accumulate;
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_backward_weight)
{
    for (size_t i = 0; i < N_CASES; i++) {
        for (unsigned accumulate = 0; accumulate < 4; accumulate += CASES[i].has_bias ? 1 : 2) {
            struct job job = dw_job(K_CONV_BWD_WEIGHT, cuda_depthwise_bwd_weight, &CASES[i]);
            job_in(&job, 0, ELEM, ROLE_IMAGE, out_shape(&job));
            job_in(&job, 1, ELEM, ROLE_IMAGE, in_shape(&job));
            job_out(&job, 0, ELEM, ROLE_FILTER_DEPTHWISE, filter_shape(&CASES[i]));
            if (CASES[i].has_bias) {
                job_out(&job, 1, ELEM, ROLE_CHANNEL, SHAPE(CASES[i].c));
            }
            job.args.accumulate = CASES[i].has_bias ? accumulate : accumulate / 2;
            job_check(&job);
            job_release(&job);
        }
    }
}

TEST(test_other_filters_are_refused)
{
    const struct {
        int64_t r, stride;
    } rows[] = {{3, 1}, {3, 2}, {5, 1}, {1, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct job job = dw_job(K_CONV_FWD, cuda_depthwise_fwd, &CASES[0]);
        struct conv_geom *g = &job.args.geom.conv;
        struct err err = {0};
        g->r = g->s = rows[i].r;
        g->stride_h = g->stride_w = rows[i].stride;
        assert_int_equal(cuda_depthwise_check(NULL, &job.args, &err), i == 0 ? 0 : -1);
        assert_true(i == 0 || strstr(err.msg, "expected 3 x 3 at stride 1"));
        job_release(&job);
    }
}
