/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings. Bytes an element of E bytes. embed_fwd: E written, the tables' rows from L2 (3E read at worst).
   embed_bwd: dy is read four times, 8 bytes an element go through the workspace for each word that is new in its
   stretch of tokens.

   Which tokens are the same word is found without sorting: within a stretch of STRETCH tokens the block of a word's
   first token adds all its rows up, in order; over the stretches the block of its first token of all adds those sums
   up, in order. No word waits for more than one stretch, however often it occurs. */
#include "backend_cuda/rows.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

#define STRETCH THREADS

/* ---- forward ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embed(const int64_t *ids, const int64_t *segments, const T *word, const T *position,
          const T *segment, T *y, int64_t count, int s, int d)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * LANES<T>;
    float sum[LANES<T>];
    float more[LANES<T>];
    if (i >= count) {
        return;
    }
    int64_t token = i / d;
    int64_t c = i % d;
    load(word + ids[token] * d + c, sum);
    load(position + token % s * d + c, more);
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        sum[lane] += more[lane];
    }
    load(segment + segments[token] * d + c, more);
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        sum[lane] += more[lane];
    }
    store(y + i, sum);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embed_any(const int64_t *ids, const int64_t *segments, const T *word, const T *position,
              const T *segment, T *y, int64_t count, int s, int d)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        int64_t token = i / d;
        int64_t c = i % d;
        float sum = (float)word[ids[token] * d + c] + (float)position[token % s * d + c];
        y[i] = (T)(sum + (float)segment[segments[token] * d + c]);
    }
}

/* ---- backward: words ---- */

/* heads (stretches, words): a word's first token in a stretch, -1 for none. parts (tokens, D): at such a token, the sum
   of dy over the stretch's tokens of that word. */
struct word_span {
    int n_tokens, n_stretches, words, d;
    bool has_sum;
};

/* A block a token. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embed_stretch(const T *dy, const int64_t *ids, int *heads, float *parts, struct word_span s)
{
    __shared__ int same[STRETCH]; /* tokens of this word, in order */
    __shared__ int warp_count[STRETCH / WARP];
    int token = (int)blockIdx.x;
    int stretch = token / STRETCH;
    int mine = stretch * STRETCH + (int)threadIdx.x;
    int64_t id = ids[token];
    bool is_same = mine < s.n_tokens && ids[mine] == id;
    if (__syncthreads_or(is_same && mine < token)) {
        return; /* not the first */
    }
    unsigned lanes = __ballot_sync(ALL_LANES, is_same);
    int warp = (int)threadIdx.x / WARP;
    int lane = (int)threadIdx.x % WARP;
    if (lane == 0) {
        warp_count[warp] = __popc(lanes);
    }
    __syncthreads();
    int at = __popc(lanes & ((1U << lane) - 1));
    int n_same = 0;
    for (int i = 0; i < STRETCH / WARP; i++) {
        at += i < warp ? warp_count[i] : 0;
        n_same += warp_count[i];
    }
    if (is_same) {
        same[at] = mine;
    }
    __syncthreads();
    for (int c = (int)threadIdx.x; c < s.d; c += THREADS) {
        float sum = 0.0f;
#pragma unroll 8
        for (int i = 0; i < n_same; i++) {
            sum += (float)dy[(int64_t)same[i] * s.d + c];
        }
        parts[(int64_t)token * s.d + c] = sum;
    }
    if (threadIdx.x == 0) {
        heads[(int64_t)stretch * s.words + id] = token;
    }
}

/* A block a token again: the first of all tokens of its word adds up the stretches' sums. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embed_words(const int64_t *ids, const int *heads, const float *parts, T *dword,
                struct word_span s)
{
    int token = (int)blockIdx.x;
    int stretch = token / STRETCH;
    int64_t id = ids[token];
    bool is_later = heads[(int64_t)stretch * s.words + id] != token;
    for (int i = (int)threadIdx.x; i < stretch; i += THREADS) {
        is_later = is_later || heads[(int64_t)i * s.words + id] >= 0;
    }
    if (__syncthreads_or(is_later)) {
        return;
    }
    for (int c = (int)threadIdx.x; c < s.d; c += THREADS) {
        float sum = 0.0f;
        for (int i = stretch; i < s.n_stretches; i++) {
            int head = heads[(int64_t)i * s.words + id];
            sum += head >= 0 ? parts[(int64_t)head * s.d + c] : 0.0f;
        }
        store_one(&dword[id * s.d + c], sum, s.has_sum);
    }
}

/* ---- backward: positions and segments ---- */

/* Rows from s on are in no sequence. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embed_positions(const T *dy, T *dposition, int n, int s, int d, int rows, bool has_sum)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t row = i / d;
    int64_t c = i % d;
    float sum = 0.0f;
    if (row >= rows) {
        return;
    }
#pragma unroll 4
    for (int at = 0; at < n && row < s; at++) {
        sum += (float)dy[((int64_t)at * s + row) * d + c];
    }
    store_one(&dposition[i], sum, has_sum);
}

/* parts (blocks, segments, D): a block's stretch of rows, a thread a column, blockIdx.z a segment. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embed_segments(const T *dy, const int64_t *segments, float *parts, int64_t n_tokens, int d)
{
    int c = (int)(blockIdx.y * THREADS + threadIdx.x);
    int64_t first = n_tokens * blockIdx.x / gridDim.x;
    int64_t end = n_tokens * (blockIdx.x + 1) / gridDim.x;
    float sum = 0.0f;
    if (c >= d) {
        return;
    }
#pragma unroll 4
    for (int64_t token = first; token < end; token++) {
        sum += segments[token] == blockIdx.z ? (float)dy[token * d + c] : 0.0f;
    }
    parts[((int64_t)blockIdx.x * gridDim.z + blockIdx.z) * d + c] = sum;
}

/* ---- calls ---- */

/* The workspace: heads, parts of words, parts of segments, each from a multiple of 256 bytes on. */
struct embed_room {
    int64_t heads, parts, segment_parts; /* bytes */
    int n_stretches, n_blocks;
};

static int64_t up_256(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static struct embed_room room_of(const struct cuda *cuda, const struct embed_geom *g)
{
    int64_t n_tokens = g->n * g->s;
    int64_t n_sm = cuda->n_multiprocessors > 0 ? cuda->n_multiprocessors : 1;
    int64_t wanted = (n_tokens + 31) / 32;
    struct embed_room room = {};
    room.n_stretches = (int)((n_tokens + STRETCH - 1) / STRETCH);
    room.n_blocks = (int)(wanted < 2 * n_sm ? wanted : 2 * n_sm);
    room.heads = up_256(room.n_stretches * g->vocabulary * (int64_t)sizeof(int));
    room.parts = up_256(n_tokens * g->d * (int64_t)sizeof(float));
    room.segment_parts = room.n_blocks * g->segments * g->d * (int64_t)sizeof(float);
    return room;
}

extern "C" int cuda_embed_check(const struct cuda *, const struct kernel_args *args,
                                struct err *err)
{
    const struct embed_geom *g = &args->geom.embed;
    if (g->n * g->s > INT32_MAX || g->vocabulary > INT32_MAX || g->d > INT32_MAX / 4) {
        return err_set(err, ERR_WORKLOAD, "%lld tokens, %lld words: counted in 31 bits",
                       (long long)(g->n * g->s), (long long)g->vocabulary);
    }
    return 0;
}

extern "C" int64_t cuda_embed_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    struct embed_room room = room_of(cuda, &args->geom.embed);
    return room.heads + room.parts + room.segment_parts;
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct embed_geom *g = &args->geom.embed;
    int64_t count = g->n * g->s * g->d;
    const int64_t *ids = (const int64_t *)args->in[EMBED_IDS_IN];
    const int64_t *segments = (const int64_t *)args->in[EMBED_SEGMENTS_IN];
    const T *word = (const T *)args->in[EMBED_WORD_IN];
    const T *position = (const T *)args->in[EMBED_POSITION_IN];
    const T *segment = (const T *)args->in[EMBED_SEGMENT_IN];
    if (is_in_vectors<T>(g->d)) {
        CUDA_LAUNCH(embed<T>, dim3(blocks_for(count, (int64_t)THREADS * LANES<T>)), dim3(THREADS),
                    0, cuda_stream(cuda, args), ids, segments, word, position, segment,
                    (T *)args->out[0], count, (int)g->s, (int)g->d);
    } else {
        CUDA_LAUNCH(embed_any<T>, dim3(blocks_for(count, THREADS)), dim3(THREADS), 0,
                    cuda_stream(cuda, args), ids, segments, word, position, segment,
                    (T *)args->out[0], count, (int)g->s, (int)g->d);
    }
    CUDA_LAUNCHED(cuda);
}

/* Rows that no token names get no sum: they are cleared first unless the call adds to its output. */
static bool clear(struct cuda *cuda, const struct kernel_args *args, void *rows, int64_t bytes,
                  int byte)
{
    return cuda_ok(cuda, cudaMemsetAsync(rows, byte, (size_t)bytes, cuda_stream(cuda, args)),
                   "cudaMemsetAsync");
}

template <typename T> static void run_words(struct cuda *cuda, const struct kernel_args *args)
{
    const struct embed_geom *g = &args->geom.embed;
    struct embed_room room = room_of(cuda, g);
    int *heads = (int *)args->workspace;
    float *parts = (float *)((char *)args->workspace + room.heads);
    T *dword = (T *)args->out[EMBED_BWD_DWORD_OUT];
    struct word_span s = {(int)(g->n * g->s), room.n_stretches, (int)g->vocabulary, (int)g->d,
                          (args->accumulate & 1U) != 0};
    int64_t rows = cuda_channels(cuda, g->vocabulary); /* the padding stays 0 */
    if (!dword || !clear(cuda, args, heads, room.heads, 0xff) ||
        (!s.has_sum && !clear(cuda, args, dword, rows * g->d * (int64_t)sizeof(T), 0))) {
        return;
    }
    CUDA_LAUNCH(embed_stretch<T>, dim3((unsigned)s.n_tokens), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[EMBED_BWD_DY_IN],
                (const int64_t *)args->in[EMBED_BWD_IDS_IN], heads, parts, s);
    CUDA_LAUNCHED(cuda);
    CUDA_LAUNCH(embed_words<T>, dim3((unsigned)s.n_tokens), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const int64_t *)args->in[EMBED_BWD_IDS_IN], heads, parts,
                dword, s);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct embed_geom *g = &args->geom.embed;
    struct embed_room room = room_of(cuda, g);
    const T *dy = (const T *)args->in[EMBED_BWD_DY_IN];
    float *parts = (float *)((char *)args->workspace + room.heads + room.parts);
    run_words<T>(cuda, args);
    if (args->out[EMBED_BWD_DPOSITION_OUT]) {
        CUDA_LAUNCH(embed_positions<T>, dim3(blocks_for(g->positions * g->d, THREADS)),
                    dim3(THREADS), 0, cuda_stream(cuda, args), dy,
                    (T *)args->out[EMBED_BWD_DPOSITION_OUT], (int)g->n, (int)g->s, (int)g->d,
                    (int)g->positions,
                    (args->accumulate & OPERAND_BIT(EMBED_BWD_DPOSITION_OUT)) != 0);
        CUDA_LAUNCHED(cuda);
    }
    if (args->out[EMBED_BWD_DSEGMENT_OUT]) {
        dim3 grid((unsigned)room.n_blocks, blocks_for(g->d, THREADS), (unsigned)g->segments);
        CUDA_LAUNCH(embed_segments<T>, grid, dim3(THREADS), 0, cuda_stream(cuda, args), dy,
                    (const int64_t *)args->in[EMBED_BWD_SEGMENTS_IN], parts, g->n * g->s,
                    (int)g->d);
        CUDA_LAUNCHED(cuda);
        int width = (int)(g->segments * g->d);
        struct part_sums<T> sums = {
            parts, room.n_blocks, width, width, {(T *)args->out[EMBED_BWD_DSEGMENT_OUT], NULL},
            {
                (args->accumulate & OPERAND_BIT(EMBED_BWD_DSEGMENT_OUT)) != 0, false
            }
        };
        CUDA_LAUNCH(sum_parts<T>, dim3(blocks_for(width, WARP)), dim3(THREADS), 0,
                    cuda_stream(cuda, args), sums);
        CUDA_LAUNCHED(cuda);
    }
}

extern "C" void cuda_embed_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_embed_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}
