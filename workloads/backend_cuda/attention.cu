/* SPDX-License-Identifier: Apache-2.0 */
/* Attention at any length, for heads of up to 160, without tensor cores (attention_half.cu has those): tiles of TILE
   queries by TILE keys, the softmax is computed as the keys stream through, so that no score leaves the multiprocessor.
   Bytes an element of E bytes: forward 3E read, E written, backward twice as much and the products three times; bound
   by shared memory, some 5 loads for 4 multiply-adds.

   Thread t of a block has row t / 8 of a tile, and every eighth column from t % 8 on. */
#include "backend_cuda/attention.cuh"

#define TILE      32
#define LINE      8             /* threads a row */
#define PER_LINE  (TILE / LINE) /* keys, or queries, a thread */
#define COLUMNS   20            /* most columns of a head a thread: WIDTH_MAX / LINE */
#define WIDTH_MAX (LINE * COLUMNS)

/* Rows first to first + TILE of s, those past the end zero, into a tile of rows pitch apart. */
template <typename T>
static __device__ inline void load_tile(float *tile, const T *from, int64_t stride, int first,
                                        const struct attention_span &g)
{
    int pitch = g.d + 1; /* no two rows of a warp in one bank */
    for (int i = (int)threadIdx.x; i < TILE * g.d; i += THREADS) {
        int row = i / g.d;
        int c = i % g.d;
        bool is_inside = first + row < g.s;
        tile[row * pitch + c] = is_inside ? (float)from[(first + row) * stride + c] : 0.0f;
    }
}

static __device__ inline float line_sum(float value)
{
#pragma unroll
    for (int step = LINE / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(ALL_LANES, value, step);
    }
    return value;
}

static __device__ inline float line_max(float value)
{
#pragma unroll
    for (int step = LINE / 2; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, step));
    }
    return value;
}

/* Products of the thread's row of `a` with PER_LINE rows of `b`. */
static __device__ inline void dot_rows(const float *a, const float *b, int row, int column,
                                       int width, float *ret_dots)
{
    int pitch = width + 1;
#pragma unroll
    for (int k = 0; k < PER_LINE; k++) {
        ret_dots[k] = 0.0f;
    }
    for (int c = 0; c < width; c++) {
        float left = a[row * pitch + c];
#pragma unroll
        for (int k = 0; k < PER_LINE; k++) {
            ret_dots[k] += left * b[(column + k * LINE) * pitch + c];
        }
    }
}

/* sums[k] += row of `probs` (TILE, TILE + 1), or column of it, times columns of `b`. */
template <bool IS_COLUMN>
static __device__ inline void add_probs(const float *probs, const float *b, int row, int column,
                                        int width, float *sums)
{
    int pitch = width + 1;
    for (int j = 0; j < TILE; j++) {
        float prob = IS_COLUMN ? probs[j * (TILE + 1) + row] : probs[row * (TILE + 1) + j];
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            int c = column + k * LINE;
            if (c < width) {
                sums[k] += prob * b[j * pitch + c];
            }
        }
    }
}

/* ---- forward: a block has TILE queries of a head ---- */

/* Shared: queries, keys and then values, probabilities. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    attend(const T *qkv, const int64_t *mask, const int64_t *step, T *context, float *lse,
           struct attention_span g)
{
    CUDA_SHARED(float, shared);
    float *queries = shared;
    float *others = queries + TILE * (g.d + 1);
    float *probs = others + TILE * (g.d + 1);
    struct head_of<T> h = head_here(qkv, mask, g);
    uint64_t base = g.has_dropout ? dropout_base(g.stream_hash, *step) : 0;
    int first = (int)blockIdx.x * TILE;
    int row = (int)threadIdx.x / LINE;
    int column = (int)threadIdx.x % LINE;
    float sums[COLUMNS] = {};
    float largest = -INFINITY;
    float total = 0.0f;
    load_tile(queries, h.q, g.stride, first, g);
    for (int key = 0; key < g.s; key += TILE) {
        float score[PER_LINE];
        __syncthreads(); /* the reads of the previous round */
        load_tile(others, h.k, g.stride, key, g);
        __syncthreads();
        dot_rows(queries, others, row, column, g.d, score);
        float most = largest;
#pragma unroll
        for (int k = 0; k < PER_LINE; k++) {
            int j = key + column + k * LINE;
            score[k] = j < g.s && h.mask[j] != 0 ? score[k] * g.scale : -INFINITY;
            most = fmaxf(most, score[k]);
        }
        most = line_max(most);
        float shrink = most == -INFINITY ? 1.0f : expf(largest - most);
        float more = 0.0f;
#pragma unroll
        for (int k = 0; k < PER_LINE; k++) {
            int j = key + column + k * LINE;
            float prob = score[k] == -INFINITY ? 0.0f : expf(score[k] - most);
            more += prob;
            probs[row * (TILE + 1) + column + k * LINE] =
                prob * keep_of(g, base, h.prob, first + row, j);
        }
        total = total * shrink + line_sum(more);
        largest = most;
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            sums[k] *= shrink;
        }
        __syncthreads();
        load_tile(others, h.v, g.stride, key, g);
        __syncthreads();
        add_probs<false>(probs, others, row, column, g.d, sums);
    }
    int i = first + row;
    if (i >= g.s) {
        return;
    }
    float per_total = total > 0.0f ? 1.0f / total : total; /* NaN stays NaN */
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        int c = column + k * LINE;
        if (c < g.d) {
            context[(h.row + i) * g.width + h.column + c] = (T)(sums[k] * per_total);
        }
    }
    if (column == 0) {
        lse[h.lse + i] = total == 0.0f ? 0.0f : largest + logf(total);
    }
}

/* ---- backward ---- */

/* Probabilities of a tile and the slopes of its scores: with a = p * keep, dp = keep * (dcontext . v), dscore = p * (dp -
   delta) * scale. */
template <typename T> struct tile_at {
    struct head_of<T> h;
    uint64_t base;
    int query, key; /* first of the tile */
};

/* probs (may be NULL) and slopes, (TILE, TILE + 1): row a query, column a key. rows: queries, keys, values, dcontext. */
template <typename T>
static __device__ inline void slopes_of(const struct tile_at<T> &at, float *const rows[4],
                                        const float *lse, const float *delta, float *probs,
                                        float *slopes, const struct attention_span &g)
{
    int row = (int)threadIdx.x / LINE;
    int column = (int)threadIdx.x % LINE;
    int i = at.query + row;
    float score[PER_LINE];
    float grad[PER_LINE];
    dot_rows(rows[0], rows[1], row, column, g.d, score);
    dot_rows(rows[3], rows[2], row, column, g.d, grad);
#pragma unroll
    for (int k = 0; k < PER_LINE; k++) {
        int j = at.key + column + k * LINE;
        bool is_seen = i < g.s && j < g.s && at.h.mask[j] != 0;
        float p = is_seen ? expf(score[k] * g.scale - lse[at.h.lse + i]) : 0.0f;
        float keep = is_seen ? keep_of(g, at.base, at.h.prob, i, j) : 0.0f;
        float about = is_seen ? delta[at.h.lse + i] : 0.0f;
        int to = row * (TILE + 1) + column + k * LINE;
        slopes[to] = p * (grad[k] * keep - about) * g.scale;
        if (probs) {
            probs[to] = p * keep;
        }
    }
}

/* delta (N, heads, s): dcontext . context of each query. A warp a query and head. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    attention_delta(const T *dcontext, const T *context, float *delta, struct attention_span g)
{
    int64_t at = (int64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    int lane = (int)threadIdx.x % WARP;
    int64_t n_heads = (int64_t)g.n * g.heads;
    if (at >= n_heads * g.s) {
        return;
    }
    int64_t head = at / g.s;
    int64_t from = (head / g.heads * g.s + at % g.s) * g.width + head % g.heads * g.d;
    float sum = 0.0f;
    for (int c = lane; c < g.d; c += WARP) {
        sum += (float)dcontext[from + c] * (float)context[from + c];
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        delta[at] = sum;
    }
}

/* What both kernels read. */
template <typename T> struct attention_in {
    const T *dcontext, *qkv;
    const int64_t *mask, *step;
    const float *lse, *delta;
};

/* A block has TILE queries. Shared: queries, keys, values, dcontext, slopes. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    attention_dq(struct attention_in<T> in, T *dqkv, struct attention_span g)
{
    CUDA_SHARED(float, shared);
    int tile = TILE * (g.d + 1);
    float *const rows[4] = {shared, shared + tile, shared + 2 * tile, shared + 3 * tile};
    float *slopes = shared + 4 * tile;
    struct tile_at<T> at = {
        head_here(in.qkv, in.mask, g), g.has_dropout ? dropout_base(g.stream_hash, *in.step) : 0,
            (int)blockIdx.x *TILE, 0
    };
    int row = (int)threadIdx.x / LINE;
    int column = (int)threadIdx.x % LINE;
    float sums[COLUMNS] = {};
    load_tile(rows[0], at.h.q, g.stride, at.query, g);
    load_tile(rows[3], in.dcontext + at.h.row * g.width + at.h.column, g.width, at.query, g);
    for (; at.key < g.s; at.key += TILE) {
        __syncthreads();
        load_tile(rows[1], at.h.k, g.stride, at.key, g);
        load_tile(rows[2], at.h.v, g.stride, at.key, g);
        __syncthreads();
        slopes_of(at, rows, in.lse, in.delta, (float *)NULL, slopes, g);
        __syncthreads();
        add_probs<false>(slopes, rows[1], row, column, g.d, sums);
    }
    int i = at.query + row;
    T *to = dqkv + (at.h.row + i) * g.stride + at.h.column;
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        int c = column + k * LINE;
        if (c < g.d && i < g.s) {
            store_one(&to[c], sums[k], g.has_sum);
        }
    }
}

/* A block has TILE keys. Shared: queries, keys, values, dcontext, slopes, probabilities. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    attention_dkv(struct attention_in<T> in, T *dqkv, struct attention_span g)
{
    CUDA_SHARED(float, shared);
    int tile = TILE * (g.d + 1);
    float *const rows[4] = {shared, shared + tile, shared + 2 * tile, shared + 3 * tile};
    float *slopes = shared + 4 * tile;
    float *probs = slopes + TILE * (TILE + 1);
    struct tile_at<T> at = {
        head_here(in.qkv, in.mask, g), g.has_dropout ? dropout_base(g.stream_hash, *in.step) : 0, 0,
            (int)blockIdx.x *TILE
    };
    int row = (int)threadIdx.x / LINE;
    int column = (int)threadIdx.x % LINE;
    float dk[COLUMNS] = {};
    float dv[COLUMNS] = {};
    load_tile(rows[1], at.h.k, g.stride, at.key, g);
    load_tile(rows[2], at.h.v, g.stride, at.key, g);
    for (; at.query < g.s; at.query += TILE) {
        __syncthreads();
        load_tile(rows[0], at.h.q, g.stride, at.query, g);
        load_tile(rows[3], in.dcontext + at.h.row * g.width + at.h.column, g.width, at.query, g);
        __syncthreads();
        slopes_of(at, rows, in.lse, in.delta, probs, slopes, g);
        __syncthreads();
        add_probs<true>(slopes, rows[0], row, column, g.d, dk);
        add_probs<true>(probs, rows[3], row, column, g.d, dv);
    }
    int j = at.key + row;
    T *to = dqkv + (at.h.row + j) * g.stride + at.h.column;
#pragma unroll
    for (int k = 0; k < COLUMNS; k++) {
        int c = column + k * LINE;
        if (c < g.d && j < g.s) {
            store_one(&to[g.width + c], dk[k], g.has_sum);
            store_one(&to[2 * g.width + c], dv[k], g.has_sum);
        }
    }
}

/* ---- calls ---- */

/* Floats of shared memory: tiles of rows, tiles of probabilities. */
static size_t shared_bytes(const struct attention_geom *g, int rows, int probs)
{
    return (size_t)(rows * TILE * (g->d + 1) + probs * TILE * (TILE + 1)) * sizeof(float);
}

extern "C" int cuda_attention_check(const struct cuda *cuda, const struct kernel_args *args,
                                    struct err *err)
{
    const struct attention_geom *g = &args->geom.attention;
    int most = 0;
    cudaError_t status =
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, cuda->device);
    bool is_fwd = args->id == K_ATTENTION_FWD;
    if (status != cudaSuccess) {
        return err_set(err, ERR_WORKLOAD, "cudaDeviceGetAttribute: %s", cudaGetErrorString(status));
    }
    size_t bytes = is_fwd ? shared_bytes(g, 2, 1) : shared_bytes(g, 4, 2);
    if (g->d > WIDTH_MAX || bytes > (size_t)most || g->n * g->heads > 65535) {
        return err_set(err, ERR_WORKLOAD,
                       "%lld heads of %lld: a head is at most %d wide and fits shared memory of %d "
                       "bytes, there are at most 65535 in a batch",
                       (long long)(g->n * g->heads), (long long)g->d, WIDTH_MAX, most);
    }
    return 0;
}

extern "C" int64_t cuda_attention_workspace(const struct cuda *, const struct kernel_args *args)
{
    const struct attention_geom *g = &args->geom.attention;
    return g->n * g->heads * g->s * (int64_t)sizeof(float);
}

static dim3 tiles_of(const struct attention_span *g)
{
    return dim3(blocks_for(g->s, TILE), (unsigned)(g->n * g->heads));
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct attention_span g = attention_span_of(args);
    size_t bytes = shared_bytes(&args->geom.attention, 2, 1);
    if (attention_allow(cuda, attend<T>, bytes)) {
        CUDA_LAUNCH(attend<T>, tiles_of(&g), dim3(THREADS), bytes, cuda_stream(cuda, args),
                    (const T *)args->in[ATTEND_QKV_IN], (const int64_t *)args->in[ATTEND_MASK_IN],
                    (const int64_t *)args->in[ATTEND_STEP_IN], (T *)args->out[ATTEND_CONTEXT_OUT],
                    (float *)args->out[ATTEND_LSE_OUT], g);
        CUDA_LAUNCHED(cuda);
    }
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct attention_span g = attention_span_of(args);
    size_t of_queries = shared_bytes(&args->geom.attention, 4, 1);
    size_t of_keys = shared_bytes(&args->geom.attention, 4, 2);
    float *delta = (float *)args->workspace;
    T *dqkv = (T *)args->out[0];
    struct attention_in<T> in = {
        (const T *)args->in[ATTEND_BWD_DCONTEXT_IN], (const T *)args->in[ATTEND_BWD_QKV_IN],
            (const int64_t *)args->in[ATTEND_BWD_MASK_IN],
            (const int64_t *)args->in[ATTEND_BWD_STEP_IN],
            (const float *)args->in[ATTEND_BWD_LSE_IN], delta
    };
    int64_t n_queries = (int64_t)g.n * g.heads * g.s;
    if (!attention_allow(cuda, attention_dq<T>, of_queries) ||
        !attention_allow(cuda, attention_dkv<T>, of_keys)) {
        return;
    }
    CUDA_LAUNCH(attention_delta<T>, dim3(blocks_for(n_queries, THREADS / WARP)), dim3(THREADS), 0,
                cuda_stream(cuda, args), in.dcontext, (const T *)args->in[ATTEND_BWD_CONTEXT_IN],
                delta, g);
    CUDA_LAUNCHED(cuda);
    CUDA_LAUNCH(attention_dq<T>, tiles_of(&g), dim3(THREADS), of_queries, cuda_stream(cuda, args),
                in, dqkv, g);
    CUDA_LAUNCHED(cuda);
    CUDA_LAUNCH(attention_dkv<T>, tiles_of(&g), dim3(THREADS), of_keys, cuda_stream(cuda, args), in,
                dqkv, g);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_attention_fwd(void *self, const struct kernel_args *args)
{
    struct cuda *cuda = (struct cuda *)self;
    if (cuda_attention_half_can(cuda, args)) {
        cuda_attention_half_fwd(cuda, args);
        return;
    }
    CUDA_BY_TYPE(args, run_fwd, cuda, args);
}

extern "C" void cuda_attention_bwd(void *self, const struct kernel_args *args)
{
    struct cuda *cuda = (struct cuda *)self;
    if (cuda_attention_half_can(cuda, args)) {
        cuda_attention_half_bwd(cuda, args);
        return;
    }
    CUDA_BY_TYPE(args, run_bwd, cuda, args);
}
