/* SPDX-License-Identifier: Apache-2.0 */
/* Of the CUDA backend's calls what no case of tests/cuda/cases.h can say, on the emulated device: results that are not the CPU's, a mask on which two
   calls must agree, refusals. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "backend_cuda/cuda.h"
#include "backend_cuda/kernels.h"
#include "backend_cuda/sums.h"
#include "base/rng.h"
#include "core/half.h"
#include "emu.h"
#include "tests/cuda/elements.h"

static struct cuda cuda;
static struct backend backend;

static void open_device(bool is_amp)
{
    PASSES(cuda_init(&cuda, &(struct cuda_opts){.is_amp = is_amp, .n_streams = 1}, &backend, ERR));
}

static void close_device(void)
{
    cuda_release(&cuda);
    assert_int_equal(emu_allocated_bytes(), 0);
}

/* Of 0, where there are no values. */
static void *put(struct tensor_desc desc, const double *values)
{
    int64_t count = shape_count(&desc.shape);
    void *device = backend.alloc(backend.self, backend.tensor_bytes(backend.self, &desc));
    CLEANUP(free) double *zeros = xcalloc((size_t)count, sizeof(*zeros));
    CLEANUP(free) void *elements = to_elements(values ? values : zeros, count, desc.dtype);
    assert_non_null(device);
    backend.upload(backend.self, &desc, elements, device);
    return device;
}

static double *get(struct tensor_desc desc, const void *device)
{
    int64_t count = shape_count(&desc.shape);
    CLEANUP(free) void *elements = xcalloc((size_t)count, sizeof(double));
    backend.download(backend.self, &desc, device, elements);
    return to_doubles(elements, count, desc.dtype);
}

/* The operands are freed, but for the first n_kept results. */
static void run(struct kernel_args *args, int n_kept)
{
    PASSES(backend.prepare(backend.self, args, ERR));
    args->workspace = backend.alloc(backend.self, args->workspace_bytes);
    backend.run[args->id](backend.self, args);
    PASSES(backend.async.check(backend.self, ERR));
    backend.free(backend.self, args->workspace);
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        backend.free(backend.self, (void *)(uintptr_t)args->in[i]);
    }
    for (int i = n_kept; i < KERNEL_OUT_MAX; i++) {
        backend.free(backend.self, args->out[i]);
    }
    backend.free(backend.self, (void *)(uintptr_t)args->loss_scale);
    backend.unprepare(backend.self, args);
}

static double first_of(struct tensor_desc desc, void *device)
{
    CLEANUP(free) double *values = get(desc, device);
    backend.free(backend.self, device);
    return values[0];
}

static struct tensor_desc plain(enum dtype dtype, struct shape shape)
{
    return (struct tensor_desc){shape, dtype, ROLE_PLAIN};
}

/* What a convolution without += is given is added after it: to each element once, rounded as the type is. */
TEST(a_result_beside_is_added_to_each_element)
{
    static const int64_t COUNTS[] = {1, 255, 256, 257, 1000};
    for (size_t row = 0; row < 2 * ARRAY_LEN(COUNTS); row++) {
        const enum dtype dtype = row % 2 ? DT_F16 : DT_F32;
        const int64_t count = COUNTS[row / 2];
        const struct tensor_desc desc = plain(dtype, SHAPE(count));
        double from[1000], to[1000];
        struct rng rng;
        rng_init(&rng, row);
        for (int64_t i = 0; i < count; i++) {
            from[i] = rng_normal(&rng);
            to[i] = rng_normal(&rng);
        }
        open_device(dtype == DT_F16);
        struct add_args args = {
            .dtype = dtype, .count = count, .from = put(desc, from), .to = put(desc, to)};
        CLEANUP(free) double *a = get(desc, args.from);
        CLEANUP(free) double *b = get(desc, args.to);
        args.stream = cuda.streams[0];
        cuda_add_to(&cuda, &args);
        CLEANUP(free) double *sum = get(desc, args.to);
        for (int64_t i = 0; i < count; i++) {
            const float wanted = (float)a[i] + (float)b[i];
            assert_true(sum[i] == (double)(dtype == DT_F16 ? half_to_float(half_from_float(wanted))
                                                           : wanted));
        }
        backend.free(backend.self, (void *)(uintptr_t)args.from);
        backend.free(backend.self, args.to);
        close_device();
    }
}

/* A pixel whose own class has a probability near 1: half precision cannot hold 1 - prob, but the sum of the others can. */
TEST(the_gradient_of_a_sure_pixel_is_not_lost)
{
    enum { CLASSES = 19, PIXELS = 16, OWN = 3 };
    const struct tensor_desc desc = {SHAPE(1, CLASSES, 4, 4), DT_F16, ROLE_IMAGE};
    const double scale = 1024.0;
    double prob[CLASSES * PIXELS];
    double labels[PIXELS];
    open_device(true);
    for (int i = 0; i < CLASSES * PIXELS; i++) {
        prob[i] = i / PIXELS == OWN ? 1.0 - 18e-6 : 1e-6;
        labels[i % PIXELS] = OWN;
    }
    struct kernel_args args = {.id = K_LOSS_BWD,
                               .dtype = DT_F16,
                               .geom.loss = {.n = 1,
                                             .c = CLASSES,
                                             .plane = PIXELS,
                                             .ignore_label = 255,
                                             .weight = 1.0,
                                             .n_ranks = 1,
                                             .is_image = true},
                               .in = {put(desc, prob), put(plain(DT_I64, SHAPE(1, 4, 4)), labels)},
                               .out = {put(desc, NULL)},
                               .loss_scale = put(plain(DT_F32, SHAPE_SCALAR), &scale)};
    run(&args, 1);
    CLEANUP(free) double *dx = get(desc, args.out[0]);
    double wanted = -18e-6 / PIXELS * scale;
    assert_true(fabs(dx[OWN * PIXELS] - wanted) < 0.05 * fabs(wanted)); /* 1e-6 as a half */
    backend.free(backend.self, args.out[0]);
    close_device();
}

/* A label that is no class reads nothing and makes the loss NaN: of an image, of rows, of an image that is made larger. */
TEST(a_label_that_is_no_class_makes_no_loss)
{
    static const double LABELS[4] = {1e9};
    const struct loss_geom image = {.n = 1,
                                    .c = 5,
                                    .plane = 4,
                                    .ignore_label = 255,
                                    .weight = 1.0,
                                    .n_ranks = 1,
                                    .is_image = true};
    struct loss_geom rows = image;
    const struct tensor_desc x = {SHAPE(1, 5, 2, 2), DT_F32, ROLE_IMAGE};
    const struct tensor_desc loss = plain(DT_F32, SHAPE_SCALAR);
    open_device(false);
    rows = (struct loss_geom){
        .n = 4, .c = 5, .plane = 1, .ignore_label = LOSS_IGNORE_NONE, .weight = 1.0, .n_ranks = 1};
    struct kernel_args calls[] = {
        {.id = K_LOSS_FWD, .geom.loss = image, .in = {put(x, NULL)}, .out = {NULL, put(x, NULL)}},
        {.id = K_LOSS_FWD,
         .geom.loss = rows,
         .in = {put(plain(DT_F32, SHAPE(4, 5)), NULL)},
         .out = {NULL, put(plain(DT_F32, SHAPE(4, 5)), NULL)}},
        {.id = K_UPSAMPLE_LOSS_FWD,
         .geom.upsample_loss = {.resize = {1, 5, 1, 1, 2, 2, false}, .loss = image},
         .in = {put((struct tensor_desc){SHAPE(1, 5, 1, 1), DT_F32, ROLE_IMAGE}, NULL)},
         .out = {NULL, put(plain(DT_F32, SHAPE(1, 2, 2)), NULL), put(loss, NULL)}}};
    for (EACH(call, calls)) {
        call->dtype = DT_F32;
        call->in[1] = put(plain(DT_I64, SHAPE(4)), LABELS);
        call->out[0] = put(loss, NULL);
        run(call, 1);
        assert_true(isnan(first_of(loss, call->out[0])));
    }
    close_device();
}

/* Backward's mask is that of forward's y, bit for bit, where it is made again from x; many y are nearly 0. */
TEST(a_mask_made_again_is_the_same)
{
    enum { C = 20, COUNT = 2 * C * 9 * 11 };
    const struct tensor_desc image = {SHAPE(2, C, 9, 11), DT_F16, ROLE_IMAGE};
    const struct tensor_desc channel = {SHAPE(C), DT_F32, ROLE_CHANNEL};
    const struct bn_geom geom = {
        .n = 2, .c = C, .plane = 99, .eps = 1e-5, .momentum = 0.1, .has_relu = true, .n_ranks = 1};
    CLEANUP(free) double *x = xcalloc(COUNT, sizeof(*x));
    CLEANUP(free) double *dy = xcalloc(COUNT, sizeof(*dy));
    double gamma[C];
    double beta[C];
    double *grads[2][3];
    struct rng rng;
    rng_init(&rng, 1);
    for (int i = 0; i < COUNT; i++) {
        x[i] = rng_normal(&rng);
        dy[i] = rng_normal(&rng);
        gamma[i % C] = rng_normal(&rng);
        beta[i % C] = 1e-3 * rng_normal(&rng);
    }
    open_device(true);
    struct kernel_args made = {.id = K_BN_FWD,
                               .dtype = DT_F16,
                               .geom.bn = geom,
                               .in = {put(image, x), put(channel, gamma), put(channel, beta)},
                               .out = {put(image, NULL), put(channel, NULL), put(channel, NULL),
                                       put(channel, NULL), put(channel, NULL)}};
    run(&made, 3);
    CLEANUP(free) double *y = get(image, made.out[0]);
    CLEANUP(free) double *mean = get(channel, made.out[1]);
    CLEANUP(free) double *rstd = get(channel, made.out[2]);
    for (int again = 0; again < 2; again++) {
        struct kernel_args args = {
            .id = K_BN_BWD,
            .dtype = DT_F16,
            .geom.bn = geom,
            .in = {put(image, dy), put(image, x), put(channel, gamma), put(channel, mean),
                   put(channel, rstd)},
            .out = {put(image, NULL), put(channel, NULL), put(channel, NULL)}};
        args.in[5 + again] = again ? put(channel, beta) : put(image, y);
        args.has_in = 0x1fU | 1U << (5 + again);
        run(&args, 3);
        for (int i = 0; i < 3; i++) {
            grads[again][i] = get(i == 0 ? image : channel, args.out[i]);
            backend.free(backend.self, args.out[i]);
            backend.free(backend.self, again == 0 ? made.out[i] : NULL);
        }
    }
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(grads[0][i], grads[1][i], (i == 0 ? COUNT : C) * sizeof(double));
        free(grads[0][i]);
        free(grads[1][i]);
    }
    close_device();
}

/* Rows that are no whole vectors or too long, norm and loss over ranks that are not there, depthwise filters other than 3 x 3 at stride 1. */
TEST(what_no_kernel_can_do_is_refused)
{
    static const struct conv_geom FILTER = {.n = 1,
                                            .c = 6,
                                            .h = 9,
                                            .w = 8,
                                            .k = 6,
                                            .r = 3,
                                            .s = 3,
                                            .p = 7,
                                            .q = 6,
                                            .stride_h = 1,
                                            .stride_w = 1,
                                            .dil_h = 1,
                                            .dil_w = 1,
                                            .groups = 6};
    static const struct {
        enum kernel_id id;
        enum dtype dtype;
        int64_t c, n_ranks, filter, stride;
        const char *says; /* NULL: it is taken */
    } ROWS[] = {
        {K_LAYER_NORM_FWD, DT_F32, .c = 4},
        {K_LAYER_NORM_FWD, DT_F32, .c = 6, .says = "1024 at most"},
        {K_LAYER_NORM_FWD, DT_F16, .c = 8},
        {K_LAYER_NORM_FWD, DT_F16, .c = 12, .says = "1024 at most"},
        {K_LAYER_NORM_FWD, DT_F16, .c = 1024},
        {K_LAYER_NORM_FWD, DT_F16, .c = 1032, .says = "1024 at most"},
        {K_LAYER_NORM_FWD, DT_F32, .c = 601, .says = "1024 at most"},
        {K_BN_FWD, DT_F32, .c = 6, .n_ranks = 1},
        {K_BN_FWD, DT_F32, .c = 6, .n_ranks = 4, .says = "4 ranks"},
        {K_LOSS_FWD, DT_F32, .c = 6, .n_ranks = 1},
        {K_LOSS_FWD, DT_F32, .c = 6, .n_ranks = 2, .says = "2 ranks"},
        {K_CONV_FWD, DT_F32, .filter = 3, .stride = 1},
        {K_CONV_FWD, DT_F32, .filter = 3, .stride = 2, .says = "expected 3 x 3 at stride 1"},
        {K_CONV_FWD, DT_F32, .filter = 5, .stride = 1, .says = "expected 3 x 3 at stride 1"},
        {K_CONV_FWD, DT_F32, .filter = 1, .stride = 1, .says = "expected 3 x 3 at stride 1"}};
    open_device(false);
    for (EACH(row, ROWS)) {
        struct kernel_args args = {.id = row->id, .dtype = row->dtype};
        if (row->id == K_LAYER_NORM_FWD) {
            args.geom.layer_norm = (struct layer_norm_geom){.rows = 1, .c = row->c};
        } else if (row->id == K_BN_FWD) {
            args.geom.bn =
                (struct bn_geom){.n = 2, .c = row->c, .plane = 4, .n_ranks = (int)row->n_ranks};
        } else if (row->id == K_LOSS_FWD) {
            args.geom.loss =
                (struct loss_geom){.n = 2, .c = row->c, .plane = 4, .n_ranks = (int)row->n_ranks};
        } else {
            args.geom.conv = FILTER;
            args.geom.conv.r = args.geom.conv.s = row->filter;
            args.geom.conv.stride_h = args.geom.conv.stride_w = row->stride;
        }
        if (row->says) {
            FAILS_WITH(backend.prepare(backend.self, &args, ERR), ERR_ANY, row->says);
        } else {
            PASSES(backend.prepare(backend.self, &args, ERR));
        }
    }
    close_device();
}
