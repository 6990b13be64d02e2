/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of store/source_store that share no other header. */
#ifndef STORE_SOURCE_IMPL_H
#define STORE_SOURCE_IMPL_H

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
/* A new folder in the store's tmp/. */
MUST_CHECK int source_make_tmp(struct sources *sources, const char *what, char **ret_folder,
                               struct err *err);
void source_remove_tmp(const char *folder);

#endif
