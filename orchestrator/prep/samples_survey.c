/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/progress.h"
#include "prep/hdf5.h"
#include "prep/ordered.h"
#include "prep/samples.h"
#include "prep/tfrecord.h"

#include <fcntl.h>

#include "base/fs.h"

#define HEAD_BYTES     (16u << 10) /* most headers end before; else the whole file is read */
#define IMAGES_PER_JOB 256

struct samples_survey {
    struct arena *arena; /* for the caller's thread */
    const struct samples_opts *opts;
    const struct dataset_group *group;
    struct samples *samples;
    struct progress progress;
    /* Records: the files, and what is found in them. */
    struct image_sample *files;
    size_t n_files;
};

/* ---- images ---- */

struct image_slot {
    struct file_bytes bytes;
};

static void image_slot_release(void *slot)
{
    file_bytes_release(&((struct image_slot *)slot)->bytes);
}

static int check_size(const struct dataset_group *group, const char *path,
                      const struct pixel_info *info, struct err *err)
{
    if ((group->width >= 0 && info->width != (uint64_t)group->width) ||
        (group->height >= 0 && info->height != (uint64_t)group->height)) {
        return err_set(err, ERR_INTEGRITY, "%s: %u x %u pixels, expected %" PRId64 " x %" PRId64,
                       path, info->width, info->height, group->width, group->height);
    }
    return 0;
}

static int probe(const struct samples_survey *s, struct image_sample *sample,
                 struct file_bytes *bytes, struct err *err)
{
    bool is_all = false;
    if (tree_source_head(s->opts->source, sample->path, HEAD_BYTES, bytes, &is_all, err) < 0) {
        return -1;
    }
    struct str head = (struct str){(const char *)bytes->ptr, bytes->len};
    if (image_probe(head, is_all, sample->path, &sample->info, err) == 0) {
        return 0;
    }
    if (err->code != ERR_PARSE) {
        return -1;
    }
    *err = (struct err){0}; /* the header goes on: a large profile or preview */
    if (tree_source_head(s->opts->source, sample->path, IMAGE_FILE_BYTES_MAX, bytes, &is_all, err) <
        0) {
        return -1;
    }
    head = (struct str){(const char *)bytes->ptr, bytes->len};
    return image_probe(head, true, sample->path, &sample->info, err);
}

static int survey_image(const struct samples_survey *s, struct image_sample *sample,
                        struct file_bytes *bytes, struct err *err)
{
    if (probe(s, sample, bytes, err) < 0 ||
        check_size(s->group, sample->path, &sample->info, err) < 0) {
        return -1;
    }
    image_packed_size(&sample->info, s->samples->short_side, &sample->width, &sample->height);
    uint64_t pixels = (uint64_t)sample->width * sample->height;
    sample->bytes = (uint32_t)(pixels * (s->samples->kind == SHARD_SEGMENTS ? 4 : 3));
    return 0;
}

static int images_work(void *ctx, size_t job, void *slot, const atomic_bool *is_cancelled,
                       struct err *err)
{
    const struct samples_survey *s = ctx;
    size_t end = (job + 1) * IMAGES_PER_JOB;
    end = end < s->samples->n ? end : s->samples->n;
    for (size_t idx = job * IMAGES_PER_JOB; idx < end; idx++) {
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (survey_image(s, &s->samples->items[idx], &((struct image_slot *)slot)->bytes, err) <
            0) {
            return -1;
        }
    }
    return 0;
}

static int images_done(void *ctx, size_t job, void *slot UNUSED, struct err *err UNUSED)
{
    struct samples_survey *s = ctx;
    progress_set(&s->progress, (job + 1) * IMAGES_PER_JOB);
    return 0;
}

static void count_traits(struct samples *samples, const struct dataset_group *group)
{
    for (size_t idx = 0; idx < samples->n; idx++) {
        const struct pixel_info *info = &samples->items[idx].info;
        for (unsigned trait = 0; trait < IMAGE_TRAITS; trait++) {
            samples->n_traits[trait] += info->traits >> trait & 1;
        }
        samples->n_other_format += (group->format == FILE_JPEG && info->format != IMAGE_JPEG) ||
                                   (group->format == FILE_PNG && info->format != IMAGE_PNG);
    }
}

static int survey_images(struct samples_survey *s, struct err *err)
{
    struct ordered spec = {.ctx = s,
                           .n_jobs = (s->samples->n + IMAGES_PER_JOB - 1) / IMAGES_PER_JOB,
                           .n_threads = s->opts->n_threads,
                           .slot_bytes = sizeof(struct image_slot),
                           .slot_release = image_slot_release,
                           .work = images_work,
                           .done = images_done};
    progress_start(&s->progress, clock_system(), "look at", "images", s->samples->n);
    int result = ordered_run(&spec, err);
    progress_end(&s->progress);
    count_traits(s->samples, s->group);
    return result;
}

/* ---- records ---- */

struct record_slot {
    struct {
        struct image_sample *items;
        size_t n, n_max;
    } found;
    uint8_t *data; /* owned: one record */
};

static void record_slot_release(void *ptr)
{
    struct record_slot *slot = ptr;
    VEC_RELEASE(&slot->found);
    free(slot->data);
}

static int index_records(int fd, struct record_slot *slot, const struct image_sample *file,
                         struct err *err)
{
    uint64_t offset = 0;
    for (;;) {
        uint8_t header[RECORD_HEAD_BYTES];
        uint64_t len = 0;
        size_t got = 0;
        if (fs_fill(fd, header, sizeof(header), file->path, &got, err) < 0) {
            return -1;
        }
        if (got == 0) {
            return 0;
        }
        if (got < sizeof(header)) {
            return err_set(err, ERR_INTEGRITY, "offset %" PRIu64 ": the file is truncated", offset);
        }
        if (tfrecord_header(header, &len, err) < 0) {
            return err_wrap(err, "offset %" PRIu64, offset);
        }
        if (fs_fill(fd, slot->data, (size_t)len + 4, file->path, &got, err) < 0) {
            return -1;
        }
        if (got != len + 4) {
            return err_set(err, ERR_INTEGRITY, "offset %" PRIu64 ": the file is truncated", offset);
        }
        if (tfrecord_check(slot->data, (size_t)len, err) < 0) {
            return err_wrap(err, "offset %" PRIu64, offset);
        }
        struct image_sample sample = *file;
        sample.place = offset + RECORD_HEAD_BYTES;
        sample.len = (uint32_t)len;
        VEC_PUSH(&slot->found, sample);
        offset += len + TFRECORD_FRAME_BYTES;
    }
}

static int index_file(const struct samples_survey *s, const struct image_sample *file,
                      struct record_slot *slot, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(fd)
    int fd = open(fs_join(&arena, s->opts->source->folder, file->path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_set(err, ERR_INTEGRITY, "%s: cannot be opened", file->path);
    }
    slot->data = slot->data ? slot->data : xmalloc(TFRECORD_BYTES_MAX + 4);
    return index_records(fd, slot, file, err) < 0 ? err_wrap(err, "%s", file->path) : 0;
}

static int records_work(void *ctx, size_t job, void *ptr, const atomic_bool *is_cancelled UNUSED,
                        struct err *err)
{
    const struct samples_survey *s = ctx;
    struct record_slot *slot = ptr;
    const struct image_sample *file = &s->files[job];
    slot->found.n = 0;
    if (tree_source_check(s->opts->source, file->path, err) < 0) {
        return -1;
    }
    return s->samples->format == FILE_TFRECORD ? index_file(s, file, slot, err) : 0;
}

static int count_rows(struct samples_survey *s, const struct image_sample *file, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(hdf5) struct hdf5_file *hdf5 = NULL;
    if (hdf5_open(fs_join(&arena, s->opts->source->folder, file->path), &s->samples->shape, &hdf5,
                  err) < 0) {
        return err_wrap(err, "%s", file->path);
    }
    for (uint32_t row = 0; row < hdf5_n_rows(hdf5); row++) {
        struct image_sample sample = *file;
        sample.place = row;
        VEC_PUSH(s->samples, sample);
    }
    return 0;
}

static int records_done(void *ctx, size_t job, void *ptr, struct err *err)
{
    struct samples_survey *s = ctx;
    const struct record_slot *slot = ptr;
    size_t before = s->samples->n;
    progress_set(&s->progress, job + 1);
    if (s->samples->format == FILE_HDF5 && count_rows(s, &s->files[job], err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < slot->found.n; idx++) {
        VEC_PUSH(s->samples, slot->found.items[idx]);
    }
    if (s->samples->n == before) {
        return err_set(err, ERR_INTEGRITY, "%s: no record in it", s->files[job].path);
    }
    return 0;
}

static int survey_records(struct samples_survey *s, struct err *err)
{
    struct ordered spec = {.ctx = s,
                           .n_jobs = s->samples->n,
                           .n_threads = s->opts->n_threads,
                           .slot_bytes = sizeof(struct record_slot),
                           .slot_release = record_slot_release,
                           .work = records_work,
                           .done = records_done};
    if (s->samples->format != FILE_HDF5 && s->samples->format != FILE_TFRECORD) {
        return err_set(err, ERR_MANIFEST, "group %.*s: records are HDF5 or TFRecord files",
                       STR_ARG(s->group->name));
    }
    s->n_files = s->samples->n;
    s->files = arena_array(s->arena, struct image_sample, s->n_files);
    for (size_t idx = 0; idx < s->n_files; idx++) {
        s->files[idx] = s->samples->items[idx];
        s->files[idx].bytes = (uint32_t)(tokens_len(&s->samples->shape) * sizeof(int32_t));
    }
    s->samples->n = 0; /* from files to records */
    progress_start(&s->progress, clock_system(), "look at", "files", s->n_files);
    int result = ordered_run(&spec, err);
    progress_end(&s->progress);
    return result;
}

int samples_survey(struct arena *arena, const struct samples_opts *opts,
                   const struct dataset_group *group, struct samples *samples, struct err *err)
{
    struct samples_survey s = {.arena = arena, .opts = opts, .group = group, .samples = samples};
    return samples->kind == SHARD_TOKENS ? survey_records(&s, err) : survey_images(&s, err);
}
