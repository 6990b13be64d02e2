/* SPDX-License-Identifier: Apache-2.0 */
/* One sample's bytes from its source. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "prep/hdf5.h"
#include "prep/packing.h"
#include "prep/tfrecord.h"

void packing_slot_release(void *ptr)
{
    struct packing_slot *slot = ptr;
    image_decoder_release(&slot->decoder);
    file_bytes_release(&slot->file);
    file_bytes_release(&slot->partner);
    if (slot->open_path) {
        fd_close(&slot->fd);
    }
    free(slot->sample);
    free(slot->rows);
    *slot = (struct packing_slot){0};
}

/* Place of the first pixel that is neither a class nor ignored; n where there is none. */
static size_t bad_label(const uint8_t *labels, size_t n, uint32_t n_classes)
{
    uint8_t worst = 0;
    for (size_t idx = 0; idx < n;
         idx++) { /* without a branch: 255 becomes 0, others stay or grow by one */
        uint8_t shifted = (uint8_t)(labels[idx] + 1);
        worst = shifted > worst ? shifted : worst;
    }
    if (worst <= n_classes) {
        return n;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (labels[idx] >= n_classes && labels[idx] != UINT8_MAX) {
            return idx;
        }
    }
    return n;
}

static int decode_labels(const struct tree_source *source, const struct samples *samples,
                         const struct image_sample *sample, struct packing_slot *slot, uint8_t *dst,
                         struct err *err)
{
    const char *path = sample->partner;
    struct pixel_info info = {0};
    size_t n = (size_t)sample->width * sample->height;
    if (tree_source_read(source, path, IMAGE_FILE_BYTES_MAX, &slot->partner, err) < 0) {
        return -1;
    }
    struct str file = (struct str){(const char *)slot->partner.ptr, slot->partner.len};
    if (image_probe(file, true, path, &info, err) < 0) {
        return -1;
    }
    if (info.width != sample->width || info.height != sample->height) {
        return err_set(err, ERR_INTEGRITY, "%s: %u x %u pixels, its image has %u x %u", path,
                       info.width, info.height, sample->width, sample->height);
    }
    if (image_decode_labels(file, &info, dst, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    size_t bad = bad_label(dst, n, samples->n_classes);
    return bad == n
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: label %u at x %zu, y %zu; expected 0 to %u or 255", path, dst[bad],
                         bad % sample->width, bad / sample->width, samples->n_classes - 1);
}

static int decode_image(const struct tree_source *source, const struct samples *samples,
                        const struct image_sample *sample, struct packing_slot *slot, uint8_t *dst,
                        struct err *err)
{
    struct str file;
    if (tree_source_read(source, sample->path, IMAGE_FILE_BYTES_MAX, &slot->file, err) < 0) {
        return -1;
    }
    file = (struct str){(const char *)slot->file.ptr, slot->file.len};
    if (image_decode_rgb(&slot->decoder, file, &sample->info, samples->short_side, dst, err) < 0) {
        return err_wrap(err, "%s", sample->path);
    }
    return sample->partner
               ? decode_labels(source, samples, sample, slot,
                               dst + (size_t)sample->width * sample->height * IMAGE_RGB, err)
               : 0;
}

static int read_record(const struct tree_source *source, const struct samples *samples,
                       const struct image_sample *sample, struct packing_slot *slot, int32_t *row,
                       struct err *err)
{
    uint8_t data[TFRECORD_BYTES_MAX / 16];
    size_t len = (size_t)sample->len + 4;
    if (len > sizeof(data)) {
        return err_set(err, ERR_INTEGRITY, "%s: a record of %u bytes, expected at most %zu",
                       sample->path, sample->len, sizeof(data) - 4);
    }
    if (slot->open_path != sample->path) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        if (slot->open_path) {
            fd_close(&slot->fd);
        }
        slot->open_path = NULL;
        slot->fd = open(fs_join(&arena, source->folder, sample->path), O_RDONLY | O_CLOEXEC);
        if (slot->fd < 0) {
            return err_set(err, ERR_INTEGRITY, "%s: %s", sample->path, err_errno_text(errno));
        }
        slot->open_path = sample->path;
    }
    if (pread(slot->fd, data, len, (off_t)sample->place) != (ssize_t)len) {
        return err_set(err, ERR_INTEGRITY, "%s: offset %" PRIu64 ": the file is truncated",
                       sample->path, sample->place);
    }
    if (tfrecord_check(data, sample->len, err) < 0 ||
        tfrecord_example((struct str){(const char *)data, sample->len}, &samples->shape, row, err) <
            0) {
        return err_wrap(err, "%s: offset %" PRIu64, sample->path, sample->place);
    }
    return 0;
}

int packing_sample(struct packing_from from, const struct image_sample *sample, const int32_t *row,
                   struct packing_slot *slot, uint8_t *dst, struct err *err)
{
    const struct samples *samples = from.samples;
    if (samples->kind != SHARD_TOKENS) {
        return decode_image(from.source, samples, sample, slot, dst, err);
    }
    /* dst is aligned for int32: samples begin at multiples of SHARD_DATA_ALIGN. */
    int32_t *numbers = (int32_t *)(void *)dst;
    if (row) {
        memcpy(numbers, row, sample->bytes);
    } else if (read_record(from.source, samples, sample, slot, numbers, err) < 0) {
        return -1;
    }
    if (tokens_check(&samples->shape, numbers, err) < 0) {
        return err_wrap(err, "%s: %s %" PRIu64, sample->path, row ? "row" : "offset",
                        sample->place);
    }
    return 0;
}

void packing_rows_release(struct packing_rows *rows)
{
    hdf5_close(rows->file);
    *rows = (struct packing_rows){0};
}

int packing_rows_read(struct packing_rows *rows, struct packing_from from, size_t first, size_t n,
                      struct packing_slot *slot, struct err *err)
{
    const struct samples *samples = from.samples;
    size_t row_len = tokens_len(&samples->shape);
    if (slot->rows_len < n * row_len) {
        slot->rows_len = n * row_len;
        slot->rows = xrealloc(slot->rows, slot->rows_len * sizeof(*slot->rows));
    }
    for (size_t idx = first; idx < first + n;) {
        const struct image_sample *sample = &samples->items[idx];
        size_t run = 1;
        if (rows->path != sample->path) {
            CLEANUP(arena) struct arena arena = ARENA_EMPTY;
            packing_rows_release(rows);
            if (hdf5_open(fs_join(&arena, from.source->folder, sample->path), &samples->shape,
                          &rows->file, err) < 0) {
                return err_wrap(err, "%s", sample->path);
            }
            rows->path = sample->path;
        }
        while (idx + run < first + n && samples->items[idx + run].path == sample->path) {
            run++;
        }
        if (sample->place + run > hdf5_n_rows(rows->file)) {
            return err_set(err, ERR_INTEGRITY, "%s: it became shorter while it was read",
                           sample->path);
        }
        if (hdf5_read(rows->file, (uint32_t)sample->place, (uint32_t)run,
                      slot->rows + (idx - first) * row_len, err) < 0) {
            return err_wrap(err, "%s", sample->path);
        }
        idx += run;
    }
    return 0;
}
