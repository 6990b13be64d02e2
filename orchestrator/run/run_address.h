/* SPDX-License-Identifier: Apache-2.0 */
/* A report by its address: a folder with manifests/ in it, an archive of one, or URL@COMMIT of a git repository that is one.
   What it holds is read first from there: its formats, overlays, images and datasets. Who wrote it chose none of the machine's
   protections, and is not trusted. */
#pragma once

#include "base/command.h"
#include "base/fs.h"

struct address {
    const char *report; /* the path of its file, or the name as it was given */
    /* Its commit, or the SHA-256 of the archive or the folder's list of files; NULL: the name is no address. */
    const char *pin;
};

/* A name that is an address becomes the path of its report. ERR_USAGE where it is one of several names: what lies beside it
   would be read for the others, too. */
MUST_CHECK int address_open_all(struct arena *arena, const struct cmd_ctx *ctx,
                                struct opt_list *names, struct err *err);
/* ERR_USAGE where a repository is named without a whole commit, or there is no report, or several. What lies beside it is
   preferred from here on (places_prefer). */
MUST_CHECK int address_open(struct arena *arena, const struct cmd_ctx *ctx, bool is_offline,
                            const char *name, struct address *ret, struct err *err);
