/* SPDX-License-Identifier: Apache-2.0 */
/* What a description of a dataset says of its files, read off the list of its tree. */
#pragma once

#include "report/dataset.h"
#include "sys/tree.h"

/* Fills splits, groups and pack. SPLIT/CLASS/IMAGE, or CLASS/IMAGE, is images by class: a split and a group each, which can
   be packed where all splits have the same classes. Anything else is one group of files. Strings live in the arena. */
void dataset_describe(struct arena *arena, const struct tree_list *list, struct dataset *dataset);
