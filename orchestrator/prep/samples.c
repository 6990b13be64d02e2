/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/samples.h"

#include "base/fs.h"
#include "base/progress.h"
#include "prep/hdf5.h"
#include "prep/ordered.h"

/* The class of an image: the place of its folder among the folders of its group, by name; or, where all lie in one folder, a
   line of the development kit's list, whose numbers classes.txt turns into WordNet ids, and the place of that among those of
   all classes. */

#define TRUTH_BYTES_MAX   (64u << 20)
#define CLASSES_BYTES_MAX (1u << 20)

static struct str folder_of(struct str path)
{
    path = str_rcut(path, 0, "/");
    return path.len ? str_sub(path, 0, path.len - 1) : path;
}

static int check_n_classes(const struct samples *samples, const struct dataset_group *images,
                           size_t n_folders, bool is_synthetic, struct err *err)
{
    if (!is_synthetic && images->n_folders >= 0 && (uint64_t)images->n_folders != n_folders) {
        return err_set(err, ERR_INTEGRITY, "group %.*s: %zu folders, expected %" PRId64,
                       STR_ARG(images->name), n_folders, images->n_folders);
    }
    if (n_folders > samples->n_classes) {
        return err_set(err, ERR_INTEGRITY, "group %.*s: %zu folders, expected at most %u classes",
                       STR_ARG(images->name), n_folders, samples->n_classes);
    }
    return 0;
}

static int label_by_folder(struct arena *arena, const struct samples_opts *opts,
                           const struct dataset_group *images, struct samples *samples,
                           struct err *err)
{
    struct str *folders = arena_array(arena, struct str, samples->n);
    size_t n_folders = 0;
    for (size_t idx = 0; idx < samples->n; idx++) {
        folders[idx] = folder_of(str_of(samples->items[idx].path));
    }
    qsort(folders, samples->n, sizeof(*folders), str_cmp_first);
    for (size_t idx = 0; idx < samples->n; idx++) {
        if (n_folders == 0 || !str_eq(folders[n_folders - 1], folders[idx])) {
            folders[n_folders++] = folders[idx];
        }
    }
    if (check_n_classes(samples, images, n_folders, opts->is_synthetic, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < samples->n; idx++) {
        struct str folder = folder_of(str_of(samples->items[idx].path));
        const struct str *at =
            bsearch(&folder, folders, n_folders, sizeof(*folders), str_cmp_first);
        ASSERT(at != NULL);
        samples->items[idx].label = (int32_t)(at - folders);
    }
    return 0;
}

/* ---- the development kit ---- */

int class_list_read(struct arena *arena, const char *dataset_path, struct class_list *ret_classes,
                    struct err *err)
{
    const char *path = class_list_path(arena, dataset_path);
    struct class_list classes = {0};
    struct str text, line;
    if (fs_read(arena, path, CLASSES_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    classes.ids = arena_array(arena, struct str, text.len + 1);
    while (str_next(&text, '\n', &line)) {
        if (line.len && line.ptr[0] != '#') {
            classes.ids[classes.n++] = line;
        }
    }
    classes.sorted = arena_array(arena, struct str, classes.n + 1);
    memcpy(classes.sorted, classes.ids, classes.n * sizeof(classes.ids[0]));
    qsort(classes.sorted, classes.n, sizeof(classes.sorted[0]), str_cmp_first);
    for (size_t idx = 1; idx < classes.n; idx++) {
        if (str_eq(classes.sorted[idx - 1], classes.sorted[idx])) {
            return err_set(err, ERR_MANIFEST, "%s: %.*s stands twice", path,
                           STR_ARG(classes.sorted[idx]));
        }
    }
    *ret_classes = classes;
    return 0;
}

const char *class_list_path(struct arena *arena, const char *dataset_path)
{
    return arena_printf(arena, "%.*sclasses.txt", STR_ARG(str_rcut(str_of(dataset_path), 0, "/")));
}

static int read_lines(struct str text, const char *path, const struct class_list *classes,
                      struct samples *samples, struct err *err)
{
    struct str line;
    size_t n = 0;
    while (str_next(&text, '\n', &line) && (line.len || text.ptr)) {
        int64_t number = 0;
        if (str_to_i64(line, 1, (int64_t)classes->n, &number, ERR_IGNORED) < 0) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: line %zu: \"%.*s\" is not the number of a class", path, n + 1,
                           (int)(line.len < 40 ? line.len : 40), line.ptr);
        }
        if (n < samples->n) {
            const struct str *at = bsearch(&classes->ids[number - 1], classes->sorted, classes->n,
                                           sizeof(*at), str_cmp_first);
            samples->items[n].label = (int32_t)(at - classes->sorted);
        }
        n++;
    }
    if (n != samples->n) {
        return err_set(err, ERR_INTEGRITY, "%s: %zu lines for %zu images", path, n, samples->n);
    }
    return 0;
}

static int label_by_list(struct arena *arena, const struct samples_opts *opts,
                         const struct dataset_group *images, struct samples *samples,
                         struct err *err)
{
    const struct dataset_group *list = dataset_group_find(opts->dataset, images->split, ROLE_LABEL);
    struct file_bytes bytes = {0};
    struct class_list classes;
    if (!list || list->format != FILE_TEXT || str_find(list->glob, STR_LIT("*")) >= 0) {
        return err_set(err, ERR_MANIFEST,
                       "group %.*s: all images lie in one folder and no text names their classes",
                       STR_ARG(images->name));
    }
    const char *path = str_z(arena, list->glob);
    if (class_list_read(arena, opts->dataset_path, &classes, err) < 0) {
        return -1;
    }
    if (classes.n != samples->n_classes) {
        return err_set(err, ERR_MANIFEST, "%s: %zu classes, expected %u",
                       class_list_path(arena, opts->dataset_path), classes.n, samples->n_classes);
    }
    int result = tree_source_read(opts->source, path, TRUTH_BYTES_MAX, &bytes, err);
    if (result == 0) {
        struct str text = {(const char *)bytes.ptr, bytes.len};
        result = read_lines(text, path, &classes, samples, err);
    }
    file_bytes_release(&bytes);
    return result;
}

/* For samples.c: the class of each image. */
static int samples_label(struct arena *arena, const struct samples_opts *opts,
                         const struct dataset_group *images, struct samples *samples,
                         struct err *err)
{
    struct str first = folder_of(str_of(samples->items[0].path));
    for (size_t idx = 1; idx < samples->n; idx++) {
        if (!str_eq(folder_of(str_of(samples->items[idx].path)), first)) {
            return label_by_folder(arena, opts, images, samples, err);
        }
    }
    /* One folder only: a class of its own where the glob has a folder for each. */
    return str_find(images->glob, STR_LIT("*/")) >= 0
               ? label_by_folder(arena, opts, images, samples, err)
               : label_by_list(arena, opts, images, samples, err);
}

/* ---- headers and records, on all cores ---- */

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

static int records_work(void *ctx, size_t job, void *slot UNUSED,
                        const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    const struct samples_survey *s = ctx;
    return tree_source_check(s->opts->source, s->files[job].path, err);
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

static int records_done(void *ctx, size_t job, void *slot UNUSED, struct err *err)
{
    struct samples_survey *s = ctx;
    size_t before = s->samples->n;
    progress_set(&s->progress, job + 1);
    if (count_rows(s, &s->files[job], err) < 0) {
        return -1;
    }
    return s->samples->n > before
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: no record in it", s->files[job].path);
}

static int survey_records(struct samples_survey *s, struct err *err)
{
    struct ordered spec = {.ctx = s,
                           .n_jobs = s->samples->n,
                           .n_threads = s->opts->n_threads,
                           .work = records_work,
                           .done = records_done};
    if (s->group->format != FILE_HDF5) {
        return err_set(err, ERR_MANIFEST, "group %.*s: records are packed out of HDF5 files alone",
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

static int survey(struct arena *arena, const struct samples_opts *opts,
                  const struct dataset_group *group, struct samples *samples, struct err *err)
{
    struct samples_survey s = {.arena = arena, .opts = opts, .group = group, .samples = samples};
    return samples->kind == SHARD_TOKENS ? survey_records(&s, err) : survey_images(&s, err);
}

/* ---- all ---- */

#define ORDER_TEXT_MAX 8192

void samples_release(struct samples *samples)
{
    free(samples->items);
    *samples = (struct samples){0};
}

/* The files of one group, in the order of their paths. */
static int find_files(const struct samples_opts *opts, const struct dataset_group *group,
                      const struct fs_names *paths, struct samples *samples, struct err *err)
{
    for (size_t idx = 0; idx < paths->n; idx++) {
        if (dataset_group_of(opts->dataset, str_of(paths->items[idx])) == group) {
            VEC_PUSH(samples, (struct image_sample){.path = paths->items[idx], .label = -1});
        }
    }
    if (!samples->n) {
        return err_set(err, ERR_INTEGRITY, "no file of group %.*s (%.*s) is in the tree",
                       STR_ARG(group->name), STR_ARG(group->glob));
    }
    if (!opts->is_synthetic && group->n_files >= 0 && (uint64_t)group->n_files != samples->n) {
        return err_set(err, ERR_INTEGRITY, "group %.*s: %zu files, expected %" PRId64,
                       STR_ARG(group->name), samples->n, group->n_files);
    }
    return 0;
}

static const struct dataset_group *labels_of(const struct dataset *dataset,
                                             const struct dataset_group *images)
{
    for (size_t idx = 0; idx < dataset->n_groups; idx++) {
        const struct dataset_group *group = &dataset->groups[idx];
        if (group->role == ROLE_LABEL && group->pair_of.ptr &&
            str_eq(group->pair_of, images->name)) {
            return group;
        }
    }
    return NULL;
}

/* Each image's label map, which must be there, and no label map without an image. */
static int find_partners(struct arena *arena, const struct samples_opts *opts,
                         const struct dataset_group *images, const struct fs_names *paths,
                         struct samples *samples, struct err *err)
{
    const struct dataset_group *labels = labels_of(opts->dataset, images);
    size_t n_labels = 0;
    if (!labels) {
        return err_set(err, ERR_MANIFEST, "no group of label maps belongs to %.*s",
                       STR_ARG(images->name));
    }
    for (size_t idx = 0; idx < samples->n; idx++) {
        struct image_sample *sample = &samples->items[idx];
        struct str partner = dataset_partner(arena, labels, str_of(sample->path));
        if (!partner.ptr) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: its name does not end like that of an image of %.*s", sample->path,
                           STR_ARG(images->name));
        }
        sample->partner = partner.ptr;
    }
    for (size_t idx = 0; idx < paths->n; idx++) {
        n_labels += dataset_group_of(opts->dataset, str_of(paths->items[idx])) == labels;
    }
    /* A missing one is named when it is opened; too many can only be seen here. */
    if (n_labels > samples->n) {
        return err_set(err, ERR_INTEGRITY, "group %.*s: %zu label maps for %zu images",
                       STR_ARG(labels->name), n_labels, samples->n);
    }
    return 0;
}

/* SHA-256 of the paths, one a line; of records path:number. */
static int digest_order(struct samples *samples, struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    uint64_t row = 0;
    digest_start(&digest, DIGEST_SHA256);
    for (size_t idx = 0; idx < samples->n; idx++) {
        char line[ORDER_TEXT_MAX];
        const char *path = samples->items[idx].path;
        row = idx && samples->items[idx - 1].path == path ? row + 1 : 0;
        int len = samples->kind == SHARD_TOKENS
                      ? snprintf(line, sizeof(line), "%s:%" PRIu64 "\n", path, row)
                      : snprintf(line, sizeof(line), "%s\n", path);
        if (len < 0 || (size_t)len >= sizeof(line)) {
            return err_set(err, ERR_INTEGRITY, "a path longer than %d bytes: %.200s",
                           ORDER_TEXT_MAX, path);
        }
        digest_update(&digest, line, (size_t)len);
    }
    memcpy(samples->order_sha256, digest_finish(&digest).sha256, SHA256_BYTES);
    return 0;
}

/* Kind, classes and shape as the dataset says them. */
static int set_kind(const struct dataset *dataset, struct samples *samples, struct err *err)
{
    const struct dataset_pack *pack = &dataset->pack;
    samples->short_side = pack->short_side;
    switch (pack->kind) {
    case PACK_CLASSES:
    case PACK_SEGMENTS:
        samples->kind = pack->kind == PACK_CLASSES ? SHARD_CLASSES : SHARD_SEGMENTS;
        samples->n_classes = (uint32_t)pack->n_classes;
        if (pack->n_classes < 1 ||
            (pack->kind == PACK_SEGMENTS && (pack->n_classes > 255 || pack->short_side >= 0))) {
            return err_set(
                err, ERR_MANIFEST,
                "classes: expected at least 1, and for label maps at most 255 at the stored size");
        }
        return 0;
    case PACK_TOKENS:
        samples->kind = SHARD_TOKENS;
        samples->shape =
            (struct tokens_shape){(uint32_t)pack->sequence, (uint32_t)pack->predictions};
        if (pack->sequence < 1 || pack->sequence > TOKENS_SEQUENCE_MAX || pack->predictions < 0 ||
            pack->predictions > pack->sequence || pack->predictions > TOKENS_PREDICTIONS_MAX) {
            return err_set(err, ERR_MANIFEST,
                           "sequence %" PRId64 " and predictions %" PRId64 ": out of range",
                           pack->sequence, pack->predictions);
        }
        return 0;
    case PACK_NONE:
        break;
    }
    return err_set(err, ERR_MANIFEST, "%.*s cannot be packed", STR_ARG(dataset->id));
}

static int find(struct arena *arena, const struct samples_opts *opts, struct samples *samples,
                struct err *err)
{
    const struct dataset *dataset = opts->dataset;
    struct fs_names paths = {0};
    if (set_kind(dataset, samples, err) < 0) {
        return -1;
    }
    const struct dataset_group *group = dataset_group_find(
        dataset, opts->split, samples->kind == SHARD_TOKENS ? ROLE_RECORDS : ROLE_IMAGE);
    if (!group) {
        return err_set(err, ERR_USAGE, "%.*s has no split %.*s to pack", STR_ARG(dataset->id),
                       STR_ARG(opts->split));
    }
    if (fs_walk(arena, opts->source->folder, &paths, err) < 0 ||
        find_files(opts, group, &paths, samples, err) < 0) {
        return -1;
    }
    if (samples->kind == SHARD_SEGMENTS &&
        find_partners(arena, opts, group, &paths, samples, err) < 0) {
        return -1;
    }
    if ((samples->kind == SHARD_CLASSES && samples_label(arena, opts, group, samples, err) < 0) ||
        (!opts->is_brief && survey(arena, opts, group, samples, err) < 0)) {
        return -1;
    }
    return digest_order(samples, err);
}

int samples_find(struct arena *arena, const struct samples_opts *opts, struct samples *ret_samples,
                 struct err *err)
{
    struct samples samples = {0};
    if (find(arena, opts, &samples, err) < 0) {
        samples_release(&samples);
        return -1;
    }
    *ret_samples = samples;
    return 0;
}
