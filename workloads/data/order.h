/* SPDX-License-Identifier: Apache-2.0 */
/* The order of an epoch without a table: the sample at a position is computed from (seed, epoch, position), so any number
   of ranks sees the same epoch, and a run resumes at any step. Pure; nothing is owned. */
#pragma once

#include "base/base.h"

/* Of one epoch. The permutation is a swap-or-not shuffle: each round pairs every x with (key - x) mod n and swaps the pair or leaves
   it, by a hash of the pair. Any n, its own inverse round by round, no cycle walking. Source: Hoang, Morris, Rogaway, "An
   Enciphering Scheme Based on a Card Shuffle", CRYPTO 2012 (arXiv 1208.1176), figure 1. ORDER_ROUNDS is above the 6 log2 n rounds
   that they give for n up to 2^21 and one more half; tests/unit/test_wl_reader.c compares the distribution of small sets (every
   permutation of 5) and of positions and neighbours of larger ones with chance. */
#define ORDER_ROUNDS 144

struct order {
    uint64_t n;
    uint64_t key[ORDER_ROUNDS];  /* each in [0, n) */
    uint64_t salt[ORDER_ROUNDS]; /* of the round's hash */
};

/* n from 1 to 2^62. */
void order_init(struct order *order, uint64_t n, uint64_t seed, uint64_t epoch);

/* The sample at a position, both in [0, n). */
uint64_t order_at(const struct order *order, uint64_t position);

/* Place of global step `step` (from 0). An epoch has n / (batch * n_ranks) steps: what is left over at its end is dropped, as
   in the rivals' training loaders (drop_last), and other samples are left over in the next epoch. */
struct order_place {
    int64_t epoch;
    int64_t position; /* in the epoch's order, of the first sample of the global batch */
};
struct order_place order_place(int64_t step, int64_t steps_per_epoch, int64_t global_batch);

/* 64 bits of (seed, a, b): independent streams for everything drawn for an epoch or a sample. */
uint64_t order_hash(uint64_t seed, uint64_t a, uint64_t b);
