/* SPDX-License-Identifier: Apache-2.0 */
/* The samples in their order: found in a tree by the dataset's groups, labelled, and examined (sizes, numbers of records), so
   that each sample's place in the shards is known before the first is decoded. */
#pragma once

#include "prep/bert_tokens.h"
#include "prep/pixels.h"
#include "prep/tree_source.h"
#include "report/dataset.h"

#define SAMPLES_MAX UINT32_MAX

struct image_sample {
    const char *path;    /* in the tree */
    const char *partner; /* its label map; NULL: none */
    struct pixel_info info;
    uint32_t width, height; /* as packed */
    uint64_t place;         /* a record's number in the file */
    uint32_t bytes;         /* as packed */
    int32_t label;          /* -1: none */
};

struct samples {
    struct image_sample *items; /* owned */
    size_t n, n_max;
    enum shard_kind kind;
    struct tokens_shape shape;
    uint32_t n_classes;
    int64_t short_side;
    uint64_t n_traits[IMAGE_TRAITS]; /* images with each of enum image_trait */
    uint64_t n_other_format;         /* images of another format than the group says */
    uint8_t order_sha256[SHA256_BYTES];
};

struct samples_opts {
    const struct dataset *dataset;
    const char *dataset_path; /* its dataset.json */
    struct str split;
    const struct tree_source *source;
    bool is_synthetic; /* numbers are those of the tree: a synthetic dataset may be of any size */
    bool is_brief;     /* paths and labels are asked for; no file is opened for its size */
    size_t n_threads;
};

/* Paths are in the arena. */
MUST_CHECK int samples_find(struct arena *arena, const struct samples_opts *opts,
                            struct samples *ret_samples, struct err *err);
void samples_release(struct samples *samples);
CLEANUP_BY(samples, struct samples, samples_release);

/* The file classes.txt beside a dataset.json, where images lie in no folders: a line a class, in the order of the numbers
   that the labels give them from 1; lines that begin with # are for people. */
struct class_list {
    struct str *ids, *sorted; /* in the arena */
    size_t n;
};
const char *class_list_path(struct arena *arena, const char *dataset_path);
MUST_CHECK int class_list_read(struct arena *arena, const char *dataset_path,
                               struct class_list *ret_classes, struct err *err);
