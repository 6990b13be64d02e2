/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a batch of images, received as bytes, into the network's input (augment.cu). Only the rectangle that is used of each image is
   copied: the host copies its rows into pinned memory, the copying stream transfers them and runs the kernel after them, group by
   group, as many images as fit the device's buffer. A group is all on that one stream, so the next may reuse the memory. */
#include "base/base.h"

#include "backend_cuda/augment.h"
#include "backend_cuda/memory.h"
#include "base/arena.h"

#define GROUP_BYTES     ((int64_t)32 << 20) /* some hundred of ImageNet's crops */
#define WORKSPACE_BYTES ((int64_t)16 << 20)
#define GROUP_MAX       1024
#define ALIGN           256
#define PIXEL_BYTES     3

struct cuda_images {
    char *bytes; /* on the device: a table, then rectangles; memory.c owns it */
    int64_t bytes_max;
    void *workspace;             /* likewise; WORKSPACE_BYTES */
    struct augment_image *table; /* owned, GROUP_MAX */
    int64_t group_max;
};

static int64_t round_up(int64_t value)
{
    return (value + ALIGN - 1) / ALIGN * ALIGN;
}

/* Rows on their way into one stretch of the device's memory. */
struct sender {
    struct cuda *cuda;
    const struct cuda_piece *piece; /* NULL: none begun */
    int64_t filled;
    char *to; /* of the piece's first byte */
};

static void flush(struct sender *sender)
{
    if (sender->piece) {
        cuda_send_piece(sender->cuda, sender->piece, sender->to, sender->filled,
                        cuda_copying(sender->cuda));
        sender->to += sender->filled;
        sender->piece = NULL;
        sender->filled = 0;
    }
}

static void send(struct sender *sender, const void *from, int64_t n)
{
    const char *at = from;
    while (n > 0) {
        if (!sender->piece) {
            sender->piece = cuda_free_piece(sender->cuda);
        }
        int64_t left = CUDA_PIECE_BYTES - sender->filled;
        int64_t part = n < left ? n : left;
        memcpy((char *)sender->piece->host + sender->filled, at, (size_t)part);
        sender->filled += part;
        at += part;
        n -= part;
        if (sender->filled == CUDA_PIECE_BYTES) {
            flush(sender);
        }
    }
}

static void send_rectangle(struct sender *sender, const struct image_cut *cut, const uint8_t *from,
                           int64_t elem_bytes)
{
    for (int64_t y = 0; y < cut->src_h; y++) {
        send(sender, from + ((cut->src_y + y) * cut->width + cut->src_x) * elem_bytes,
             cut->src_w * elem_bytes);
    }
}

static int64_t rectangle_bytes(const struct image_cut *cut)
{
    return cut->src_h * cut->src_w * (PIXEL_BYTES + (cut->labels ? 1 : 0));
}

/* As stored on the device from `at` on: the rectangle alone. */
static struct augment_image image_of(const struct image_cut *cut, const char *at)
{
    const uint8_t *pixels = (const uint8_t *)at;
    return (struct augment_image){
        .pixels = pixels,
        .labels = cut->labels ? pixels + cut->src_h * cut->src_w * PIXEL_BYTES : NULL,
        .height = (int32_t)cut->src_h,
        .width = (int32_t)cut->src_w,
        .src_h = (int32_t)cut->src_h,
        .src_w = (int32_t)cut->src_w,
        .res_h = (int32_t)cut->res_h,
        .res_w = (int32_t)cut->res_w,
        .off_y = (int32_t)cut->off_y,
        .off_x = (int32_t)cut->off_x,
        .is_flipped = cut->is_flipped,
        .is_antialiased = cut->is_antialiased,
    };
}

/* Fills the table with images from `first` on, as many as there is room for: their number, and the largest number of taps. */
static int64_t fill_table(const struct cuda_images *images, const struct image_batch *batch,
                          int64_t first, struct augment_batch *group)
{
    int64_t at = round_up(GROUP_MAX * (int64_t)sizeof(*images->table));
    int64_t n = 0;
    while (first + n < batch->n && n < images->group_max) {
        const struct image_cut *cut = &batch->images[first + n];
        struct augment_batch wider = *group;
        images->table[n] = image_of(cut, images->bytes + at);
        int taps = augment_taps(&images->table[n]);
        wider.n = (int)n + 1;
        wider.n_taps = taps > group->n_taps ? taps : group->n_taps;
        if (at + rectangle_bytes(cut) > images->bytes_max ||
            cuda_augment_workspace(&wider) > WORKSPACE_BYTES) {
            break;
        }
        *group = wider;
        at += rectangle_bytes(cut);
        n++;
    }
    return n;
}

static void send_group(struct cuda *cuda, const struct image_batch *batch, int64_t first,
                       const struct augment_batch *group)
{
    const struct cuda_images *images = cuda->images;
    struct sender table = {.cuda = cuda, .to = images->bytes};
    struct sender rows = {
        .cuda = cuda, .to = images->bytes + round_up(GROUP_MAX * (int64_t)sizeof(*images->table))};
    send(&table, images->table, group->n * (int64_t)sizeof(*images->table));
    flush(&table);
    for (int64_t i = first; i < first + group->n; i++) {
        const struct image_cut *cut = &batch->images[i];
        send_rectangle(&rows, cut, cut->pixels, PIXEL_BYTES);
        if (cut->labels) {
            send_rectangle(&rows, cut, cut->labels, 1);
        }
    }
    flush(&rows);
}

static void images_async(void *self, const struct image_batch *batch,
                         const struct image_place *pixels, const struct image_place *labels)
{
    struct cuda *cuda = self;
    const struct cuda_images *images = cuda->images;
    int64_t plane = batch->height * batch->width;
    ASSERT(images && !cuda_is_capturing(cuda));
    if (cuda->err.code != ERR_NONE || !cuda_stage_begin(cuda, pixels->staging) ||
        (labels && !cuda_stage_begin(cuda, labels->staging))) {
        return;
    }
    for (int64_t first = 0; first < batch->n && cuda->err.code == ERR_NONE;) {
        struct augment_batch group = {.images = (const struct augment_image *)images->bytes,
                                      .height = (int)batch->height,
                                      .width = (int)batch->width,
                                      .ignored = batch->ignored,
                                      .stream = cuda_copying(cuda)};
        memcpy(group.mean, batch->mean, sizeof(group.mean));
        memcpy(group.std, batch->std, sizeof(group.std));
        int64_t n = fill_table(images, batch, first, &group);
        if (n == 0) {
            const struct image_cut *cut = &batch->images[first];
            int failed = err_set(&cuda->err, ERR_WORKLOAD,
                                 "%" PRId64 "x%" PRId64 " pixels of an image to %" PRId64
                                 "x%" PRId64 " need more memory than was reserved",
                                 cut->src_h, cut->src_w, cut->res_h, cut->res_w);
            ASSERT(failed < 0);
            return;
        }
        send_group(cuda, batch, first, &group);
        cuda_augment(cuda, &group, images->workspace,
                     (char *)pixels->staging + first * (pixels->bytes / batch->n),
                     labels ? (int64_t *)labels->staging + first * plane : NULL);
        first += n;
    }
    cuda_stage_end(cuda, pixels->staging, pixels->device, pixels->bytes);
    if (labels) {
        cuda_stage_end(cuda, labels->staging, labels->device, labels->bytes);
    }
}

static int open_images(void *self, int64_t image_bytes_max, struct err *err)
{
    struct cuda *cuda = self;
    int64_t table = round_up(GROUP_MAX * (int64_t)sizeof(struct augment_image));
    int64_t least = table + image_bytes_max;
    int64_t bytes = least > GROUP_BYTES ? least : GROUP_BYTES;
    ASSERT(!cuda->images);
    struct cuda_images *images = xcalloc(1, sizeof(*images));
    cuda->images = images;
    images->bytes_max = bytes;
    images->group_max = GROUP_MAX;
    images->table = xcalloc(GROUP_MAX, sizeof(*images->table));
    images->bytes = cuda_alloc(self, bytes);
    images->workspace = cuda_alloc(self, WORKSPACE_BYTES);
    return images->bytes && images->workspace
               ? 0
               : err_set(err, ERR_WORKLOAD, "no memory for %" PRId64 " bytes of images on the GPU",
                         bytes + WORKSPACE_BYTES);
}

void cuda_images_set_group(struct cuda *cuda, int64_t n)
{
    ASSERT(n > 0 && n <= GROUP_MAX);
    cuda->images->group_max = n;
}

void cuda_images_fill(struct backend *backend)
{
    backend->async.open_images = open_images;
    backend->async.images_async = images_async;
}

void cuda_images_close(struct cuda *cuda)
{
    if (cuda->images) {
        free(
            cuda->images
                ->table); /* device memory is freed with everything else that was allocated there */
        free(cuda->images);
        cuda->images = NULL;
    }
}
