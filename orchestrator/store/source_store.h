/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: git repositories at one full commit, with their submodules at the commits that it names. Kept as bare
   repositories, STORE/sources/NAME.git, in which refs/reperf/COMMIT says what was fetched whole. git's ids are the check: a
   commit is exactly the pinned one. One thread. A part of a commit, some of its files and folders, is kept in
   STORE/sources/NAME.HEX8.git, where the same reference says that its trees and the part's blobs are there; where the whole
   commit is there, its part is, too. */
#pragma once

#include "net/net_session.h"
#include "report/lock.h"
#include "store/git.h"
#include "store/store.h"

#define SOURCE_PARTS_MAX 512 /* submodules of submodules included */
#define SOURCE_DEPTH_MAX 8

struct sources {
    struct git git;
    const struct store *store;  /* borrowed */
    const struct net_opts *net; /* borrowed: mirror, offline, proxy, CA */
};

struct source_part {
    const char *path; /* below the top; "." is the repository itself */
    const char *url;  /* NULL: .gitmodules does not say; git itself leaves such a folder empty */
    const char *commit;
    const char *tree;       /* NULL where url is */
    const char *repo;       /* bare repository */
    const char *whole_repo; /* that of all of a commit; of a part maybe another */
    const char *paths;      /* the part of the repository itself that is asked for; NULL: all */
    const char *selection;  /* the tree of only that part; NULL if paths is */
    size_t n_files, n_all;  /* the part's, and the commit's */
    struct str entries;     /* the part's, as `ls-tree -r -z` has them */
    size_t depth;
    bool is_new; /* fetched now */
};

/* All of it is in the arena. */
struct source_tree {
    struct source_part *parts; /* the repository first, then each submodule after what it lies in */
    size_t n;
};

MUST_CHECK int sources_init(struct sources *sources, struct arena *arena, const struct store *store,
                            const struct net_opts *net, struct err *err);

/* The commit that a branch or tag is at now. ERR_FETCH where there is none, or one of each. */
MUST_CHECK int source_resolve(struct sources *sources, const char *url, const char *ref,
                              const char **ret_commit, struct err *err);
/* Fetches what is missing. The mirror is asked first: ids check what it delivers. pin: report/source.h. */
MUST_CHECK int source_fetch(struct sources *sources, const char *url, const char *pin,
                            struct source_tree *ret_tree, struct err *err);
/* What the store has: ERR_NOT_FOUND where it lacks something; with is_deep every object is hashed again. */
MUST_CHECK int source_verify(struct sources *sources, const char *url, const char *pin,
                             bool is_deep, struct source_tree *ret_tree, struct err *err);
/* id: URL@COMMIT or URL@REF, of a part with its paths. date: RFC 3339. */
void source_lock_of(struct arena *arena, const struct source_tree *tree, const char *id,
                    const char *ref, const char *date, struct lock *ret_lock);

/* Writes all files of the pin, without .git, to a new folder, completely or not at all; the trees' hashes are computed again
   from them. */
MUST_CHECK int source_checkout(struct sources *sources, const struct source_tree *tree,
                               const char *folder, struct err *err);
/* ERR_INTEGRITY, with the first paths, where the folder is not what the commits say: changed, missing or added files. */
MUST_CHECK int source_check_folder(struct sources *sources, const struct source_tree *tree,
                                   const char *folder, struct err *err);
