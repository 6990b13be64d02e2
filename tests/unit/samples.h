/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and series as a parser would make them of one log. */
#pragma once

#include "unit.h"

#include "log/series.h"

/* Values given, at steps `every`, 2 every, ..., two seconds apart, of one run and no rank. */
static inline void fill_samples(struct sample *samples, const double *values, size_t n,
                                int64_t every)
{
    for (size_t idx = 0; idx < n; idx++) {
        samples[idx] = (struct sample){.step = every * (int64_t)(idx + 1),
                                       .value = values[idx],
                                       .time_s = 1000.0 + 2.0 * (double)idx,
                                       .rank = -1,
                                       .gpus = -1};
    }
}

/* The rates of a rank. */
static inline struct series series_of(const char *name, struct sample *samples, size_t n)
{
    return (struct series){.name = str_of(name),
                           .unit = STR_LIT("samples/s"),
                           .scope = SCOPE_RANK,
                           .quantity = QTY_RATE,
                           .is_primary = true,
                           .samples = samples,
                           .n = n};
}
