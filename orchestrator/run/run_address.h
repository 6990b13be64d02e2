/* SPDX-License-Identifier: Apache-2.0 */
/* A report by its address: a folder with manifests/ in it, an archive of one, or URL@COMMIT of a git repository that is one. What it holds is read first from
   there: its formats, overlays, images and datasets. Who wrote it chose none of the machine's protections, and is not trusted. */
#ifndef RUN_RUN_ADDRESS_H
#define RUN_RUN_ADDRESS_H

#include "base/clock.h"
#include "base/fs.h"

struct address_opts {
    const char *root, *state, *store;
    bool is_offline;
    struct clock_src clock;
};

struct address {
    const char *report; /* the path of its file, or the name as it was given */
    const char *
        pin; /* its commit, or the SHA-256 of the archive or the folder's list of files; NULL: the name is no address */
};

/* Each of the names that is an address becomes the path of its report. */
struct opt_list;
MUST_CHECK int address_open_all(struct arena *arena, const struct address_opts *opts,
                                struct opt_list *names, struct err *err);
/* ERR_USAGE where a repository is named without a whole commit, or there is no report, or several. Changes $REPERF_MANIFESTS. */
MUST_CHECK int address_open(struct arena *arena, const struct address_opts *opts, const char *name,
                            struct address *ret, struct err *err);

#endif
