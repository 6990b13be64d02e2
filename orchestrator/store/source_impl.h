/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of store/source_store that share no other header. */
#pragma once

#include "base/temp.h"
#include "store/source_store.h"

/* Adds the submodules that the part's commit names. url is as .gitmodules has it; NULL: it has none. */
MUST_CHECK int source_gitlinks(struct sources *sources, const struct source_part *part,
                               struct source_tree *tree, struct err *err);
/* entries, n_files, n_all and selection of a part: ERR_MANIFEST where the commit lacks one of its paths, ERR_INTEGRITY where
   the store lacks one of its blobs. */
MUST_CHECK int source_find_selection(struct sources *sources, struct source_part *part,
                                     struct err *err);
/* The ids of the part's blobs, a line each. */
MUST_CHECK int source_list_blobs(const struct source_part *part, const char *path, struct err *err);
/* An index of the files that part is about, in folder tmp. */
MUST_CHECK int source_put_index(struct sources *sources, const struct source_part *part,
                                const char *tmp, const char **ret_index, struct err *err);

/* A new folder in the store's tmp/. */
MUST_CHECK int source_make_tmp(struct sources *sources, struct temp **ret_folder, struct err *err);
