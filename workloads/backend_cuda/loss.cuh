/* SPDX-License-Identifier: Apache-2.0 */
/* What the loss kernels share: a sum of losses and a count of labels over the grid, and the softmax of a row by a block, in a fixed order. */
#pragma once

#include "backend_cuda/vec.cuh"

#include <math.h>

struct loss_sum {
    double loss;
    int64_t count; /* of labels that are not ignored */
};

/* Sums over the block, in thread 0, in a fixed order. */
static __device__ inline struct loss_sum sum_block(struct loss_sum own)
{
    __shared__ double losses[THREADS];
    __shared__ int64_t counts[THREADS];
    unsigned me = threadIdx.x;
    losses[me] = own.loss;
    counts[me] = own.count;
    for (unsigned step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me < step) {
            losses[me] += losses[me + step];
            counts[me] += counts[me + step];
        }
    }
    __syncthreads();
    struct loss_sum all = {losses[0], counts[0]};
    __syncthreads();
    return all;
}

/* True in the last block, in all of whose threads *sum is then that of the grid. partial (blocks) */
static __device__ inline bool sum_grid(struct loss_sum *sum, struct loss_sum *partial,
                                       unsigned *ticket)
{
    struct loss_sum own = sum_block(*sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = own;
    }
    if (!is_last_block(ticket, gridDim.x)) {
        return false;
    }
    own = {0.0, 0};
    for (unsigned block = threadIdx.x; block < gridDim.x; block += THREADS) {
        own.loss += partial[block].loss;
        own.count += partial[block].count;
    }
    *sum = sum_block(own);
    return true;
}

/* Largest value and sum of exponentials below it, together with the sum of the values. */
struct soft {
    float largest, total, sum;
};

static __device__ inline void soft_add(struct soft *to, float value)
{
    if (value > to->largest) {
        to->total *= expf(to->largest - value);
        to->largest = value;
    }
    to->total += expf(value - to->largest); /* NaN stays NaN */
    to->sum += value;
}

static __device__ inline void soft_join(struct soft *to, const struct soft &more)
{
    float largest = fmaxf(to->largest, more.largest);
    if (largest == -INFINITY) {
        to->total += more.total;
    } else {
        to->total =
            to->total * expf(to->largest - largest) + more.total * expf(more.largest - largest);
    }
    to->largest = largest;
    to->sum += more.sum;
}

/* Of all threads, in all of them, in a fixed order. */
static __device__ inline struct soft soft_block(struct soft own)
{
    __shared__ struct soft shared[THREADS];
    unsigned me = threadIdx.x;
    shared[me] = own;
    for (unsigned step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me < step) {
            soft_join(&own, shared[me + step]);
            shared[me] = own;
        }
    }
    __syncthreads();
    own = shared[0];
    __syncthreads();
    return own;
}

/* The mean over all labels that count, times the loss's weight; 0 where there is none. */
static __device__ inline float mean_loss(const struct loss_sum &sum, float weight)
{
    return sum.count > 0 ? (float)((double)weight * sum.loss / (double)sum.count) : 0.0f;
}

/* A rank's sums, and then those of all. */
struct loss_ranks {
    double loss, count;
};

/* Called between two kernels, so that the first n numbers of `ranks` are summed over all ranks. */
static inline void loss_over_ranks(struct cuda *cuda, const struct kernel_args *args,
                                   struct loss_ranks *ranks, int n)
{
    const struct comm_run run = {ranks, ranks, n, DT_F64};
    cuda_sum_over_ranks(cuda, args, &run, 1);
}

/* The loss of all ranks; n_labels may be NULL. */
static __global__ void loss_of_ranks(const struct loss_ranks *ranks, float *loss, float *n_labels,
                                     float weight, bool has_sum)
{
    struct loss_sum all = {ranks->loss, (int64_t)ranks->count};
    *loss = mean_loss(all, weight) + (has_sum ? *loss : 0.0f);
    if (n_labels) {
        *n_labels = (float)all.count;
    }
}

/* A label that is neither a class nor ignored makes the loss NaN and reads nothing. */
static __device__ inline bool is_class(int64_t label, int channels)
{
    return label >= 0 && label < channels;
}

/* A few blocks a multiprocessor go over all pixels, so that there are few partial sums. */
static inline int loss_blocks(const struct cuda *cuda, int64_t items, int64_t items_per_block)
{
    int64_t n_sm = cuda->n_multiprocessors > 0 ? cuda->n_multiprocessors : 1;
    int64_t most = 8 * n_sm;
    int64_t wanted = (items + items_per_block - 1) / items_per_block;
    return (int)(wanted < most ? wanted : most);
}
