/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs a damaged tree, of the store or in a folder of the user's (verify->folder): lost or corrupt archives are fetched
   again, missing or corrupt files are unpacked again from them, everything else stays as it is. If the list or record of the
   store's tree is damaged, or an archive has links, the tree is made again. */
#pragma once

#include "store/dataset_verify.h"

struct dataset_repair_opts {
    const struct dataset_verify_opts *verify;
    const char *from;   /* a copy of the tree, whose files are taken first; or NULL */
    bool removes_extra; /* files that the list does not name */
};

struct dataset_repaired {
    const char **files; /* put back, those of opts->from first; empty where is_anew */
    size_t n_files;
    size_t n_removed;      /* files that the list does not name */
    size_t n_bad_archives; /* the store's: lost, or now in its quarantine */
    bool was_whole, is_anew;
    struct dataset_fetched fetched;
    struct dataset_verified verified; /* afterwards */
};

/* Filled also on failure, as far as it came. ERR_INTEGRITY where the tree does not hold afterwards. */
MUST_CHECK int dataset_repair(const struct dataset_job *job, const struct dataset_repair_opts *opts,
                              struct dataset_repaired *repaired, struct err *err);
