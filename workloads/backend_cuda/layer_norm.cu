/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm, a warp a row, which is read once and stays in registers: whole vectors, up to LANE_ELEMENTS a lane. Bytes an element
   of E bytes: forward 2E, backward 3E; with dropout and addition 4E each; bound by memory.

   Backward: a warp goes over many rows and keeps its columns' sums of dgamma and dbeta; a block adds its warps' in order, sum_parts
   the blocks'. */
#include "backend_cuda/hash.cuh"
#include "backend_cuda/rows.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

#define WARPS         4  /* of a block */
#define LANE_ELEMENTS 32 /* backward keeps four of each in registers */
#define ROW_MAX       (WARP * LANE_ELEMENTS)

/* Vectors a lane. */
template <typename T> constexpr int VECTORS = LANE_ELEMENTS / LANES<T>;

struct norm_span {
    int64_t rows;
    int c;
    float eps;
    bool has_sum; /* of dx */
};

/* What K_DROP_ADD_NORM_* has besides: sum = dropout of x, plus a. All zeros for a layer norm alone. */
template <typename T> struct norm_add {
    const int64_t *step; /* NULL: a layer norm alone */
    const T *a;
    T *sum, *da; /* of forward; of backward, or NULL */
    int64_t first;
    uint64_t stream_hash, threshold;
    float scale;
    bool has_sum; /* of da */
};

template <typename T> static __device__ inline uint64_t base_of(const struct norm_add<T> &add)
{
    return add.step ? dropout_base(add.stream_hash, *add.step) : 0;
}

/* Dropout of a vector, whose first element is number i. */
template <typename T>
static __device__ inline void drop(const struct norm_add<T> &add, uint64_t base, int64_t i,
                                   float value[LANES<T>])
{
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        bool is_kept = dropout_is_kept(base, add.threshold, add.first + i + lane);
        value[lane] = is_kept ? value[lane] * add.scale : 0.0f;
    }
}

struct row_at {
    int64_t row;
    int lane;
};

static __device__ inline struct row_at row_here(void)
{
    return {(int64_t)blockIdx.x * WARPS + threadIdx.x / WARP, (int)threadIdx.x % WARP};
}

/* ---- forward ---- */

/* x becomes the sum, which is stored; its statistics are of what it was before it was rounded. */
template <typename T>
static __device__ inline void drop_and_add(const struct norm_add<T> &add, uint64_t base, int64_t i,
                                           float value[LANES<T>])
{
    float a[LANES<T>];
    load(add.a + i, a);
    drop(add, base, i, value);
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        value[lane] += a[lane];
    }
    store(add.sum + i, value);
}

template <typename T>
static __global__ void __launch_bounds__(WARPS *WARP)
    norm_fwd(const T *x, const float *gamma, const float *beta, T *y, float *mean, float *rstd,
             struct norm_span s, struct norm_add<T> add)
{
    struct row_at at = row_here();
    float value[VECTORS<T>][LANES<T>];
    float sum = 0.0f;
    if (at.row >= s.rows) {
        return;
    }
    const T *from = x + at.row * s.c;
    uint64_t base = base_of(add);
#pragma unroll
    for (int v = 0; v < VECTORS<T>; v++) {
        int c = (v * WARP + at.lane) * LANES<T>;
        if (c < s.c) {
            load(from + c, value[v]);
            if (add.step) {
                drop_and_add(add, base, at.row * s.c + c, value[v]);
            }
        }
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            value[v][i] = c < s.c ? value[v][i] : 0.0f;
            sum += value[v][i];
        }
    }
    float centre = warp_sum(sum) / (float)s.c;
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < VECTORS<T>; v++) {
        bool is_inside = (v * WARP + at.lane) * LANES<T> < s.c;
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            value[v][i] -= centre;
            squares += is_inside ? value[v][i] * value[v][i] : 0.0f;
        }
    }
    float scale = rsqrtf(warp_sum(squares) / (float)s.c + s.eps);
#pragma unroll
    for (int v = 0; v < VECTORS<T>; v++) {
        int c = (v * WARP + at.lane) * LANES<T>;
        if (c < s.c) {
            float g[LANES<T>];
            float b[LANES<T>];
            load_channels<T>(gamma + c, g);
            load_channels<T>(beta + c, b);
#pragma unroll
            for (int i = 0; i < LANES<T>; i++) {
                g[i] = value[v][i] * scale * g[i] + b[i];
            }
            store(y + at.row * s.c + c, g);
        }
    }
    if (at.lane == 0) {
        mean[at.row] = centre;
        rstd[at.row] = scale;
    }
}

/* ---- backward ---- */

/* dgamma and dbeta of a warp's rows, of the columns of its lanes. */
template <typename T> struct norm_sums {
    float hat[VECTORS<T>][LANES<T>], grad[VECTORS<T>][LANES<T>];
};

/* The gradient of the sum, from number i on, goes into da as it is, and into dx as dropout lets it. */
template <typename T>
static __device__ inline void store_both(const struct norm_add<T> &add, uint64_t base, int64_t i,
                                         float grad[LANES<T>])
{
    if (add.da) {
        float whole[LANES<T>];
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            whole[lane] = grad[lane];
        }
        store(add.da + i, whole, add.has_sum);
    }
    drop(add, base, i, grad);
}

/* dx of row `row`, and its contribution to the sums. */
template <typename T>
static __device__ inline void norm_row(const T *dy, const T *x, const float *gamma, T *dx,
                                       const float stat[2], const struct norm_span &s,
                                       const struct norm_add<T> &add, uint64_t base,
                                       const struct row_at &at, struct norm_sums<T> *sums)
{
    int64_t first = at.row * s.c;
    float hat[VECTORS<T>][LANES<T>];
    float slope[VECTORS<T>][LANES<T>];
    float total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int v = 0; v < VECTORS<T>; v++) {
        int c = (v * WARP + at.lane) * LANES<T>;
        float g[LANES<T>];
        if (c < s.c) {
            load(x + first + c, hat[v]);
            load(dy + first + c, slope[v]);
            load_channels<T>(gamma + c, g);
        }
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            bool is_inside = c < s.c;
            hat[v][i] = is_inside ? (hat[v][i] - stat[0]) * stat[1] : 0.0f;
            slope[v][i] = is_inside ? slope[v][i] : 0.0f;
            sums->hat[v][i] += slope[v][i] * hat[v][i];
            sums->grad[v][i] += slope[v][i];
            slope[v][i] *= is_inside ? g[i] : 0.0f;
            total[0] += slope[v][i];
            total[1] += slope[v][i] * hat[v][i];
        }
    }
    float grad = warp_sum(total[0]) / (float)s.c;
    float along = warp_sum(total[1]) / (float)s.c;
#pragma unroll
    for (int v = 0; v < VECTORS<T>; v++) {
        int c = (v * WARP + at.lane) * LANES<T>;
        if (dx && c < s.c) {
#pragma unroll
            for (int i = 0; i < LANES<T>; i++) {
                slope[v][i] = stat[1] * (slope[v][i] - grad - hat[v][i] * along);
            }
            if (add.step) {
                store_both(add, base, first + c, slope[v]);
            }
            store(dx + first + c, slope[v], s.has_sum);
        }
    }
}

/* parts (blocks, 2 * C): dgamma, then dbeta. Shared: (2 * C) floats. */
template <typename T>
static __global__ void __launch_bounds__(WARPS *WARP)
    norm_bwd(const T *dy, const T *x, const float *gamma, const float *mean, const float *rstd,
             T *dx, float *parts, struct norm_span s, struct norm_add<T> add)
{
    CUDA_SHARED(float, shared);
    struct norm_sums<T> sums = {
    };
    struct row_at at = row_here();
    uint64_t base = base_of(add);
    for (; at.row < s.rows; at.row += (int64_t)gridDim.x * WARPS) {
        const float stat[2] = {mean[at.row], rstd[at.row]};
        norm_row<T>(dy, x, gamma, dx, stat, s, add, base, at, &sums);
    }
    for (int warp = 0; warp < WARPS; warp++) {
        if ((int)threadIdx.x / WARP == warp) {
#pragma unroll
            for (int v = 0; v < VECTORS<T>; v++) {
                int c = (v * WARP + at.lane) * LANES<T>;
#pragma unroll
                for (int i = 0; i < LANES<T>; i++) {
                    if (c < s.c) {
                        float before[2] = {0.0f, 0.0f};
                        if (warp > 0) {
                            before[0] = shared[c + i];
                            before[1] = shared[s.c + c + i];
                        }
                        shared[c + i] = before[0] + sums.hat[v][i];
                        shared[s.c + c + i] = before[1] + sums.grad[v][i];
                    }
                }
            }
        }
        __syncthreads();
    }
    for (int i = (int)threadIdx.x; i < 2 * s.c; i += WARPS * WARP) {
        parts[(int64_t)blockIdx.x * 2 * s.c + i] = shared[i];
    }
}

/* ---- calls ---- */

static bool is_added(const struct kernel_args *args)
{
    return args->id == K_DROP_ADD_NORM_FWD || args->id == K_DROP_ADD_NORM_BWD;
}

static const struct layer_norm_geom *geom_of(const struct kernel_args *args)
{
    return is_added(args) ? &args->geom.drop_add_norm.norm : &args->geom.layer_norm;
}

template <typename T>
static void find_add(const struct kernel_args *args, struct norm_add<T> *ret_add)
{
    const struct dropout_geom *g = &args->geom.drop_add_norm.dropout;
    bool is_backward = args->id == K_DROP_ADD_NORM_BWD;
    if (!is_added(args)) {
        return;
    }
    if (is_backward) {
        ret_add->step = (const int64_t *)args->in[NORM_BWD_STEP_IN];
        ret_add->da = (T *)args->out[NORM_BWD_DA_OUT];
    } else {
        ret_add->step = (const int64_t *)args->in[NORM_STEP_IN];
        ret_add->a = (const T *)args->in[NORM_A_IN];
        ret_add->sum = (T *)args->out[NORM_SUM_OUT];
    }
    ret_add->first = g->first;
    ret_add->stream_hash = hash_mix(g->stream);
    ret_add->threshold = dropout_threshold(g->rate);
    ret_add->scale = (float)(1.0 / (1.0 - g->rate));
    ret_add->has_sum = (args->accumulate & OPERAND_BIT(NORM_BWD_DA_OUT)) != 0;
}

static struct norm_span span_of(const struct kernel_args *args)
{
    const struct layer_norm_geom *g = geom_of(args);
    return {g->rows, (int)g->c, (float)g->eps, (args->accumulate & 1U) != 0};
}

extern "C" int cuda_layer_norm_check(const struct cuda *cuda UNUSED, const struct kernel_args *args,
                                     struct err *err)
{
    int64_t c = geom_of(args)->c;
    int64_t lanes = 16 / dtype_bytes(args->dtype);
    return c % lanes == 0 && c <= ROW_MAX
               ? 0
               : err_set(err, ERR_WORKLOAD,
                         "rows of %" PRId64 " elements: expected a multiple of %" PRId64
                         ", and %d at most",
                         c, lanes, ROW_MAX);
}

/* Blocks that fit a multiprocessor at once, according to the driver; a failure here is reported by the launch. */
template <typename T> static int blocks_resident(size_t shared_bytes)
{
    int n_blocks = 0;
    cudaError_t status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, norm_bwd<T>,
                                                                       WARPS * WARP, shared_bytes);
    return status == cudaSuccess && n_blocks > 0 ? n_blocks : 1;
}

/* Blocks of a backward call: as many as run at once, so that no second wave is half empty; 4 rows a warp at least. */
template <typename T> static int64_t norm_blocks(const struct cuda *cuda, const struct norm_span &s)
{
    int64_t n_sm = cuda->n_multiprocessors > 0 ? cuda->n_multiprocessors : 1;
    int64_t resident = blocks_resident<T>((size_t)(2 * s.c) * sizeof(float));
    int64_t wanted = (s.rows + 4 * WARPS - 1) / (4 * WARPS);
    return wanted < resident * n_sm ? wanted : resident * n_sm;
}

/* (blocks, 2, C) */
template <typename T>
static void find_workspace(const struct cuda *cuda, const struct kernel_args *args,
                           int64_t *ret_bytes)
{
    const struct norm_span s = span_of(args);
    *ret_bytes = norm_blocks<T>(cuda, s) * 2 * s.c * (int64_t)sizeof(float);
}

extern "C" int64_t cuda_layer_norm_workspace(const struct cuda *cuda,
                                             const struct kernel_args *args)
{
    int64_t bytes = 0;
    CUDA_BY_TYPE(args, find_workspace, cuda, args, &bytes);
    return bytes;
}

/* The driver was queried when the call was prepared. */
static unsigned blocks_of(const struct kernel_args *args, const struct norm_span &s)
{
    return (unsigned)(args->workspace_bytes / (2 * s.c * (int64_t)sizeof(float)));
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct norm_span s = span_of(args);
    struct norm_add<T> add = {
    };
    find_add(args, &add);
    CUDA_LAUNCH(norm_fwd<T>, dim3(blocks_for(s.rows, WARPS)), dim3(WARPS * WARP), 0,
                cuda_stream(cuda, args), (const T *)args->in[NORM_X_IN],
                (const float *)args->in[NORM_GAMMA_IN], (const float *)args->in[NORM_BETA_IN],
                (T *)args->out[NORM_Y_OUT], (float *)args->out[NORM_MEAN_OUT],
                (float *)args->out[NORM_RSTD_OUT], s, add);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct norm_span s = span_of(args);
    struct norm_add<T> add = {
    };
    find_add(args, &add);
    CUDA_LAUNCH(norm_bwd<T>, dim3(blocks_of(args, s)), dim3(WARPS * WARP),
                (size_t)(2 * s.c) * sizeof(float), cuda_stream(cuda, args),
                (const T *)args->in[NORM_BWD_DY_IN], (const T *)args->in[NORM_BWD_X_IN],
                (const float *)args->in[NORM_BWD_GAMMA_IN],
                (const float *)args->in[NORM_BWD_MEAN_IN],
                (const float *)args->in[NORM_BWD_RSTD_IN], (T *)args->out[NORM_BWD_DX_OUT],
                (float *)args->workspace, s, add);
    CUDA_LAUNCHED(cuda);
    struct part_sums<float> sums = {
        (const float *)args->workspace, (int)blocks_of(args, s), 2 * s.c, s.c,
            {(float *)args->out[NORM_BWD_DGAMMA_OUT], (float *)args->out[NORM_BWD_DBETA_OUT]},
        {
            (args->accumulate & OPERAND_BIT(NORM_BWD_DGAMMA_OUT)) != 0,
                (args->accumulate & OPERAND_BIT(NORM_BWD_DBETA_OUT)) != 0
        }
    };
    CUDA_LAUNCH(sum_parts<float>, dim3(blocks_for(sums.width, WARP)), dim3(THREADS), 0,
                cuda_stream(cuda, args), sums);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_layer_norm_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_layer_norm_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}
