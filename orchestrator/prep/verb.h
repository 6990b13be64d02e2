/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of reperf-pack, one row each. The result goes to stdout; the exit statuses are those of reperf-pack(1). */
#pragma once

#include "base/command.h"
#include "base/stop.h"
#include "codec/json.h"
#include "report/dataset.h"

extern const struct cmd VERB_SYNTH, VERB_PACK, VERB_RECORDS, VERB_VERIFY;

/* path of a dataset.json; missing is ERR_USAGE. */
MUST_CHECK int verb_dataset(struct arena *arena, const char *path, struct dataset *ret_dataset,
                            struct err *err);
