/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of store/source_store that share no other header. */
#pragma once

#include "base/temp.h"
#include "store/source_store.h"

/* The submodules that this commit names; path is below that repository. url NULL: .gitmodules has none. */
struct gitlink {
    const char *path, *commit, *url;
};
struct gitlinks {
    struct gitlink *items; /* in the arena */
    size_t n;
};
MUST_CHECK int source_gitlinks(struct sources *sources, const struct source_part *part,
                               struct gitlinks *ret_links, struct err *err);
/* entries, n_files and n_all of a part. ERR_MANIFEST where the commit lacks one of its paths. */
MUST_CHECK int source_select(struct sources *sources, struct source_part *part, struct err *err);
/* The same, and selection: ERR_INTEGRITY where the store lacks a blob of the part. */
MUST_CHECK int source_find_selection(struct sources *sources, struct source_part *part,
                                     struct err *err);
/* An index of the files that part is about, in folder tmp. */
MUST_CHECK int source_put_index(struct sources *sources, const struct source_part *part,
                                const char *tmp, const char **ret_index, struct err *err);
/* Once the trees are there, the blobs; 0 with another exit status than 0 where url did not give them. */
MUST_CHECK int source_fetch_blobs(struct sources *sources, const char *url,
                                  struct source_part *part, struct git_result *ret_result,
                                  struct err *err);
/* An option of fetch with which a repository on this machine gives parts. */
const char *source_upload_pack(struct arena *arena, const char *url);

/* A new folder in the store's tmp/. */
MUST_CHECK int source_make_tmp(struct sources *sources, struct temp **ret_folder, struct err *err);
