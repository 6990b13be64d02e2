/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset in the store: its archives are blobs named by the reference dataset/NAME, its tree is trees/NAME, with two files
   of ours at the top: tree.sha256 (sha256sum -c checks it) and tree.json, which is written last. NAME is the id, or
   ID.synthetic for the synthetic dataset, which is handled in the same way, with "synthetic": true everywhere.

   One file of a dataset is in five structs: dataset_file (report/dataset.h) is what the description says of it, lock_item
   (report/lock.h) what a lock or a record says, dataset_got what this fetch did for it, dataset_wanted where a person must
   put it, dataset_archive (store/dataset_verify.h) what a folder outside the store has of it. */
#pragma once

#include "base/progress.h"
#include "base/vec.h"
#include "net/net_session.h"
#include "report/dataset.h"
#include "report/lock.h"
#include "store/store.h"
#include "sys/tree.h"

#define DATASET_REF_KIND  "dataset"
#define DATASET_TREE_JSON "tree.json"
#define DATASET_TREE_LIST "tree.sha256"

/* A description, and where its parts are. */
struct dataset_here {
    struct dataset dataset; /* merged with the lock, unless is_synthetic */
    bool is_synthetic;
    const char *name;   /* in the store */
    const char *folder; /* where dataset.json is */
    const char *locks;  /* folder of locks */
    bool has_lock;
    const struct dataset_here *from; /* what it is made from; NULL: it is fetched */
};

struct dataset_which {
    const char *root;
    const char *locks; /* NULL: manifests/locks */
    const char *id;
    bool is_synthetic;
};
/* ERR_USAGE if the dataset has no synthetic version. */
MUST_CHECK int dataset_load(struct arena *arena, const struct dataset_which *which,
                            struct dataset_here *ret_here, struct err *err);
/* The files it is unpacked from: the original's, or the synthetic dataset's. */
const struct dataset_file *dataset_files_of(const struct dataset_here *here, size_t *ret_n);

/* ---- what the store knows of it ---- */

/* What a reference and tree.json hold. */
struct dataset_record {
    bool is_synthetic;
    /* What a synthetic dataset, or one made from another, was made from; else NULL. */
    struct str recipe;
    struct str date;
    struct dataset_synthetic_split *splits; /* what was made of a synthetic dataset; else NULL */
    size_t n_splits;
    struct lock seen; /* its archives, and of tree.json also the list */
};

/* ERR_NOT_FOUND where it was never fetched. */
MUST_CHECK int dataset_ref_read(struct arena *arena, const struct store *store, const char *name,
                                struct dataset_record *ret_record, struct err *err);
MUST_CHECK int dataset_ref_write(struct store *store, const char *name,
                                 const struct dataset_record *record, struct err *err);
/* ERR_NOT_FOUND where there is no whole tree. */
MUST_CHECK int dataset_tree_read(struct arena *arena, const struct store *store, const char *name,
                                 struct dataset_record *ret_record, struct err *err);
/* The list that files are checked against is the one that the tree's record names. */
MUST_CHECK int dataset_list_holds(const struct store *store, const char *name,
                                  const struct dataset_record *tree, struct err *err);
MUST_CHECK int dataset_record_parse(struct arena *arena, struct str text, const char *name,
                                    struct dataset_record *ret_record, struct err *err);
void dataset_record_encode(const struct dataset_record *record, struct strbuf *out);
/* ERR_FETCH with what to do about the missing tree. Returns -1. */
int dataset_no_tree(struct arena *arena, const struct store *store, const struct dataset_here *here,
                    struct err *err);
/* What its description and lock know of a file; and what was found of one. */
struct lock_item dataset_file_known(const struct dataset_file *file);
struct lock_item dataset_file_found(struct str name, const struct digest_value *value,
                                    const char *url, struct str date);
/* Path of the tree's folder, whether it is there or not. */
char *dataset_tree_path(const struct store *store, const char *name);

enum dataset_state { DATASET_ABSENT, DATASET_PARTIAL, DATASET_ARCHIVES, DATASET_TREE };
/* Bytes that a file becomes once unpacked, where only its own size is known: an estimate, said as such. */
int64_t dataset_unpacked_bytes(const struct dataset_file *file);
/* The store has a blob of the digest that is known of the file. */
bool dataset_has_file(const struct store *store, const struct dataset_file *file);
/* Looks at names and sizes only. PARTIAL: some of its files are there. */
enum dataset_state dataset_state(struct arena *arena, const struct store *store,
                                 const struct dataset_here *here);
extern const char *const DATASET_STATE_NAMES[DATASET_TREE + 1];

/* ---- fetching ---- */

/* One dataset that is fetched, and how. */
struct dataset_job {
    struct arena *arena;
    struct store *store;
    const struct dataset_here *here;
    struct net *net;
    const char *self;           /* reperf's own path: reperf-pack is next to it */
    const char *const *samples; /* "SPLIT=N" of a synthetic dataset */
    size_t n_samples;
    bool wants_tree;
    bool makes_anew; /* make the tree again, although one of the same archives exists */
};

enum dataset_origin { FROM_STORE, FROM_INCOMING, FROM_NET, FROM_SYNTH, FROM_PERSON };
#define DATASET_N_ORIGINS 5
extern const char *const DATASET_ORIGINS[DATASET_N_ORIGINS];

struct dataset_got {
    struct lock_item item; /* url NULL: not over the network */
    enum dataset_origin origin;
    bool is_checked; /* against a digest that was known before */
    uint64_t received_bytes, again_bytes, kept_bytes;
    size_t n_bad_pieces;
};

/* What the user must put into the store. */
struct dataset_wanted {
    const struct dataset_file *file;
    const char *put_path;
};

/* Filled also on failure, as far as it came. */
struct dataset_fetched {
    struct dataset_wanted *wanted;
    size_t n_wanted;
    struct dataset_got *files;
    size_t n_files;
    struct dataset_record record; /* the archives' */
    bool has_tree, was_there;     /* was_there: the tree needed no work */
    const char *tree_path;
    struct dataset_record tree;
    const struct dataset_fetched *from; /* what it is made from; NULL: its archives */
};

MUST_CHECK int dataset_fetch(const struct dataset_job *job, struct dataset_fetched *fetched,
                             struct err *err);

/* What dataset_fetch would do for each file, by names and sizes only, without network access. FROM_NET: with the first URL that
   would be asked; FROM_PERSON: nobody may be asked. */
MUST_CHECK int dataset_foresee(const struct dataset_job *job, struct dataset_fetched *ret_fetched,
                               struct err *err);

/* The parts of it, for dataset_fetch and dataset_repair alone. dataset_get_parts: what its tree is made from, which is its
   archives or the other dataset's tree. */
MUST_CHECK int dataset_get_parts(const struct dataset_job *job, struct dataset_fetched *fetched,
                                 struct err *err);
MUST_CHECK int dataset_get_files(const struct dataset_job *job, struct dataset_fetched *fetched,
                                 struct err *err);
MUST_CHECK int dataset_synth_files(const struct dataset_job *job, struct dataset_fetched *fetched,
                                   struct err *err);
/* Makes records out of the tree of job->here->from in the folder. */
MUST_CHECK int dataset_make_records(const struct dataset_job *job, const char *folder,
                                    struct err *err);
MUST_CHECK int dataset_make_tree(const struct dataset_job *job, struct dataset_fetched *fetched,
                                 struct err *err);
/* An empty record of what is fetched now, with room for so many files. */
struct dataset_record dataset_record_new(const struct dataset_job *job, size_t n_files);
/* RFC 3339. */
struct str dataset_now(const struct dataset_job *job);
/* Both digests of a file that may be very large: with a bar named `what`. */
MUST_CHECK int dataset_digest_file(const char *path, const char *what, struct clock_src clock,
                                   struct digest_value *ret_value, struct err *err);
/* The archives that were got, unpacked into a folder of the caller's, each where its description says; a file that is no archive
   is copied, since a link to the blob could be written through. Every archive is read whole and checked. */
struct dataset_unpacking {
    const struct dataset_job *job;
    const struct lock *from;
    const char *work;                           /* the folder */
    bool (*wants)(void *ctx, const char *path); /* a file by its path in the tree; NULL: all */
    void *ctx;
    VEC(struct tree_file) files; /* what was written; owned by the heap */
    uint64_t file_bytes;
    const struct dataset_file *file; /* the one that is being unpacked */
    struct progress progress;
    uint64_t done_bytes; /* those of the archives before this one */
};
MUST_CHECK int dataset_unpack(struct dataset_unpacking *u, struct err *err);
