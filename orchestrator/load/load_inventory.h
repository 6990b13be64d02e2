/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of the text in `--nodes TEXT` and `nodes VERB INVENTORY`. */
#pragma once

#include "report/inventory.h"

/* One of
     local                 this machine, no SSH: manifests/inventories/local.json, where that is not there no GPUs and no
                           containers
     slurm                 the nodes of the allocation around this process (SLURM_JOB_NODELIST), by SSH
     ID                    ROOT/manifests/inventories/ID.json
     PATH                  such a file elsewhere: with a slash outside of brackets, or ending in .json
     ID:SET, PATH:SET      those of its nodes that the node set names (report/hostlist.h)
     SET                   host names as ssh knows them: host1,host2 or gpu[01-04]; runtime none, no GPUs
   ERR_USAGE for a text that is none of these, naming what was tried; ERR_MANIFEST for a file that is wrong. The id of a selection
   is "ID:" and the folded names. */
MUST_CHECK int inventory_load(struct arena *arena, const char *root, const char *text,
                              struct inventory *ret_inventory, struct err *err);

struct inventory_set {
    struct inventory *items; /* sorted by id */
    size_t n;
};
MUST_CHECK int inventory_load_all(struct arena *arena, const char *root,
                                  struct inventory_set *ret_set, struct err *err);
