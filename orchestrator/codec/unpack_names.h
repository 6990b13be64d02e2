/* SPDX-License-Identifier: Apache-2.0 */
/* The names of an archive's entries, checked against each other: what may not be in a path, two that differ only in case, a file
   where a folder was, links that lead out. Nothing here looks at a file system. One thread. */
#pragma once

#include "base/map.h"
#include "codec/unpack.h"

/* All zeros at first, but for nodes.seed and n_max. */
struct unpack_names {
    /* Nodes by their path in lower case; the seed is random, or fixed in tests: names are untrusted. */
    struct map nodes;
    uint64_t n_max; /* entries and folders */
    struct arena arena;
    uint32_t new_ends[UNPACK_DEPTH_MAX]; /* of the last path added: prefixes that became folders */
    size_t n_new;
};

void unpack_names_release(struct unpack_names *names);

/* Removes one leading "./" and one trailing "/"; the rest is a path that may be used, or empty for the top itself. */
MUST_CHECK int unpack_names_clean(struct str raw, struct str *ret_path, struct err *err);
/* Enters a cleaned path; new_ends then says which folders above it are new. A folder may come again. */
MUST_CHECK int unpack_names_add(struct unpack_names *names, struct str path, enum unpack_type type,
                                struct str target, bool *ret_is_new, struct err *err);
/* After all were entered: every symlink leads through real folders to a file of the archive. */
MUST_CHECK int unpack_names_check_links(const struct unpack_names *names, struct err *err);
