/* SPDX-License-Identifier: Apache-2.0 */
/* What a description of a dataset says of its files, read off the list of its tree. */
#ifndef STORE_DATASET_DESCRIBE_H
#define STORE_DATASET_DESCRIBE_H

#include "report/dataset.h"
#include "sys/tree.h"

/* Fills splits, groups and pack. SPLIT/CLASS/IMAGE, or CLASS/IMAGE, is images by class: a split and a group each, which can be packed where
   all splits have the same classes. Anything else is a group for each top folder and kind of file; ERR_USAGE for more than
   DATASET_GROUPS_MAX of these. Strings live in the arena. */
MUST_CHECK int dataset_describe(struct arena *arena, const struct tree_list *list,
                                struct dataset *dataset, struct err *err);

#endif
