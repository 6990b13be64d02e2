/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two programs compute the same from the same numbers: the outputs of --check, ours and a rival's. */
#pragma once

#include "core/safetensors.h"

/* A relative difference above one of these is a disagreement. */
struct agree_limits {
    double loss, gradient_norm, logits, statistics;
};

struct agreement {
    double our_loss, loss;
    double our_norm, norm;                   /* of the gradient of all parameters as one vector */
    double loss_difference, norm_difference; /* relative */
    double logits_difference; /* the largest, over the largest of ours; NAN: not given */
    double
        statistics_difference; /* of the running statistics, the worst tensor's, relative; NAN: not given */
    double
        distance; /* norm of the gradients' difference, relative: reported, not judged (README) */
    int64_t n_elements;
    bool holds;
};

/* "fp32" or "amp"; "cpu" or "cuda". */
struct agree_limits agree_limits_of(const char *precision, const char *device);

MUST_CHECK int agree_loss(const struct st_file *file, double *ret_loss, struct err *err);

/* Both files must have a loss and the same gradients. ERR_PARSE. */
MUST_CHECK int agree(const struct st_file *ours, const struct st_file *theirs,
                     const struct agree_limits *limits, struct agreement *ret, struct err *err);
