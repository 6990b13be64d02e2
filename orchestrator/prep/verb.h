/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of reperf-pack, one row each. Like cmd/cmd.h for reperf; the result on stdout, exit statuses of DESIGN.md section
   5. */
#ifndef PREP_VERB_H
#define PREP_VERB_H

#include "base/opt.h"
#include "base/strbuf.h"
#include "codec/json.h"
#include "report/dataset.h"
#include "sys/stop.h"

struct verb {
    const char *name;
    const char *operands;
    const char *summary; /* one line */
    const struct opt *opts;
    int (*run)(int argc, char **argv, struct err *err);
};

extern const struct verb VERB_SYNTH, VERB_PACK, VERB_RECORDS, VERB_VERIFY, VERB_DESCRIBE;

/* path of a dataset.json; missing is ERR_USAGE. */
MUST_CHECK int verb_dataset(struct arena *arena, const char *path, struct dataset *ret_dataset,
                            struct err *err);
/* A whole document to stdout. */
MUST_CHECK int verb_print(struct str text, struct err *err);

#endif
