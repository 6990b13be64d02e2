/* SPDX-License-Identifier: Apache-2.0 */
/* What a log is asked for beside the number of its case: a recipe says it (manifests/reports/README.md), a plan carries it. Pure
   data, in the arena of whoever decoded it. */
#pragma once

#include "codec/json_table.h"

#define TARGET_MEAN_MAX 1000
#define ALSO_RULES_MAX  8

/* The target of a training: the first step at which the mean of the last mean_of losses is at most at_most. */
struct loss_target {
    struct str series; /* the format's, of losses; NULL: there is no target */
    double at_most;
    int64_t mean_of;
};

struct extras {
    struct loss_target target;
    /* "FORMAT/NAME": rules of the format that reads the log, none of them twice. */
    struct str *also;
    size_t n_also;
    struct str why_not; /* one line: why nothing is, or can be, read by them; or NULL */
};

/* Its members, each of which may be absent. */
#define EXTRAS_N 3
extern const struct json_field EXTRAS_ROWS[EXTRAS_N];
bool extras_is_same(const struct extras *a, const struct extras *b);

/* The FORMAT of a rule's id, "FORMAT/NAME". */
struct str rule_id_format(struct str id);
