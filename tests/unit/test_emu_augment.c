/* SPDX-License-Identifier: Apache-2.0 */
/* Augmentation on the device against data/resample.h, from the same plans, in the emulator. */
#include "unit.h"

#include <math.h>

#include "backend_cuda/augment.h"
#include "backend_cuda/layout.h"
#include "base/rng.h"
#include "data/augment.h"
#include "data/resample.h"
#include "emu_unit.h"
#include "tests/cuda/elements.h"

#define N_IMAGES  3
#define PIXEL_MAX (90 * 90)

struct picture {
    struct augment_size size;
    uint8_t pixels[PIXEL_MAX * 3], labels[PIXEL_MAX];
};

static void draw(struct picture *picture, struct rng *rng)
{
    for (int i = 0; i < PIXEL_MAX * 3; i++) {
        picture->pixels[i] = (uint8_t)rng_below(rng, 256);
    }
    for (int i = 0; i < PIXEL_MAX; i++) {
        picture->labels[i] = (uint8_t)rng_below(rng, 19);
    }
}

static struct augment_image image_of(const struct augment_plan *plan, const struct picture *picture)
{
    size_t count = (size_t)(picture->size.height * picture->size.width);
    return (struct augment_image){.pixels = device_copy(picture->pixels, count * 3),
                                  .labels = device_copy(picture->labels, count),
                                  .height = (int32_t)picture->size.height,
                                  .width = (int32_t)picture->size.width,
                                  .src_y = (int32_t)plan->src_y,
                                  .src_x = (int32_t)plan->src_x,
                                  .src_h = (int32_t)plan->src_h,
                                  .src_w = (int32_t)plan->src_w,
                                  .res_h = (int32_t)plan->res_h,
                                  .res_w = (int32_t)plan->res_w,
                                  .off_y = (int32_t)plan->off_y,
                                  .off_x = (int32_t)plan->off_x,
                                  .is_flipped = plan->is_flipped,
                                  .is_antialiased = plan->is_antialiased};
}

static void compare_image(struct resample *scratch, const struct resample_job *job,
                          const struct picture *picture, const double *actual,
                          const int64_t *labels, bool is_amp)
{
    int64_t plane = job->out.height * job->out.width;
    float *pixels = xcalloc((size_t)(3 * plane), sizeof(float));
    int64_t *wanted = xcalloc((size_t)plane, sizeof(int64_t));
    resample_pixels(scratch, job, picture->pixels, pixels);
    resample_labels(scratch, job, picture->labels, 255, wanted);
    double off = 0.0;
    double norm = 0.0;
    for (int64_t i = 0; i < 3 * plane; i++) {
        off += (actual[i] - (double)pixels[i]) * (actual[i] - (double)pixels[i]);
        norm += (double)pixels[i] * (double)pixels[i];
    }
    assert_true(sqrt(off) <= (is_amp ? TOLERANCE_F16 : TOLERANCE_F32) * sqrt(norm));
    assert_memory_equal(labels, wanted, (size_t)plane * sizeof(int64_t));
    free(pixels);
    free(wanted);
}

/* The whole batch on the device, checked against the images one by one. */
static void check_batch_of(const struct augment_recipe *recipe, struct augment_size out,
                           bool is_amp, uint64_t seed, int n_taps_short)
{
    static const struct augment_size sizes[N_IMAGES] = {{40, 61}, {90, 33}, {17, 19}};
    static struct picture pictures[N_IMAGES];
    struct augment_plan plans[N_IMAGES];
    struct augment_image images[N_IMAGES];
    struct cuda cuda = {.channel_pad = is_amp ? 8 : 4, .is_amp = is_amp, .n_streams = 1};
    struct augment_batch batch = {
        .n = N_IMAGES, .height = (int)out.height, .width = (int)out.width, .ignored = 255};
    int64_t plane = out.height * out.width;
    const struct tensor_desc desc = {SHAPE(N_IMAGES, 3, out.height, out.width),
                                     is_amp ? DT_F16 : DT_F32, ROLE_IMAGE};
    struct rng rng;
    rng_init(&rng, seed);
    OK(cudaStreamCreate(&cuda.streams[0]));
    batch.stream = cuda.streams[0];
    for (int i = 0; i < N_IMAGES; i++) {
        pictures[i].size = sizes[i];
        draw(&pictures[i], &rng);
        plans[i] = augment_plan(recipe, sizes[i], out, seed + (uint64_t)i);
        images[i] = image_of(&plans[i], &pictures[i]);
        int taps = augment_taps(&images[i]);
        batch.n_taps = taps > batch.n_taps ? taps : batch.n_taps;
    }
    batch.n_taps -= n_taps_short;
    memcpy(batch.mean, recipe->mean, sizeof(batch.mean));
    memcpy(batch.std, recipe->std, sizeof(batch.std));
    batch.images = device_copy(images, sizeof(images));
    const struct layout layout = layout_of(&desc, cuda.channel_pad);
    const size_t bytes = (size_t)layout_bytes(&layout);
    void *result = NULL;
    void *workspace = NULL;
    void *labels = NULL;
    OK(cudaMalloc(&result, bytes));
    OK(cudaMalloc(&workspace, (size_t)cuda_augment_workspace(&batch)));
    OK(cudaMalloc(&labels, (size_t)(N_IMAGES * plane) * sizeof(int64_t)));
    cuda_augment(&cuda, &batch, workspace, result, labels);
    OK(cudaStreamSynchronize(cuda.streams[0]));
    assert_int_equal(cuda.err.code, ERR_NONE);

    void *raw = xcalloc(bytes, 1);
    void *again = xcalloc(bytes, 1);
    void *elements = xcalloc((size_t)layout_count(&layout), sizeof(float));
    OK(cudaMemcpy(raw, result, bytes, cudaMemcpyDeviceToHost));
    layout_unpack(&layout, raw, 0, layout_count(&layout), elements);
    layout_pack(&layout, elements, 0, layout_count(&layout), again);
    assert_memory_equal(again, raw, bytes); /* what rounding up adds is 0 */
    double *actual = to_doubles(elements, N_IMAGES * 3 * plane, desc.dtype);
    int64_t *actual_labels = xcalloc((size_t)(N_IMAGES * plane), sizeof(int64_t));
    OK(cudaMemcpy(actual_labels, labels, (size_t)(N_IMAGES * plane) * sizeof(int64_t),
                  cudaMemcpyDeviceToHost));
    struct resample scratch = {0};
    for (int i = 0; i < N_IMAGES; i++) {
        struct resample_job job = {.plan = &plans[i], .image = sizes[i], .out = out};
        memcpy(job.mean, recipe->mean, sizeof(job.mean));
        memcpy(job.std, recipe->std, sizeof(job.std));
        if (augment_taps(&images[i]) <= batch.n_taps) {
            compare_image(&scratch, &job, &pictures[i], actual + i * 3 * plane,
                          actual_labels + i * plane, is_amp);
        } else {
            assert_true(isnan(actual[i * 3 * plane]));
        }
        OK(cudaFree((void *)(uintptr_t)images[i].pixels));
        OK(cudaFree((void *)(uintptr_t)images[i].labels));
    }
    resample_release(&scratch);
    free(actual);
    free(actual_labels);
    free(raw);
    free(again);
    free(elements);
    OK(cudaFree((void *)(uintptr_t)batch.images));
    OK(cudaFree(result));
    OK(cudaFree(workspace));
    OK(cudaFree(labels));
    OK(cudaStreamDestroy(cuda.streams[0]));
}

static void check_batch(const struct augment_recipe *recipe, struct augment_size out, bool is_amp,
                        uint64_t seed)
{
    check_batch_of(recipe, out, is_amp, seed, 0);
}

/* Too little room for the weights gives no picture, and damages no other image. */
TEST(test_no_room)
{
    check_batch_of(&augment_classes, (struct augment_size){12, 9}, false, 3, 1);
}

TEST(test_recipes)
{
    static const struct augment_recipe *const recipes[] = {&augment_classes, &augment_segments,
                                                           &augment_segments_mmseg};
    for (size_t i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            check_batch(recipes[i], (struct augment_size){32, 24}, seed % 2 == 0, seed);
        }
    }
}

/* What evaluation does: the short side resized, the centre cut out. */
TEST(test_centre_crop)
{
    struct augment_recipe recipe = augment_classes;
    recipe.kind = AUGMENT_CENTRE_CROP;
    for (int is_amp = 0; is_amp < 2; is_amp++) {
        check_batch(&recipe, (struct augment_size){9, 9}, is_amp != 0, 5);
        check_batch(&recipe, (struct augment_size){50, 50}, is_amp != 0, 6);
    }
    recipe.short_ratio = 0.0; /* larger than the image: padded */
    check_batch(&recipe, (struct augment_size){50, 50}, false, 7);
}
