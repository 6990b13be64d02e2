/* SPDX-License-Identifier: Apache-2.0 */
/* A small seeded generator: same seed, same numbers, everywhere. Not for secrets. */
#pragma once

#include "base/base.h"

struct rng {
    uint64_t state;
};

static inline void rng_init(struct rng *rng, uint64_t seed)
{
    rng->state = seed;
}
uint64_t rng_u64(struct rng *rng);               /* uniform over 64 bits */
uint64_t rng_below(struct rng *rng, uint64_t n); /* 0 .. n-1, n > 0, without modulo bias */
double rng_f64(struct rng *rng);                 /* [0, 1) with 53 bits */
double rng_normal(struct rng *rng);              /* mean 0, variance 1 */
