/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in half precision on tensor cores: sequences of up to 128, heads of 16, 32, 48 or 64. A whole row of scores
   lies in shared memory, and none is stored. Bytes an element of 2: forward 3 read (keys and values twice, from L2) and
   1 written, backward 5 read and 3 written. With d of 64 and s of 128 a head takes 75 KB of shared memory forward and
   92 KB backward: one block on Volta, three and two on Hopper.

   Products are of 16x16x16 (wmma), with sums in float. Which lane holds which element of a fragment is not specified,
   so fragments go through shared memory wherever single elements are needed. */
#include "backend_cuda/attention.cuh"

#include <mma.h>

using namespace nvcuda;

#define EDGE       16 /* of a fragment */
#define LENGTH_MAX 128
#define FWD_WARPS  4 /* of a block, each with EDGE queries */
#define BWD_WARPS  (LENGTH_MAX / EDGE)
#define KEYS       32 /* that backward handles at a time */
/* Rows that a fragment is read from or written to lie a multiple of 32 bytes apart. Source: PTX ISA, "Matrix fragments
   for WMMA": a row begins at a multiple of the fragment's row. Those of sums lie without a gap: more would not fit into
   Volta's 96 KB. */
#define PROB_PITCH (KEYS + 16)
#define PAD_PITCH  EDGE /* floats of a fragment's row in shared memory */

typedef wmma::fragment<wmma::matrix_a, EDGE, EDGE, EDGE, __half, wmma::row_major> rows_a;
typedef wmma::fragment<wmma::matrix_a, EDGE, EDGE, EDGE, __half, wmma::col_major> columns_a;
typedef wmma::fragment<wmma::matrix_b, EDGE, EDGE, EDGE, __half, wmma::row_major> rows_b;
typedef wmma::fragment<wmma::matrix_b, EDGE, EDGE, EDGE, __half, wmma::col_major> columns_b;
typedef wmma::fragment<wmma::accumulator, EDGE, EDGE, EDGE, float> sums_c;

/* Rows of D halves lie D + 16 apart: four rows begin in different banks. */
template <int D> constexpr int PITCH = D + 16;

/* Rows first to first + count of s, zeros past the end, by n threads of which this is number `me`. */
template <int D>
static __device__ inline void stage(__half *to, const __half *from, int64_t stride, int first,
                                    int count, int s, int me, int n)
{
    const int vectors = D / LANES<__half>;
    for (int i = me; i < count * vectors; i += n) {
        int row = i / vectors;
        int c = i % vectors * LANES<__half>;
        pack<__half> one = {};
        if (first + row < s) {
            one = load_pack(from + (first + row) * stride + c);
        }
        *(pack<__half> *)(to + row * PITCH<D> + c) = one;
    }
}

/* ---- forward ---- */

/* Four keys of a query. */
struct alignas(8) four {
    __half prob[4];
};

/* Scores of one query (sp, floats) become its probabilities (sp, halves) in the same place; a warp's work. */
static __device__ inline float probs_of(float *line, const struct attention_span &g,
                                        const int *seen, int sp, uint64_t base, int64_t prob, int i)
{
    int first = 4 * ((int)threadIdx.x % WARP);
    float value[4];
    float most = -INFINITY;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        bool is_seen = first + k < sp && seen[first + k] != 0;
        value[k] = is_seen ? line[first + k] * g.scale : -INFINITY;
        most = fmaxf(most, value[k]);
    }
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
    }
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        value[k] = value[k] == -INFINITY ? 0.0f : expf(value[k] - most);
        total += value[k];
    }
    total = warp_sum(total);
    float per_total = total > 0.0f ? 1.0f / total : total; /* NaN stays NaN */
    struct four out;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float keep = value[k] == 0.0f ? 0.0f : keep_of(g, base, prob, i, first + k);
        out.prob[k] = (__half)(value[k] * per_total * keep);
    }
    __syncwarp(); /* all scores are read */
    if (first < sp) {
        *(struct four *)((__half *)line + first) = out;
    }
    return total == 0.0f ? 0.0f : most + logf(total);
}

/* A fragment's sums, as they lie in shared memory, to 16 rows of 16 halves; rows from `rows` on are past the end. A warp's work. */
static __device__ inline void put_fragment(__half *to, int64_t stride, const float *from, int pitch,
                                           int rows, bool has_sum)
{
    int lane = (int)threadIdx.x % WARP;
    int row = lane / 2;
    int c = lane % 2 * LANES<__half>;
    float lanes[LANES<__half>];
    if (row < rows) {
#pragma unroll
        for (int i = 0; i < LANES<__half>; i++) {
            lanes[i] = from[row * pitch + c + i];
        }
        store(to + row * stride + c, lanes, has_sum);
    }
}

/* A block has 64 queries of a head. Shared: keys, values (sp rows each), then for each warp 16 rows of sp + 8 floats: first its
   queries, then scores, probabilities, sums. Then which keys are seen. */
template <int D>
static __global__ void __launch_bounds__(FWD_WARPS *WARP)
    attend_half(const __half *qkv, const int64_t *mask, const int64_t *step, __half *context,
                float *lse, struct attention_span g, int sp)
{
    CUDA_SHARED(__half, shared);
    const int parts = D / EDGE;
    int warp = (int)threadIdx.x / WARP;
    int lane = (int)threadIdx.x % WARP;
    int pitch = sp + 8;
    __half *keys = shared;
    __half *values = keys + sp * PITCH<D>;
    float *room = (float *)(values + sp * PITCH<D>);
    int room_size = EDGE * (pitch > PITCH<D> ? pitch : PITCH<D>);
    int *seen = (int *)(room + FWD_WARPS * room_size);
    struct head_of<__half> h = head_here(qkv, mask, g);
    uint64_t base = g.has_dropout ? dropout_base(g.stream_hash, *step) : 0;
    int first = ((int)blockIdx.x * FWD_WARPS + warp) * EDGE;
    float *own = room + warp * room_size;
    stage<D>(keys, h.k, g.stride, 0, sp, g.s, (int)threadIdx.x, FWD_WARPS * WARP);
    stage<D>(values, h.v, g.stride, 0, sp, g.s, (int)threadIdx.x, FWD_WARPS * WARP);
    stage<D>((__half *)own, h.q, g.stride, first, EDGE, g.s, lane, WARP);
    for (int j = (int)threadIdx.x; j < sp; j += FWD_WARPS * WARP) {
        seen[j] = j < g.s && h.mask[j] != 0;
    }
    __syncthreads();
    if (first >= g.s) {
        return;
    }
    rows_a query[parts];
#pragma unroll
    for (int part = 0; part < parts; part++) {
        wmma::load_matrix_sync(query[part], (const __half *)own + part * EDGE, PITCH<D>);
    }
    __syncwarp(); /* scores reuse the queries' memory */
    for (int j = 0; j < sp; j += EDGE) {
        sums_c score;
        wmma::fill_fragment(score, 0.0f);
#pragma unroll
        for (int part = 0; part < parts; part++) {
            columns_b key;
            wmma::load_matrix_sync(key, keys + j * PITCH<D> + part * EDGE, PITCH<D>);
            wmma::mma_sync(score, query[part], key, score);
        }
        wmma::store_matrix_sync(own + j, score, (unsigned)pitch, wmma::mem_row_major);
    }
    __syncwarp();
    for (int row = 0; row < EDGE; row++) {
        float log_sum = probs_of(own + row * pitch, g, seen, sp, base, h.prob, first + row);
        if (lane == 0 && first + row < g.s) {
            lse[h.lse + first + row] = log_sum;
        }
    }
    __syncwarp();
    sums_c sum[parts];
#pragma unroll
    for (int part = 0; part < parts; part++) {
        wmma::fill_fragment(sum[part], 0.0f);
    }
    for (int j = 0; j < sp; j += EDGE) {
        rows_a prob;
        wmma::load_matrix_sync(prob, (const __half *)own + j, (unsigned)(2 * pitch));
#pragma unroll
        for (int part = 0; part < parts; part++) {
            rows_b value;
            wmma::load_matrix_sync(value, values + j * PITCH<D> + part * EDGE, PITCH<D>);
            wmma::mma_sync(sum[part], prob, value, sum[part]);
        }
    }
    __half *to = context + (h.row + first) * g.width + h.column;
#pragma unroll
    for (int part = 0; part < parts; part++) {
        __syncwarp(); /* the reads of that memory */
        wmma::store_matrix_sync(own, sum[part], PAD_PITCH, wmma::mem_row_major);
        __syncwarp();
        put_fragment(to + part * EDGE, g.width, own, PAD_PITCH, g.s - first, false);
    }
}

/* ---- backward ---- */

struct half_in {
    const __half *dcontext, *qkv, *context;
    const int64_t *mask, *step;
    const float *lse;
};

/* Shared memory of a backward block: a head's queries and their gradients, KEYS of its keys and values, the probabilities and
   slopes of all queries for those keys, two fragments a warp, three numbers a query or key. */
template <int D> struct half_room {
    __half *queries, *grads; /* (sp, PITCH) */
    __half *keys, *values;   /* (KEYS, PITCH) */
    __half *probs, *slopes;  /* (sp, PROB_PITCH) */
    float *own;              /* of this warp: 2 of (EDGE, PAD_PITCH) */
    float *lse, *delta;      /* (sp) */
    int *seen;               /* (sp) */
};

template <int D> static __device__ inline struct half_room<D> room_at(__half *shared, int sp) {
    struct half_room<D> r;
    r.queries = shared;
    r.grads = r.queries + sp * PITCH<D>;
    r.keys = r.grads + sp * PITCH<D>;
    r.values = r.keys + KEYS * PITCH<D>;
    r.probs = r.values + KEYS * PITCH<D>;
    r.slopes = r.probs + sp * PROB_PITCH;
    float *floats = (float *)(r.slopes + sp * PROB_PITCH);
    r.own = floats + (int)threadIdx.x / WARP * 2 * EDGE * PAD_PITCH;
    r.lse = floats + BWD_WARPS * 2 * EDGE * PAD_PITCH;
    r.delta = r.lse + sp;
    r.seen = (int *)(r.delta + sp);
    return r;
}

/* lse, delta = dcontext . context, and which keys are seen. */
template <int D>
static __device__ inline void stage_numbers(const struct half_room<D> &r, const struct half_in &in,
                                            const struct head_of<__half> &h,
                                            const struct attention_span &g, int sp)
{
    int lane = (int)threadIdx.x % WARP;
    for (int i = (int)threadIdx.x / WARP; i < sp; i += BWD_WARPS) {
        float sum = 0.0f;
        for (int c = lane; c < D && i < g.s; c += WARP) {
            int64_t at = (h.row + i) * g.width + h.column + c;
            sum += (float)in.dcontext[at] * (float)in.context[at];
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            r.delta[i] = sum;
            r.lse[i] = i < g.s ? in.lse[h.lse + i] : 0.0f;
            r.seen[i] = i < g.s && h.mask[i] != 0;
        }
    }
}

/* Of EDGE queries from i on and EDGE keys, numbers `column` on of the KEYS from j on: products to probabilities and slopes. A
   warp's work. */
template <int D>
static __device__ inline void
slopes_of(const struct half_room<D> &r, const struct head_of<__half> &h,
          const struct attention_span &g, uint64_t base, int i, int j, int column)
{
    int lane = (int)threadIdx.x % WARP;
    int query = i + lane / 2;
    int first = lane % 2 * LANES<__half>;
    const float *score = r.own + lane / 2 * PAD_PITCH + first;
    const float *grad = score + EDGE * PAD_PITCH;
    float probs[LANES<__half>];
    float slopes[LANES<__half>];
#pragma unroll
    for (int k = 0; k < LANES<__half>; k++) {
        int key = j + column + first + k;
        bool is_seen = query < g.s && key < g.s && r.seen[key] != 0;
        float p = is_seen ? expf(score[k] * g.scale - r.lse[query]) : 0.0f;
        float keep = is_seen ? keep_of(g, base, h.prob, query, key) : 0.0f;
        probs[k] = p * keep;
        slopes[k] = is_seen ? p * (grad[k] * keep - r.delta[query]) * g.scale : 0.0f;
    }
    store(r.probs + query * PROB_PITCH + column + first, probs);
    store(r.slopes + query * PROB_PITCH + column + first, slopes);
}

/* Scores and dcontext . values of the warp's queries with EDGE keys, to its two fragments in shared memory. */
template <int D>
static __device__ inline void products_of(const struct half_room<D> &r, int i, int column)
{
    sums_c score;
    sums_c grad;
    wmma::fill_fragment(score, 0.0f);
    wmma::fill_fragment(grad, 0.0f);
#pragma unroll
    for (int part = 0; part < D / EDGE; part++) {
        rows_a left;
        columns_b right;
        wmma::load_matrix_sync(left, r.queries + i * PITCH<D> + part * EDGE, PITCH<D>);
        wmma::load_matrix_sync(right, r.keys + column * PITCH<D> + part * EDGE, PITCH<D>);
        wmma::mma_sync(score, left, right, score);
        wmma::load_matrix_sync(left, r.grads + i * PITCH<D> + part * EDGE, PITCH<D>);
        wmma::load_matrix_sync(right, r.values + column * PITCH<D> + part * EDGE, PITCH<D>);
        wmma::mma_sync(grad, left, right, grad);
    }
    wmma::store_matrix_sync(r.own, score, PAD_PITCH, wmma::mem_row_major);
    wmma::store_matrix_sync(r.own + EDGE * PAD_PITCH, grad, PAD_PITCH, wmma::mem_row_major);
}

/* dvalues = probs' dcontext, dkeys = slopes' queries, of KEYS keys: 4 D / 16 fragments, each the sum over all queries
   by one warp. */
template <int D>
static __device__ inline void put_keys(const struct half_room<D> &r, __half *dqkv,
                                       const struct head_of<__half> &h,
                                       const struct attention_span &g, int j, int sp)
{
    const int parts = D / EDGE;
    for (int t = (int)threadIdx.x / WARP; t < 4 * parts; t += BWD_WARPS) {
        bool is_value = t < 2 * parts;
        int column = t / parts % 2 * EDGE;
        int part = t % parts;
        const __half *left = (is_value ? r.probs : r.slopes) + column;
        const __half *right = (is_value ? r.grads : r.queries) + part * EDGE;
        sums_c sum;
        wmma::fill_fragment(sum, 0.0f);
        for (int i = 0; i < sp; i += EDGE) {
            columns_a a;
            rows_b b;
            wmma::load_matrix_sync(a, left + i * PROB_PITCH, PROB_PITCH);
            wmma::load_matrix_sync(b, right + i * PITCH<D>, PITCH<D>);
            wmma::mma_sync(sum, a, b, sum);
        }
        int key = j + column;
        __half *to = dqkv + (h.row + key) * g.stride + h.column + part * EDGE;
        __syncwarp();
        wmma::store_matrix_sync(r.own, sum, PAD_PITCH, wmma::mem_row_major);
        __syncwarp();
        put_fragment(to + (is_value ? 2 : 1) * g.width, g.stride, r.own, PAD_PITCH, g.s - key,
                     g.has_sum);
    }
}

/* A block a head. */
template <int D>
static __global__ void __launch_bounds__(BWD_WARPS *WARP)
    attend_half_bwd(struct half_in in, __half *dqkv, struct attention_span g, int sp)
{
    CUDA_SHARED(__half, shared);
    const int parts = D / EDGE;
    const int n = BWD_WARPS * WARP;
    int me = (int)threadIdx.x;
    struct half_room<D> r = room_at<D>(shared, sp);
    struct head_of<__half> h = head_here(in.qkv, in.mask, g);
    uint64_t base = g.has_dropout ? dropout_base(g.stream_hash, *in.step) : 0;
    int i = me / WARP * EDGE; /* the warp's first query */
    bool has_queries = i < sp;
    sums_c dq[parts];
#pragma unroll
    for (int part = 0; part < parts; part++) {
        wmma::fill_fragment(dq[part], 0.0f);
    }
    stage<D>(r.queries, h.q, g.stride, 0, sp, g.s, me, n);
    stage<D>(r.grads, in.dcontext + h.row * g.width + h.column, g.width, 0, sp, g.s, me, n);
    stage_numbers<D>(r, in, h, g, sp);
    for (int j = 0; j < sp; j += KEYS) {
        __syncthreads(); /* the reads of the previous round */
        stage<D>(r.keys, h.k, g.stride, j, KEYS, g.s, me, n);
        stage<D>(r.values, h.v, g.stride, j, KEYS, g.s, me, n);
        __syncthreads();
        for (int column = 0; column < KEYS && has_queries; column += EDGE) {
            products_of<D>(r, i, column);
            __syncwarp();
            slopes_of<D>(r, h, g, base, i, j, column);
            __syncwarp();
            rows_a slope;
            wmma::load_matrix_sync(slope, r.slopes + i * PROB_PITCH + column, PROB_PITCH);
#pragma unroll
            for (int part = 0; part < parts; part++) {
                rows_b key;
                wmma::load_matrix_sync(key, r.keys + column * PITCH<D> + part * EDGE, PITCH<D>);
                wmma::mma_sync(dq[part], slope, key, dq[part]);
            }
        }
        __syncthreads();
        put_keys<D>(r, dqkv, h, g, j, sp);
    }
    __half *to = dqkv + (h.row + i) * g.stride + h.column;
#pragma unroll
    for (int part = 0; part < parts; part++) {
        if (has_queries) {
            __syncwarp();
            wmma::store_matrix_sync(r.own, dq[part], PAD_PITCH, wmma::mem_row_major);
            __syncwarp();
            put_fragment(to + part * EDGE, g.stride, r.own, PAD_PITCH, g.s - i, g.has_sum);
        }
    }
}

/* ---- calls ---- */

static int whole_edges(const struct attention_geom *g)
{
    return (int)((g->s + EDGE - 1) / EDGE * EDGE);
}

static size_t fwd_bytes(const struct attention_geom *g)
{
    size_t sp = (size_t)whole_edges(g);
    size_t pitch = (size_t)g->d + 16;
    size_t room = EDGE * (sp + 8 > pitch ? sp + 8 : pitch);
    return 2 * sp * pitch * sizeof(__half) + FWD_WARPS * room * sizeof(float) + sp * sizeof(int);
}

static size_t bwd_bytes(const struct attention_geom *g)
{
    size_t sp = (size_t)whole_edges(g);
    size_t pitch = (size_t)g->d + 16;
    size_t halves = 2 * sp * pitch + 2 * KEYS * pitch + 2 * sp * PROB_PITCH;
    return halves * sizeof(__half) + BWD_WARPS * 2 * EDGE * PAD_PITCH * sizeof(float) +
           sp * (2 * sizeof(float) + sizeof(int));
}

extern "C" bool cuda_attention_half_can(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct attention_geom *g = &args->geom.attention;
    int most = 0;
    bool is_known = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                           cuda->device) == cudaSuccess;
    size_t bytes = args->id == K_ATTENTION_FWD ? fwd_bytes(g) : bwd_bytes(g);
    return is_known && args->dtype == DT_F16 && g->s <= LENGTH_MAX && g->d % EDGE == 0 &&
           g->d <= 4 * EDGE && bytes <= (size_t)most;
}

template <int D> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct attention_geom *geom = &args->geom.attention;
    struct attention_span g = attention_span_of(args);
    size_t bytes = fwd_bytes(geom);
    dim3 grid(blocks_for(g.s, FWD_WARPS * EDGE), (unsigned)(g.n * g.heads));
    if (attention_allow(cuda, attend_half<D>, bytes)) {
        CUDA_LAUNCH(
            attend_half<D>, grid, dim3(FWD_WARPS * WARP), bytes, cuda_stream(cuda, args),
            (const __half *)args->in[ATTEND_QKV_IN], (const int64_t *)args->in[ATTEND_MASK_IN],
            (const int64_t *)args->in[ATTEND_STEP_IN], (__half *)args->out[ATTEND_CONTEXT_OUT],
            (float *)args->out[ATTEND_LSE_OUT], g, whole_edges(geom));
        CUDA_LAUNCHED(cuda);
    }
}

template <int D> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct attention_geom *geom = &args->geom.attention;
    struct attention_span g = attention_span_of(args);
    size_t bytes = bwd_bytes(geom);
    struct half_in in = {(const __half *)args->in[ATTEND_BWD_DCONTEXT_IN],
                         (const __half *)args->in[ATTEND_BWD_QKV_IN],
                         (const __half *)args->in[ATTEND_BWD_CONTEXT_IN],
                         (const int64_t *)args->in[ATTEND_BWD_MASK_IN],
                         (const int64_t *)args->in[ATTEND_BWD_STEP_IN],
                         (const float *)args->in[ATTEND_BWD_LSE_IN]};
    if (attention_allow(cuda, attend_half_bwd<D>, bytes)) {
        CUDA_LAUNCH(attend_half_bwd<D>, dim3(1, (unsigned)(g.n * g.heads)), dim3(BWD_WARPS * WARP),
                    bytes, cuda_stream(cuda, args), in, (__half *)args->out[0], g,
                    whole_edges(geom));
        CUDA_LAUNCHED(cuda);
    }
}

extern "C" void cuda_attention_half_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    int64_t d = args->geom.attention.d;
    if (d == 64) {
        run_fwd<64>(cuda, args);
    } else if (d == 48) {
        run_fwd<48>(cuda, args);
    } else if (d == 32) {
        run_fwd<32>(cuda, args);
    } else {
        run_fwd<16>(cuda, args);
    }
}

extern "C" void cuda_attention_half_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    int64_t d = args->geom.attention.d;
    if (d == 64) {
        run_bwd<64>(cuda, args);
    } else if (d == 48) {
        run_bwd<48>(cuda, args);
    } else if (d == 32) {
        run_bwd<32>(cuda, args);
    } else {
        run_bwd<16>(cuda, args);
    }
}
