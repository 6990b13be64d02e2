/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a dataset's check share: dataset_verify.c (digests, faults, headers, groups), dataset_folder.c (data
   that lies outside of the store). */
#pragma once

#include "base/progress.h"
#include "store/dataset_verify.h"

#define NOTES_MAX (8 + 4 * DATASET_GROUPS_MAX + 2 * DATASET_FILES_MAX)

struct header_check {                  /* of one file */
    const char *path;                  /* below the folder */
    const struct dataset_group *group; /* NULL or FILE_ANY: not looked at */
    char *why;                         /* owned by the heap: what is wrong; NULL: nothing */
    int64_t n_records;                 /* of a TFRecord, lines of a text; -1: none */
    bool is_seen;
};

struct dataset_verifying {
    struct arena *arena;
    const struct store *store;
    const struct dataset_here *here;
    const struct dataset_verify_opts *opts;
    struct dataset_verified *out;
    struct tree_list list; /* expected */
    bool lacks_list; /* of a folder: what lies there is no fault for want of a line in a list */
    struct header_check *present; /* every file that is there, sorted by path */
    bool *is_paired;              /* parallel to present */
    size_t n_present;
    struct {
        struct dataset_fault *items;
        size_t n, n_max;
    } faults;
    struct progress progress;
};

void verify_add_fault(struct dataset_verifying *v, enum dataset_fault_kind kind, const char *path,
                      const char *why);
void verify_note(struct dataset_verifying *v, const char *text);

/* What the tree was unpacked from is what description and lock say that it must be. */
MUST_CHECK int verify_archives(struct dataset_verifying *v, struct err *err);
/* The archives and the list of a folder outside of the store. *ret_has_tree false: archives alone lie there. */
MUST_CHECK int verify_open_folder(struct dataset_verifying *v, bool *ret_has_tree, struct err *err);
