/* SPDX-License-Identifier: Apache-2.0 */
/* Many logs measured at once, each with its digest, on as many threads as the caller has (base/lanes.h). */
#pragma once

#include "base/lanes.h"
#include "base/progress.h"
#include "log/format.h"

struct measure_job {
    const char *path; /* borrowed */
    struct str format;
    bool keeps_lines;                /* of samples */
    struct measurement *measurement; /* NULL: err says why */
    struct str sha256;
    struct err err;
};

struct measure_with {
    const struct format_set *formats;         /* NULL: as with lanes */
    const char *root;                         /* where each lane reads them again */
    const struct lanes *lanes;                /* NULL: one after another, by formats themselves */
    int (*first)(void *ctx, struct err *err); /* done by one lane while others read; or NULL */
    void *ctx;
};

/* What was read lives in the arena. -1 where nothing can be read at all; a log that cannot is its job's error. */
MUST_CHECK int measure_many(struct arena *arena, const struct measure_with *with,
                            struct measure_job *jobs, size_t n, struct err *err);
