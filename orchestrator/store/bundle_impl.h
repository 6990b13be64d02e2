/* SPDX-License-Identifier: Apache-2.0 */
/* What making and importing a bundle share. */
#ifndef STORE_BUNDLE_IMPL_H
#define STORE_BUNDLE_IMPL_H

#include "store/bundle.h"
#include "store/source_store.h"
#include "sys/tree.h"

#define BUNDLE_ABOUT  "bundle.json"
#define BUNDLE_SUMS   "SHA256SUMS"
#define BUNDLE_SOURCE "source"

extern const struct json_field BUNDLE_ABOUT_ROWS[];
extern const size_t BUNDLE_ABOUT_N_ROWS;
MUST_CHECK int bundle_about_read(struct arena *arena, const char *folder,
                                 struct bundle_info *ret_info, struct err *err);

/* Digests of all files of a bundle but SHA256SUMS itself. */
MUST_CHECK int bundle_hash(struct arena *arena, const char *folder, bool (*should_stop)(void),
                           struct tree_list *ret_list, struct err *err);
/* Every store/blobs/sha256/HEX has that digest: ERR_INTEGRITY if one has not. */
MUST_CHECK int bundle_check_blobs(const struct tree_list *list, struct err *err);

/* Of a reference's text: whether it says that it is synthetic. */
bool bundle_is_synthetic(struct str ref_text);
/* The source URL@COMMIT, which is fetched into the store from net->mirror, or without one must be there: ERR_NOT_FOUND. */
MUST_CHECK int bundle_source(struct arena *arena, const struct store *store,
                             const struct net_opts *net, const char *name,
                             struct source_tree *ret_tree, struct err *err);
/* path: NAME.git/... below sources/. */
bool bundle_may_have(const char *path);

#endif
