/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/run_data.h"

#include <stdlib.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "load/places.h"
#include "store/artifact.h"
#include "store/dataset_store.h"

#define PACK_NAME     "pack.json" /* workloads/data/shard.h */
#define PACK_TEXT_MAX (16u << 20)

/* What a run must say of it; the reader itself checks all of it (workloads/data/pack_json.c). */
static const struct json_field PACK_ROWS[] = {
    ROW("dataset", struct plan_data, dataset, JSON_REQUIRED),
    ROW("split", struct plan_data, split, JSON_REQUIRED),
    ROW("source_sha256", struct plan_data, source_sha256, JSON_REQUIRED),
    ROW("synthetic", struct plan_data, is_synthetic, JSON_REQUIRED),
    ROW("n_samples", struct plan_data, n_samples, JSON_REQUIRED, .min = 1, .max = 1LL << 50),
    ROW_OTHERS,
};

static int read_pack(struct arena *arena, const char *path, struct plan_data *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct str text;
    if (fs_read(arena, path, PACK_TEXT_MAX, &text, err) < 0 ||
        json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    ret->pack_sha256 = digest_text_hex(arena, text);
    return json_decode(&doc.root, arena, PACK_ROWS, ARRAY_LEN(PACK_ROWS), ret, err);
}

static int not_packed(struct arena *arena, const char *store, const struct artifact *artifact,
                      struct err *err)
{
    const char *synthetic = arena_printf(arena, "%s/packed/%.*s.synthetic/%s/%s", store,
                                         STR_ARG(artifact->name), RUN_DATA_SPLIT, PACK_NAME);
    return err_set(
        err, ERR_USAGE,
        "--data %.*s%s: not packed in the store; first: reperf data fetch %.*s%s, then reperf "
        "pack %.*s%s%s",
        STR_ARG(artifact->name), artifact->is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "",
        STR_ARG(artifact->name), artifact->is_synthetic ? " --synthetic" : "",
        STR_ARG(artifact->name), artifact->is_synthetic ? " --synthetic" : "",
        !artifact->is_synthetic && fs_exists(synthetic)
            ? arena_printf(arena, ". Its synthetic version is there: --data %.*s.synthetic",
                           STR_ARG(artifact->name))
            : "");
}

static int check_source(const struct plan_data *data, const uint8_t *sha256, const char *whose,
                        struct err *err)
{
    const struct hex found = sha256_hex_of(sha256);
    return str_eq_z(data->source_sha256, found.text)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s/%s: packed from a tree whose list has SHA-256 %.64s; %s has %s",
                         data->folder.ptr, PACK_NAME, data->source_sha256.ptr, whose, found.text);
}

/* In its place in the store: of this split, and of the present tree. */
static int check_stored(struct arena *arena, const char *store, const char *name,
                        const struct plan_data *data, struct err *err)
{
    const struct store here = {.arena = arena, .folder = store};
    struct dataset_record tree;
    if (!str_eq_z(data->split, RUN_DATA_SPLIT)) {
        return err_set(err, ERR_INTEGRITY, "%s/%s: says that it is split %.60s, not %s",
                       data->folder.ptr, PACK_NAME, data->split.ptr, RUN_DATA_SPLIT);
    }
    if (!fs_exists(fs_join(arena, dataset_tree_path(&here, name), DATASET_TREE_JSON))) {
        return 0; /* a tree may be removed once it is packed */
    }
    return dataset_tree_read(arena, &here, name, &tree, err) < 0
               ? (err->code = ERR_INTEGRITY, -1)
               : check_source(data, tree.seen.list_sha256, "the store's tree", err);
}

/* Its samples, as many as its authors state. */
static int check_count(const struct dataset *dataset, const struct plan_data *data, struct err *err)
{
    for (size_t idx = 0; idx < dataset->n_splits; idx++) {
        const struct dataset_split *split = &dataset->splits[idx];
        if (str_eq(split->name, data->split) && split->n_samples >= 0 &&
            split->n_samples != data->n_samples) {
            return err_set(err, ERR_INTEGRITY,
                           "%s/%s: says that it is %s itself, whose split %s has %lld samples; "
                           "found %lld",
                           data->folder.ptr, PACK_NAME, data->dataset.ptr, data->split.ptr,
                           (long long)split->n_samples, (long long)data->n_samples);
        }
    }
    return 0;
}

/* The original has a list that description or lock may know, and so many samples; what calls itself so must agree, wherever it
   lies. */
static int check_original(struct arena *arena, const char *root, const struct plan_data *data,
                          struct err *err)
{
    struct dataset_here here;
    if (data->is_synthetic || memchr(data->dataset.ptr, '/', data->dataset.len) ||
        !fs_exists(places_path(arena, root, "datasets",
                               fs_join(arena, data->dataset.ptr, "dataset.json")))) {
        return 0;
    }
    if (dataset_load(arena, &(struct dataset_which){root, NULL, data->dataset.ptr, false}, &here,
                     err) < 0 ||
        check_count(&here.dataset, data, err) < 0) {
        return -1;
    }
    return here.dataset.has_list_sha256
               ? check_source(data, here.dataset.list_sha256, data->dataset.ptr, err)
               : 0;
}

int run_data_find(struct arena *arena, const char *root, const char *store, const char *text,
                  struct plan_data *ret_data, struct err *err)
{
    struct plan_data data = {0};
    struct artifact artifact = {0};
    const char *folder = text;
    if (!strchr(text, '/')) {
        if (artifact_resolve(arena, root, text, &artifact, err) < 0) {
            return err_wrap(err, "--data");
        }
        if (artifact.kind != ARTIFACT_DATASET) {
            return err_set(err, ERR_USAGE, "--data %.100s: expected a dataset, found %s", text,
                           ARTIFACT_KIND_NAMES[artifact.kind]);
        }
        folder =
            arena_printf(arena, "%s/packed/%.*s%s/%s", store, STR_ARG(artifact.name),
                         artifact.is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "", RUN_DATA_SPLIT);
        if (!fs_exists(fs_join(arena, folder, PACK_NAME))) {
            return not_packed(arena, store, &artifact, err);
        }
    } else if (!fs_exists(fs_join(arena, folder, PACK_NAME))) {
        return err_set(err, ERR_USAGE, "--data %.200s: no folder with a %s", text, PACK_NAME);
    }
    char *whole = realpath(folder, NULL);
    data.folder = str_dup(arena, str_of(whole ? whole : folder));
    free(whole);
    if (read_pack(arena, fs_join(arena, data.folder.ptr, PACK_NAME), &data, err) < 0) {
        return -1;
    }
    if (artifact.name.ptr &&
        (!str_eq(artifact.name, data.dataset) || artifact.is_synthetic != data.is_synthetic)) {
        return err_set(err, ERR_INTEGRITY, "%s/%s: says that it is %.100s%s, not %s",
                       data.folder.ptr, PACK_NAME, data.dataset.ptr,
                       data.is_synthetic ? ", synthetic" : "", text);
    }
    if ((artifact.name.ptr &&
         check_stored(arena, store,
                      arena_printf(arena, "%.*s%s", STR_ARG(artifact.name),
                                   artifact.is_synthetic ? DATASET_SYNTHETIC_SUFFIX : ""),
                      &data, err) < 0) ||
        check_original(arena, root, &data, err) < 0) {
        return -1;
    }
    *ret_data = data;
    return 0;
}

int run_data_check(const struct plan_data *data, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct plan_data now = {0};
    if (!data->folder.ptr) {
        return 0;
    }
    if (read_pack(&arena, fs_join(&arena, data->folder.ptr, PACK_NAME), &now, err) < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "the run's data");
    }
    return str_eq(now.pack_sha256, data->pack_sha256)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s/%s: the run was planned with one of SHA-256 %s, found %s",
                         data->folder.ptr, PACK_NAME, data->pack_sha256.ptr, now.pack_sha256.ptr);
}
