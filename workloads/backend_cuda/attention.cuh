/* SPDX-License-Identifier: Apache-2.0 */
/* What the attention kernels have in common: where a head of a sequence lies, which probabilities dropout keeps. Letters: i a query, j a key, s their
   number, d the width of a head. */
#pragma once

#include "backend_cuda/hash.cuh"
#include "backend_cuda/rows.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct attention_span {
    int n, s, heads, d;
    int64_t stride; /* of a row of qkv: 3 * heads * d */
    int64_t width;  /* of a row of the context: heads * d */
    float scale;    /* of scores: 1 / sqrt(d) */
    bool has_sum;   /* of dqkv */
    bool has_dropout;
    uint64_t stream_hash, threshold;
    int64_t first; /* number of the first probability in the batch of all ranks */
    float kept;    /* what a kept one is multiplied by */
};

/* One head of one sequence: blockIdx.y. Row i of q is q + i * stride. */
template <typename T> struct head_of {
    const T *q, *k, *v;
    const int64_t *mask;
    int64_t row;  /* of the context and of qkv: the first */
    int64_t prob; /* number of probability (0, 0) */
    int column;   /* of the context */
    int64_t lse;  /* place of query 0 */
};

template <typename T>
static __device__ inline struct head_of<T> head_here(const T *qkv, const int64_t *mask,
                                                     const struct attention_span &g) {
    int64_t at = blockIdx.y;
    int64_t n = at / g.heads;
    int column = (int)(at % g.heads) * g.d;
    const T *first = qkv + n * g.s * g.stride + column;
    return {first,         first + g.width, first + 2 * g.width,
            mask + n *g.s, n *g.s,          g.first + at *g.s *g.s,
            column,        at *g.s};
}

/* The factor that dropout applies to probability (i, j): 0, or a constant. */
static __device__ inline float
keep_of(const struct attention_span &g, uint64_t base, int64_t prob, int i, int j)
{
    if (!g.has_dropout) {
        return 1.0f;
    }
    return dropout_is_kept(base, g.threshold, prob + (int64_t)i * g.s + j) ? g.kept : 0.0f;
}

/* attention_half.cu: whether the tensor-core kernels support the call. */
extern "C" bool cuda_attention_half_can(const struct cuda *cuda, const struct kernel_args *args);
extern "C" void cuda_attention_half_fwd(struct cuda *cuda, const struct kernel_args *args);
extern "C" void cuda_attention_half_bwd(struct cuda *cuda, const struct kernel_args *args);

/* More than 48 KiB of shared memory has to be requested. */
template <typename Kernel>
static inline bool attention_allow(struct cuda *cuda, Kernel *kernel, size_t bytes)
{
    return cuda_ok(
        cuda, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
        "cudaFuncSetAttribute");
}

static inline struct attention_span attention_span_of(const struct kernel_args *args)
{
    const struct attention_geom *g = &args->geom.attention;
    struct attention_span span = {};
    span.n = (int)g->n;
    span.s = (int)g->s;
    span.heads = (int)g->heads;
    span.d = (int)g->d;
    span.stride = 3 * g->heads * g->d;
    span.width = g->heads * g->d;
    span.scale = (float)(1.0 / sqrt((double)g->d));
    span.has_sum = (args->accumulate & 1U) != 0;
    span.has_dropout = g->dropout.rate > 0.0;
    span.stream_hash = hash_mix(g->dropout.stream);
    span.threshold = dropout_threshold(g->dropout.rate);
    span.first = g->dropout.first;
    span.kept = (float)(1.0 / (1.0 - g->dropout.rate));
    return span;
}
