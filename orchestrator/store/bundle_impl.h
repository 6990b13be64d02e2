/* SPDX-License-Identifier: Apache-2.0 */
/* What making a bundle and importing one share: the names in it, and what is known of a part. */
#ifndef STORE_BUNDLE_IMPL_H
#define STORE_BUNDLE_IMPL_H

#include "store/bundle.h"
#include "store/source_store.h"
#include "sys/tree.h"

#define ABOUT         "bundle.json"
#define SUMS          "SHA256SUMS"
#define BLOBS_BELOW   "blobs/sha256/"
#define REFS_BELOW    "refs/"
#define SOURCES_BELOW "sources/"
#define PROGRAMS      "bin/"
#define LOCKS_BELOW   "share/reperf/manifests/locks/"
#define OWN_BELOW     "manifests/"
#define OWN_DATASETS  "manifests/datasets/"
#define OWN_LOCKS     "manifests/locks/dataset/"
#define DESCRIPTION   "/dataset.json"
#define SOURCE_KIND   "source"

#define BUNDLE_ABOUT_N 6
extern const struct json_field
    BUNDLE_ABOUT[BUNDLE_ABOUT_N]; /* bundle.json, of a struct bundle_info */

/* path: NAME.git/... below sources/. Only objects, references and the boundary of a shallow fetch: a config or a hook could make git do
   something else at the destination. */
bool bundle_may_have(const char *path);

struct source_from {
    struct arena *arena;
    const struct store *store;
    const struct net_opts *net;
    bool is_deep; /* every object is hashed again */
};
/* The source URL@COMMIT, which is fetched into the store from net->mirror, or without one must be there: ERR_NOT_FOUND. */
MUST_CHECK int bundle_find_source(const struct source_from *from, const char *name,
                                  struct source_tree *ret_tree, struct err *err);
/* ERR_INTEGRITY where a blob's bytes are not what its name says. */
MUST_CHECK int bundle_check_blob(const struct tree_file *file, struct err *err);
/* ID.json and ID.FILE.pieces */
bool bundle_is_lock_of(struct str name, struct str id);

#endif
