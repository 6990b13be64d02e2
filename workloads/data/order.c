/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "data/order.h"

#include "base/rng.h"

/* The finaliser of SplitMix64 (base/rng.c has its source): every bit of the result depends on every bit of z. */
static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

uint64_t order_hash(uint64_t seed, uint64_t a, uint64_t b)
{
    /* Odd constants keep (0, 0, 0) away from the fixed point of mix: the fraction of the golden ratio and its multiples. */
    uint64_t hash = mix(seed + 0x9e3779b97f4a7c15ULL);
    hash = mix(hash + a + 0x3c6ef372fe94f82bULL);
    return mix(hash + b + 0xdaa66d2c7ddf743fULL);
}

void order_init(struct order *order, uint64_t n, uint64_t seed, uint64_t epoch)
{
    struct rng rng;
    ASSERT(n > 0 && n <= UINT64_C(1) << 62);
    rng_init(&rng, order_hash(seed, epoch, 0));
    order->n = n;
    for (int round = 0; round < ORDER_ROUNDS; round++) {
        order->key[round] = rng_below(&rng, n);
        order->salt[round] = rng_u64(&rng);
    }
}

uint64_t order_at(const struct order *order, uint64_t position)
{
    uint64_t n = order->n;
    uint64_t x = position;
    ASSERT(position < n);
    for (int round = 0; round < ORDER_ROUNDS; round++) {
        uint64_t other = order->key[round] >= x ? order->key[round] - x : order->key[round] + n - x;
        uint64_t pair = x > other ? x : other;
        bool is_swap = (mix(pair ^ order->salt[round]) >> 63) != 0;
        x = is_swap ? other : x;
    }
    return x;
}

struct order_place order_place(int64_t step, int64_t steps_per_epoch, int64_t global_batch)
{
    return (struct order_place){.epoch = step / steps_per_epoch,
                                .position = step % steps_per_epoch * global_batch};
}
