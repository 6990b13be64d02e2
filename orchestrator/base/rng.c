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

/* --- the normal distribution ------------------------------------------------------------------------- */
/* Source: Marsaglia, Tsang, "The ziggurat method for generating random variables", Journal of Statistical Software 5 (8), 2000; that
   the layer and the place in it are different bits of a draw, and the tables: Doornik, "An improved ziggurat method to generate normal
   random samples", 2005. The density's right half is covered by layers of one area: in 98 of 100 draws a point of a layer lies below
   the one above it, and is taken without a logarithm or a cosine. No hidden state besides the seed. */
#define N_LAYERS   128
#define TAIL_FROM  3.442619855899 /* the lowest layer has all beyond it */
#define LAYER_AREA 9.91256303526217e-3
static double
    layer_edge[N_LAYERS +
               1]; /* right ends, falling to 0; the first is that of a rectangle of the area */

static double density(double x)
{
    return exp(-0.5 * x * x);
}

/* When the program starts: a draw asks nothing. */
__attribute__((constructor)) static void make_layers(void)
{
    layer_edge[0] = LAYER_AREA / density(TAIL_FROM);
    layer_edge[1] = TAIL_FROM;
    for (int i = 2; i < N_LAYERS; i++) {
        double height = LAYER_AREA / layer_edge[i - 1] + density(layer_edge[i - 1]);
        layer_edge[i] = sqrt(-2.0 * log(height));
    }
}

static double draw_tail(struct rng *rng)
{
    double beyond;
    double height;
    do {
        beyond = -log(1.0 - rng_f64(rng)) / TAIL_FROM;
        height = -log(1.0 - rng_f64(rng));
    } while (2.0 * height < beyond * beyond);
    return TAIL_FROM + beyond;
}

double rng_normal(struct rng *rng)
{
    for (;;) {
        uint64_t bits = rng_u64(rng);
        const double *edge = &layer_edge[bits % N_LAYERS];
        double x = (double)(bits >> 11) * 0x1p-53 * edge[0];
        double sign = bits & N_LAYERS ? -1.0 : 1.0;
        if (x < edge[1]) {
            return sign * x;
        }
        if (edge == layer_edge) {
            return sign * draw_tail(rng);
        }
        double low = density(edge[0]);
        if (low + rng_f64(rng) * (density(edge[1]) - low) < density(x)) {
            return sign * x;
        }
    }
}
