/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's kernels. Every launch handles all parameters. First the gradients are scanned, and the last block of the scan decides
   whether the update happens; then the update itself. Bytes an element with half precision parameters and float masters: the scan 2; SGD
   4 + 4 (master) + 4 + 4 (velocity) + 2 + 2 (gradient, parameter) = 20; AdamW 28. With float alone: 4; 20; 28. Bound by memory. */
#include "backend_cuda/vec.cuh"

#include <math.h>

extern "C" {
#include "backend_cuda/optim_cuda.h"
}

#define QUAD 4

/* args and its tables as passed to the kernels. */
struct update {
    struct opt_rule rule;
    const struct opt_segment *segments;
    const struct optim_chunk *chunks;
    int n_chunks;
    char *param, *master, *moment1, *moment2, *sum;
    const char *grad;
    struct opt_state *state;
    struct optim_scratch scratch;
};

CUDA_GLOBAL unsigned tickets[1];

/* ---- elements: QUAD of a chunk a thread at a time ---- */

/* A thread's elements [at, at + count) of the segment; count is QUAD but at the segment's end. */
struct piece {
    int64_t at;
    int count;
};

static __device__ inline struct piece piece_of(const struct optim_chunk &chunk,
                                               const struct opt_segment &segment, int k)
{
    int64_t at = (int64_t)chunk.first * OPTIM_CHUNK + (k * THREADS + (int)threadIdx.x) * QUAD;
    int64_t left = segment.count - at;
    return {at, (int)(left < 0 ? 0 : left < QUAD ? left : QUAD)};
}

#define PIECES (OPTIM_CHUNK / (THREADS * QUAD))

template <typename T> struct alignas(QUAD * sizeof(T)) quad {
    T lane[QUAD];
};

template <typename T>
static __device__ inline void load_typed(const T *from, const struct piece &piece, float *to)
{
    if (piece.count == QUAD) {
        const quad<T> packed = *(const quad<T> *)(from + piece.at);
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            to[i] = (float)packed.lane[i];
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        to[i] = i < piece.count ? (float)from[piece.at + i] : 0.0f;
    }
}

template <typename T>
static __device__ inline void store_typed(T *to, const struct piece &piece, const float *from)
{
    if (piece.count == QUAD) {
        quad<T> packed;
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            packed.lane[i] = (T)from[i];
        }
        *(quad<T> *)(to + piece.at) = packed;
        return;
    }
    for (int i = 0; i < piece.count; i++) {
        to[piece.at + i] = (T)from[i];
    }
}

static __device__ inline void load_wide(const char *base, const struct opt_segment &segment,
                                        const struct piece &piece, float *to)
{
    load_typed((const float *)(base + segment.wide), piece, to);
}

static __device__ inline void store_wide(char *base, const struct opt_segment &segment,
                                         const struct piece &piece, const float *from)
{
    store_typed((float *)(base + segment.wide), piece, from);
}

static __device__ inline void load_stored(const struct update &u, const struct opt_segment &segment,
                                          const struct piece &piece, float *to)
{
    if (segment.param_type == DT_F16) {
        load_typed((const __half *)(u.grad + segment.grad), piece, to);
    } else {
        load_typed((const float *)(u.grad + segment.grad), piece, to);
    }
}

/* The gradient times factor. */
static __device__ inline void load_grad(const struct update &u, const struct opt_segment &segment,
                                        const struct piece &piece, float factor, float *to)
{
    if (u.sum) {
        load_wide(u.sum, segment, piece, to);
    } else {
        load_stored(u, segment, piece, to);
    }
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        to[i] *= factor;
    }
}

static __device__ inline void load_param(const struct update &u, const struct opt_segment &segment,
                                         const struct piece &piece, float *to)
{
    if (segment.has_master) {
        load_wide(u.master, segment, piece, to);
    } else {
        load_typed((const float *)(u.param + segment.param), piece, to);
    }
}

static __device__ inline void store_param(const struct update &u, const struct opt_segment &segment,
                                          const struct piece &piece, const float *from)
{
    if (segment.has_master) {
        store_wide(u.master, segment, piece, from);
    }
    if (segment.param_type == DT_F16) {
        store_typed((__half *)(u.param + segment.param), piece, from);
    } else {
        store_typed((float *)(u.param + segment.param), piece, from);
    }
}

/* ---- sums over a block, in a fixed order ---- */

static __device__ inline struct optim_part sum_parts(struct optim_part own)
{
    __shared__ struct optim_part shared[THREADS];
    unsigned me = threadIdx.x;
    shared[me] = own;
    for (unsigned step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me < step) {
            shared[me].grad_squares += shared[me + step].grad_squares;
            shared[me].n_infinite += shared[me + step].n_infinite;
        }
    }
    __syncthreads();
    own = shared[0];
    __syncthreads();
    return own;
}

/* In thread 0 and all others. */
static __device__ inline struct optim_part sum_chunks(const struct optim_part *parts, int n_chunks)
{
    struct optim_part own = {};
    for (int i = (int)threadIdx.x; i < n_chunks; i += THREADS) {
        own.grad_squares += parts[i].grad_squares;
        own.n_infinite += parts[i].n_infinite;
    }
    return sum_parts(own);
}

/* ---- whether the update happens ---- */

/* opt_state_advance of core/optim.c. */
static __device__ inline void advance(struct opt_state *state, const struct opt_rule &rule,
                                      bool found_inf, double grad_norm)
{
    bool is_dynamic = rule.scaling == OPT_SCALE_DYNAMIC;
    state->found_inf = found_inf;
    state->grad_norm = grad_norm;
    if (found_inf) {
        float half = state->loss_scale * 0.5f;
        state->n_skipped++;
        state->n_good = 0;
        state->loss_scale = !is_dynamic            ? state->loss_scale
                            : half > OPT_SCALE_MIN ? half
                                                   : OPT_SCALE_MIN;
        return;
    }
    state->n_updates++;
    state->n_good++;
    if (is_dynamic && state->n_good >= rule.scale_window) {
        float twice = state->loss_scale * 2.0f;
        state->loss_scale = twice < OPT_SCALE_MAX ? twice : OPT_SCALE_MAX;
        state->n_good = 0;
    }
}

static __device__ inline void decide(const struct update &u, const struct optim_part &all)
{
    const struct opt_rule &rule = u.rule;
    struct optim_step step = {};
    step.factor = (float)(1.0 / ((double)u.state->loss_scale * (double)rule.n_micro));
    advance(u.state, rule, all.n_infinite > 0, sqrt(all.grad_squares));
    step.is_skipped = all.n_infinite > 0;
    step.lr = (float)u.state->lr;
    if (rule.method != OPT_SGD && !step.is_skipped) {
        double t = (double)u.state->n_updates;
        step.per_correct1 = (float)(1.0 / (1.0 - pow(rule.beta1, t)));
        step.per_correct2 = (float)(1.0 / (1.0 - pow(rule.beta2, t)));
    }
    *u.scratch.step = step;
}

/* Every gradient: whether it is finite, and its square. The last block decides. */
static __global__ void __launch_bounds__(THREADS) optim_scan(struct update u)
{
    const struct optim_chunk chunk = u.chunks[blockIdx.x];
    const struct opt_segment segment = u.segments[chunk.segment];
    float factor = (float)(1.0 / ((double)u.state->loss_scale * (double)u.rule.n_micro));
    struct optim_part own = {};
    float grads[PIECES][QUAD];
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        load_grad(u, segment, piece_of(chunk, segment, k), factor, grads[k]);
    }
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        float squares = 0.0f;
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            own.n_infinite += !isfinite(grads[k][i]);
            squares = fmaf(grads[k][i], grads[k][i], squares);
        }
        own.grad_squares += (double)squares;
    }
    own = sum_parts(own);
    if (threadIdx.x == 0) {
        u.scratch.parts[blockIdx.x] = own;
    }
    if (!is_last_block(&tickets[0], gridDim.x)) {
        return;
    }
    own = sum_chunks(u.scratch.parts, u.n_chunks);
    if (threadIdx.x == 0) {
        decide(u, own);
    }
}

/* ---- the update ---- */

/* One quad of SGD: the velocity, then the parameter. */
static __device__ inline void sgd(const struct update &u, const struct optim_step &step,
                                  const struct opt_segment &segment, const struct piece &piece)
{
    float grad[QUAD], param[QUAD], velocity[QUAD];
    float decay = segment.has_decay ? (float)u.rule.weight_decay : 0.0f;
    load_grad(u, segment, piece, step.factor, grad);
    load_param(u, segment, piece, param);
    load_wide(u.moment1, segment, piece, velocity);
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        velocity[i] = (float)u.rule.momentum * velocity[i] + (grad[i] + decay * param[i]);
        param[i] -= step.lr * velocity[i];
    }
    store_wide(u.moment1, segment, piece, velocity);
    store_param(u, segment, piece, param);
}

/* Both moments, then the parameter by m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps). */
static __device__ inline void adamw(const struct update &u, const struct optim_step &step,
                                    const struct opt_segment &segment, const struct piece &piece)
{
    float grad[QUAD], first[QUAD], second[QUAD], param[QUAD];
    float decay = segment.has_decay ? (float)u.rule.weight_decay : 0.0f;
    float beta1 = (float)u.rule.beta1;
    float beta2 = (float)u.rule.beta2;
    float rest1 = (float)(1.0 - u.rule.beta1);
    float rest2 = (float)(1.0 - u.rule.beta2);
    load_grad(u, segment, piece, step.factor, grad);
    load_wide(u.moment1, segment, piece, first);
    load_wide(u.moment2, segment, piece, second);
    load_param(u, segment, piece, param);
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        first[i] = beta1 * first[i] + rest1 * grad[i];
        second[i] = beta2 * second[i] + rest2 * grad[i] * grad[i];
        float way = first[i] * step.per_correct1 /
                    (sqrtf(second[i] * step.per_correct2) + (float)u.rule.eps);
        param[i] -= step.lr * (way + decay * param[i]); /* 1 - lr * decay would lose digits */
    }
    store_wide(u.moment1, segment, piece, first);
    store_wide(u.moment2, segment, piece, second);
    store_param(u, segment, piece, param);
}

template <bool IS_SGD>
static __global__ void __launch_bounds__(THREADS) optim_apply(struct update u)
{
    const struct optim_chunk chunk = u.chunks[blockIdx.x];
    const struct opt_segment segment = u.segments[chunk.segment];
    const struct optim_step step = *u.scratch.step;
    if (step.is_skipped) {
        return;
    }
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        struct piece piece = piece_of(chunk, segment, k);
        if (IS_SGD) {
            sgd(u, step, segment, piece);
        } else {
            adamw(u, step, segment, piece);
        }
    }
}

/* ---- the rest ---- */

static __global__ void __launch_bounds__(THREADS) optim_add(struct update u, bool is_first)
{
    const struct optim_chunk chunk = u.chunks[blockIdx.x];
    const struct opt_segment segment = u.segments[chunk.segment];
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
        struct piece piece = piece_of(chunk, segment, k);
        float grad[QUAD], sum[QUAD] = {0.0f};
        load_stored(u, segment, piece, grad);
        if (!is_first) {
            load_wide(u.sum, segment, piece, sum);
        }
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            sum[i] += grad[i];
        }
        store_wide(u.sum, segment, piece, sum);
    }
}

static __global__ void set_lr(struct opt_state *state, double lr)
{
    state->lr = lr;
}

/* ---- calls ---- */

static struct update update_of(const struct opt_args *args)
{
    const struct optim_table *table = (const struct optim_table *)args->prepared;
    return {
        args->rule,          table->segments,          table->chunks,         table->n_chunks,
        (char *)args->param, (char *)args->master,     (char *)args->moment1, (char *)args->moment2,
        (char *)args->sum,   (const char *)args->grad, args->state,           optim_scratch(args)};
}

extern "C" void optim_set_lr(struct cuda *cuda, struct opt_state *state, double lr)
{
    /* The launch copies its parameters, so nothing of the host's has to stay valid. */
    CUDA_LAUNCH(set_lr, dim3(1), dim3(1), 0, cuda->streams[0], state, lr);
    CUDA_LAUNCHED(cuda);
}

extern "C" void optim_add_gradients(struct cuda *cuda, const struct opt_args *args, bool is_first)
{
    struct update u = update_of(args);
    CUDA_LAUNCH(optim_add, dim3((unsigned)u.n_chunks), dim3(THREADS), 0, cuda->streams[0], u,
                is_first);
    CUDA_LAUNCHED(cuda);
}

extern "C" void optim_update(struct cuda *cuda, const struct opt_args *args)
{
    struct update u = update_of(args);
    dim3 chunks((unsigned)u.n_chunks);
    cudaStream_t stream = cuda->streams[0];
    CUDA_LAUNCH(optim_scan, chunks, dim3(THREADS), 0, stream, u);
    CUDA_LAUNCHED(cuda);
    if (args->rule.method == OPT_SGD) {
        CUDA_LAUNCH(optim_apply<true>, chunks, dim3(THREADS), 0, stream, u);
    } else {
        CUDA_LAUNCH(optim_apply<false>, chunks, dim3(THREADS), 0, stream, u);
    }
    CUDA_LAUNCHED(cuda);
}
