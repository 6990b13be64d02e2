/* SPDX-License-Identifier: Apache-2.0 */
/* datasets/ID/dataset.json: what to fetch, what its tree looks like once unpacked, how it is packed, and how the synthetic
   dataset is made. The meaning of each key is in datasets/README.md. Strings live in the arena it was decoded into; NULL: its
   authors did not say. */
#pragma once

#include "codec/digest.h"
#include "codec/json_table.h"
#include "report/report.h"

#define DATASET_FILES_MAX   64
#define DATASET_URLS_MAX    16
#define DATASET_SPLITS_MAX  16
#define DATASET_GROUPS_MAX  32
#define DATASET_ODD_MAX     256
#define DATASET_FOLDERS_MAX 1048576
#define DATASET_IMAGES_MAX  (1LL << 32)
#define DATASET_SAMPLES_MAX 4000000 /* of a split that is made */
#define DATASET_PIECE_MIN   65536

struct dataset_file { /* one download */
    struct str name;  /* file name; also in STORE/incoming */
    struct str *urls; /* mirrors, best first */
    size_t n_urls;
    int64_t size_bytes; /* -1: not known */
    bool has_md5, has_sha256;
    uint8_t md5[MD5_BYTES];
    uint8_t sha256[SHA256_BYTES];
    int64_t piece_bytes;      /* 0: no digests of pieces are known */
    bool pieces_are_locks;    /* pieces_path is in the lock's folder instead */
    struct str pieces_path;   /* below the folder of dataset.json; one SHA-256 in hex per line */
    struct str unpack;        /* "tar", "tar.gz", "tar.zst", "zip"; NULL: kept as it is */
    bool is_nested;           /* NAME.tar inside it is unpacked into NAME/ */
    struct str into;          /* folder of the tree that it is unpacked into; NULL: the top */
    struct source_ref source; /* who stated size and digests */
};

struct dataset_split {
    struct str name;
    int64_t n_samples; /* -1: not stated */
    int64_t n_classes;
};

enum file_role { ROLE_IMAGE, ROLE_LABEL, ROLE_RECORDS, ROLE_LIST, ROLE_OTHER };
enum file_format { FILE_ANY, FILE_JPEG, FILE_PNG, FILE_HDF5, FILE_TFRECORD, FILE_TEXT };

struct dataset_group { /* files of the tree that belong together and must exist */
    struct str name;
    struct str split; /* or NULL */
    enum file_role role;
    struct str glob; /* of the path: dataset_glob_matches */
    int64_t n_files; /* exactly; -1: not stated */
    /* Folders that hold them; -1: not stated. Of images by class: the classes, in the order of their names. */
    int64_t n_folders;
    int64_t folder_min, folder_max; /* files in each folder; -1: not stated */
    enum file_format format;
    struct str *odd_paths; /* files known to be of another format than their name says */
    size_t n_odd;
    int64_t width, height; /* of each image; -1: any */
    int64_t channels;      /* as stored; -1: any */
    int64_t n_lines;       /* of a text; -1: not stated */
    /* Each file of that group has its partner here, and vice versa; NULL: none. */
    struct str pair_of;
    /* The partner's path: every pair_from in the path becomes pair_to, then the ending pair_from_end becomes pair_to_end. */
    struct str pair_from, pair_to, pair_from_end, pair_to_end;
};

enum pack_kind { PACK_NONE, PACK_CLASSES, PACK_SEGMENTS, PACK_TOKENS };

struct dataset_pack { /* how shards are made from the tree */
    enum pack_kind kind;
    int64_t short_side; /* of a packed image: larger ones are scaled down to it; -1: as it is */
    int64_t n_classes;  /* labels from 0; -1: not for tokens */
    int64_t sequence, predictions; /* tokens; else -1 */
};

struct dataset_synthetic_split {
    struct str name;
    int64_t n_samples;
    int64_t n_folders; /* classes, cities; of records: the files */
};

struct dataset_synthetic { /* how the synthetic dataset is made: the same layout, less of it */
    bool is_there;
    int64_t seed;
    int64_t width, height; /* of images made at one size; -1: sizes vary as in the original */
    struct dataset_synthetic_split *splits;
    size_t n_splits;
    /* The archives that it is made as: the original's, or its own if the original is not distributed. No URLs, sizes or
       digests. */
    struct dataset_file *files;
    size_t n_files;
};

enum dataset_recipe { RECIPE_NONE, RECIPE_TFRECORD, RECIPE_RECORDIO };

struct
    dataset_made_from { /* files that reperf-pack makes of another dataset's images, which it does not decode */
    struct str dataset;
    enum dataset_recipe recipe; /* RECIPE_NONE: it is fetched */
};

struct dataset {
    struct str id, title, licence, derived_from, note;
    bool is_synthetic;
    bool needs_login;
    struct dataset_file *files;
    size_t n_files;
    struct dataset_split *splits;
    size_t n_splits;
    struct dataset_group *groups;
    size_t n_groups;
    bool allows_others; /* files outside all groups are not a fault */
    /* tree.sha256 next to dataset.json; NULL: no digests of single files are known. */
    struct str list_path;
    bool has_list_sha256;
    uint8_t list_sha256[SHA256_BYTES];
    struct dataset_made_from made_from;
    struct dataset_pack pack;
    struct dataset_synthetic synthetic;
    struct source_ref source; /* strings NULL: none */
    struct str layout_source; /* where the facts about the groups were read, in words */
};

extern const struct json_document DATASET_DOCUMENT;
MUST_CHECK int dataset_decode(const struct json *root, struct arena *arena,
                              struct dataset *ret_dataset, struct err *err);

/* `*` is any bytes except `/`, `?` one of them, `**` + `/` any number of whole folders, or none. Nothing else is
   special. */
bool dataset_glob_matches(struct str glob, struct str path);

/* The first group of the role and split whose glob matches; NULL: none. split NULL: any. */
const struct dataset_group *dataset_group_of(const struct dataset *dataset, struct str path);
/* The split's images or records; NULL if it has none. */
const struct dataset_group *dataset_group_find(const struct dataset *dataset, struct str split,
                                               enum file_role role);
/* Path in `group` of the partner of a file of the group pair_of; NULL str if the path lacks the stated end. */
struct str dataset_partner(struct arena *arena, const struct dataset_group *group, struct str path);

/* The splits of the synthetic dataset with the numbers of samples that "SPLIT=N" says; else ERR_USAGE. */
MUST_CHECK int dataset_synthetic_splits(struct arena *arena, const struct dataset *dataset,
                                        const char *const *samples, size_t n_samples,
                                        struct dataset_synthetic_split **ret_splits,
                                        struct err *err);

#define DATASET_SYNTHETIC_SUFFIX ".synthetic"
/* Its name in the store: the id, with the suffix for a synthetic dataset. */
char *dataset_tree_name(struct arena *arena, const struct dataset *dataset, bool is_synthetic);
