/* SPDX-License-Identifier: Apache-2.0 */
/* `run --data`: which packed data the bundled workload reads, found in the store or at a path, and named by the digest of its
   pack.json, so that a run that is taken up again refuses other data. */
#pragma once

#include "report/plan.h"

#define RUN_DATA_NONE  "synthetic" /* generated on the device, as in the report's own commands */
#define RUN_DATA_SPLIT "train"

/* text: a dataset's id or ID.synthetic, packed in the store, or a path (with a slash) of a folder with a pack.json. ERR_USAGE
   where it is not packed: the message says what to do. ERR_INTEGRITY where what lies there is of another dataset or split, or
   was packed from another tree than the store's or the one that description or lock know. */
MUST_CHECK int run_data_find(struct arena *arena, const char *root, const char *store,
                             const char *text, struct plan_data *ret_data, struct err *err);
/* ERR_INTEGRITY where its pack.json is another than the one that was planned with. */
MUST_CHECK int run_data_check(const struct plan_data *data, struct err *err);
