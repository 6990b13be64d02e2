/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <math.h>

/* Source: SplitMix64, Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 4 with
   the constants of mix64variant13. */
uint64_t rng_u64(struct rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *rng, uint64_t n)
{
    uint64_t value;
    ASSERT(n > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    do {
        value = rng_u64(rng);
    } while (value >= limit);
    return value % n;
}

double rng_f64(struct rng *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

/* Box-Muller, one of the pair: no hidden state besides the seed. */
double rng_normal(struct rng *rng)
{
    double radius = sqrt(-2.0 * log(1.0 - rng_f64(rng)));
    return radius * cos(6.283185307179586 * rng_f64(rng));
}
