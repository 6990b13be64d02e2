/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/samples.h"

#include "base/fs.h"

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
    samples->format = group->format;
    if (fs_walk(arena, opts->source->folder, &paths, err) < 0 ||
        find_files(opts, group, &paths, samples, err) < 0) {
        return -1;
    }
    if (samples->kind == SHARD_SEGMENTS &&
        find_partners(arena, opts, group, &paths, samples, err) < 0) {
        return -1;
    }
    if ((samples->kind == SHARD_CLASSES && samples_label(arena, opts, group, samples, err) < 0) ||
        (!opts->is_brief && samples_survey(arena, opts, group, samples, err) < 0)) {
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
