/* SPDX-License-Identifier: Apache-2.0 */
/* The time until a training's running loss is low enough, from its log alone. Pure. */
#pragma once

#include "judge/rule.h"
#include "report/recipe.h"

struct target_value {
    double elapsed_s; /* from the start of the first step to the end of `step`; NAN: not reached */
    int64_t step;     /* the first at which the running loss is low enough; 0: none */
    double lowest;    /* of the running loss, up to `step` or the end */
};

/* The running loss is the mean of the last target->mean_of samples of the series; with fewer, there is none. The time is the sum
   of the steps' times: by the format's primary series, a rate or step times, of the same rank as the losses (the lowest that
   prints any). A line for several steps (log interval) counts for all steps since the line before it. ERR_PARSE if the log does
   not say enough; a loss that never came down is not an error. */
MUST_CHECK int target_apply(const struct loss_target *target, const struct measurement *m,
                            const struct rule_case *of, struct target_value *ret_value,
                            struct err *err);
