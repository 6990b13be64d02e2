/* SPDX-License-Identifier: Apache-2.0 */
/* The host's work for a batch of packed images before a copy to a GPU begins, in both of reperf-train's ways, in turns: the reader's
   threads crop and normalise, and one thread lays the result out as AMP stores it; or the threads only read and check, and the one thread
   copies rectangles. CPU milliseconds a sample, of that one thread and of all. For bench_feed.sh. Arguments: PACK WORKERS BATCH STEPS. */
#include "base/base.h"

#include "backend_cuda/layout.h"
#include "base/arena.h"
#include "data/reader.h"

#include <sys/resource.h>
#include <time.h>

#define SIDE        224
#define CHANNEL_PAD 8
#define PIECE_BYTES ((int64_t)4 << 20) /* as backend_cuda/memory.h has it */

static char piece[PIECE_BYTES];

static double thread_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static double process_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* As upload_on in backend_cuda/memory.c. Bytes that a copy then moves. */
static int64_t lay_out(const struct reader_batch *batch)
{
    const struct tensor_desc desc = {SHAPE(batch->n_samples, 3, SIDE, SIDE), DT_F16, ROLE_IMAGE};
    const struct layout layout = layout_of(&desc, CHANNEL_PAD);
    int64_t step = PIECE_BYTES / 2;
    int64_t count = layout_count(&layout);
    for (int64_t at = 0; at < count; at += step) {
        layout_pack(&layout, batch->input, at, count - at < step ? count - at : step, piece);
    }
    return layout_bytes(&layout);
}

/* As send_rectangle in backend_cuda/images.c. */
static int64_t cut_out(const struct reader_batch *batch)
{
    int64_t filled = 0;
    int64_t all = 0;
    for (int64_t i = 0; i < batch->n_samples; i++) {
        const struct reader_image *image = &batch->images[i];
        const struct augment_plan *plan = &image->plan;
        int64_t row = plan->src_w * 3;
        for (int64_t y = 0; y < plan->src_h; y++) {
            filled = filled + row > PIECE_BYTES ? 0 : filled;
            memcpy(piece + filled,
                   image->pixels + ((plan->src_y + y) * image->size.width + plan->src_x) * 3,
                   (size_t)row);
            filled += row;
        }
        all += plan->src_h * row;
    }
    return all;
}

int main(int argc, char **argv)
{
    struct pack pack;
    struct err err = {0};
    int64_t number[3];
    if (argc != 5 || pack_open(&pack, argv[1], &err) < 0) {
        (void)fprintf(stderr, "feed_rates PACK WORKERS BATCH STEPS %s\n", err.msg);
        return 2;
    }
    for (int i = 0; i < 3; i++) {
        if (str_to_i64(str_of(argv[2 + i]), 1, 100000, &number[i], &err) < 0) {
            (void)fprintf(stderr, "%s\n", err.msg);
            return 2;
        }
    }
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        const struct reader_opts opts = {.pack = &pack,
                                         .recipe = &augment_classes,
                                         .batch = number[1],
                                         .height = SIDE,
                                         .width = SIDE,
                                         .n_ranks = 1,
                                         .n_steps = number[2],
                                         .n_workers = (int)number[0],
                                         .is_raw = is_raw != 0};
        struct reader *reader = NULL;
        double own_ms = 0.0;
        double start_ms = process_ms();
        int64_t bytes = 0;
        bool is_done = reader_open(&reader, &opts, &err) == 0;
        for (int64_t i = 0; i < number[2] && is_done; i++) {
            struct reader_batch batch;
            is_done = reader_next(reader, NULL, &batch, &err) == 0;
            double before_ms = thread_ms();
            bytes += !is_done ? 0 : is_raw ? cut_out(&batch) : lay_out(&batch);
            own_ms += thread_ms() - before_ms;
        }
        if (!is_done) {
            (void)fprintf(stderr, "%s\n", err.msg);
            return 1;
        }
        double samples = (double)(number[1] * number[2]);
        printf("%s %.5f %.5f %.0f\n", is_raw ? "bytes" : "pixels", own_ms / samples,
               (process_ms() - start_ms) / samples, (double)bytes / samples);
        reader_close(reader);
    }
    pack_release(&pack);
    return 0;
}
