/* SPDX-License-Identifier: Apache-2.0 */
/* What a report needs, in one tar that can be carried to a site without a network, and its way into the store there.

     bundle.json           what is in it, what is not, when and with which version it was made
     blobs/sha256/HEX      as the store has them
     refs/KIND/NAME.json   likewise: which blobs a dataset or an image is
     sources/NAME.git/     bare repositories: objects and references alone
     manifests/            descriptions and locks of datasets of one's own, which a program does not know by itself
     share/reperf/         manifests, locks, images, datasets, published series
     bin/                  the programs; bin/reperf finds share/reperf by itself
     SHA256SUMS            every other file (`sha256sum -c` checks it)

   Both ways read every byte: a bundle is made only from blobs whose digest holds, and imported only when all of SHA256SUMS
   holds, nothing is missing and there are no other files. */
#pragma once

#include "base/command.h"
#include "codec/json_table.h"
#include "net/net_session.h"
#include "store/dataset_store.h"
#include "store/store.h"

#define BUNDLE_PARTS_MAX 4096

/* A reference of the store. */
struct bundle_part {
    const char *kind;               /* "dataset", "image", "source" */
    const char *name;               /* NAME in refs/KIND/NAME.json */
    const char *said;               /* for people: "dataset cityscapes" */
    const struct dataset_here *own; /* a dataset that is described outside the program; or NULL */
};

struct bundle_missing {
    struct str said, why;
};

struct bundle_opts {
    struct store *store;
    const char *root; /* the data folder */
    /* This program's file; reperf-train, reperf-pack and reperf-node next to it go along. */
    const char *self;
    const struct bundle_part *parts;
    size_t n_parts;
    const struct net_opts *net; /* offline */
    bool allows_missing;
    const char *path; /* must not exist; made next to it and renamed */
    struct clock_src clock;
};

struct bundle_info {
    struct str *parts; /* "dataset cityscapes", sorted; in the arena */
    size_t n_parts;
    struct bundle_missing *missing;
    size_t n_missing;
    size_t n_blobs;
    uint64_t blob_bytes;
    size_t n_files; /* all, but for its own two lists */
    uint64_t file_bytes;
    bool is_synthetic;        /* some part is a synthetic dataset */
    struct str made, version; /* when the bundle was made, and by which program */
};

/* Members "parts" and "missing" of its documents. */
#define BUNDLE_LISTS_N 2
extern const struct json_field BUNDLE_LISTS[BUNDLE_LISTS_N];

/* ERR_FETCH names the parts that the store lacks, unless allows_missing. ERR_INTEGRITY: a blob of the store is not what its name
   says. is_dry: only what would be written, ignoring `path`: no file is read, and missing parts are no error. */
MUST_CHECK int bundle_make(struct arena *arena, const struct bundle_opts *opts, bool is_dry,
                           struct bundle_info *ret_info, struct err *err);

struct import_opts {
    struct store *store;
    const char *path; /* the bundle */
    /* The data folder, and where descriptions of datasets go that are not described here. */
    const struct cmd_ctx *ctx;
    const char *locks;          /* where its locks go */
    const struct net_opts *net; /* offline */
};

/* Imports into the store; existing content stays. The bundle's locks go to `locks` unless one of that name exists; a lock, a
   description or a reference that contradicts the one here is ERR_INTEGRITY, before anything is changed. */
MUST_CHECK int bundle_import(struct arena *arena, const struct import_opts *opts,
                             struct bundle_info *ret_info, struct err *err);
