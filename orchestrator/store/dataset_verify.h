/* SPDX-License-Identifier: Apache-2.0 */
/* A tree in the store against its description: files by name and digest, groups by number, folder and partner, headers of
   images and records. Every fault is in the result. not_checked lists what the description leaves open and what is not
   checked here: a verdict of "holds" without that list would claim too much. */
#pragma once

#include "store/dataset_store.h"

struct digest_cache;

enum dataset_fault_kind {
    FAULT_MISSING,    /* the list or a partner names it */
    FAULT_EXTRA,      /* nothing names it */
    FAULT_CORRUPT,    /* its digest differs */
    FAULT_HEADER,     /* it is not what its group says of each file */
    FAULT_UNREADABLE, /* the system says so */
    FAULT_COUNT,      /* a group, folder or split has another number of files */
};
#define FAULT_KINDS 6

struct dataset_fault {
    enum dataset_fault_kind kind;
    const char *path;                 /* or a group's name */
    const char *why;                  /* or NULL */
    const uint8_t *expected;          /* SHA-256 by the list; NULL: not known */
    const struct digest_value *found; /* what a file with another digest has, else NULL */
};

struct dataset_verify_opts {
    const char *folder; /* NULL: the tree in the store */
    enum verify_depth depth;
    struct pool *pool;
    size_t n_threads;
    struct digest_cache *cache; /* sys/digest_cache.h; NULL: every byte is read, as by DEPTH_DEEP */
    struct clock_src clock;
};

struct dataset_group_count {
    const char *name;
    uint64_t n_files, n_folders, n_headers; /* headers looked at */
    int64_t wanted_files, wanted_folders;   /* -1: not stated */
};

enum dataset_verdict { VERDICT_HOLDS, VERDICT_PARTLY, VERDICT_WRONG };

/* An archive in a folder outside the store. */
struct dataset_archive {
    const struct dataset_file *file; /* what is known of it */
    struct digest_value found;
    bool is_there, is_right;
};

struct dataset_verified {
    const char *tree_path;
    struct dataset_record tree;
    uint64_t n_files, n_from_cache, n_bytes_read, n_headers;
    struct dataset_group_count *groups;
    size_t n_groups;
    struct dataset_fault *faults; /* sorted by kind, then path */
    size_t n_faults;
    size_t n_of[FAULT_KINDS];
    /* All that the description names, where a folder has at least one of them. */
    struct dataset_archive *archives;
    size_t n_archives;
    struct tree_list list; /* the files that are expected, by digest; empty: no list is known */
    const char **not_checked;
    size_t n_not_checked;
    enum dataset_verdict verdict;
};

extern const char *const DATASET_FAULTS[FAULT_KINDS];
#define DATASET_N_VERDICTS 3
extern const char *const DATASET_VERDICTS[DATASET_N_VERDICTS];
/* "2 missing, 1 extra" */
char *dataset_faults_text(struct arena *arena, const size_t n_of[FAULT_KINDS]);

/* ERR_FETCH where there is no tree; faults are not an error here: see the verdict. opts->folder: data anywhere on disk: the
   archives, the tree, or both. The list of digests is then the description's, the folder's own tree.sha256 or the store's;
   without one, names, numbers, partners and headers are checked, and not_checked says that the bytes were not. The folder may
   also be the one that all paths of the description begin with (cityscapes/ of cityscapes/...). */
MUST_CHECK int dataset_verify(struct arena *arena, const struct store *store,
                              const struct dataset_here *here,
                              const struct dataset_verify_opts *opts,
                              struct dataset_verified *ret_verified, struct err *err);
