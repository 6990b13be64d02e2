/* SPDX-License-Identifier: Apache-2.0 */
#include "backend_cuda/launch.cuh"

extern "C" {
#include "backend_cuda/sums.h"
}

#define ADD_THREADS  256
#define TILE_COLUMNS 32
#define TILE_ROWS    8
#define CHUNK_ROWS   64 /* of TILE_ROWS each: the least that one block sums */
#define CHUNKS_MAX   256

template <typename T> static __global__ void add_to(const T *from, T *to, int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        to[i] = (T)((float)to[i] + (float)from[i]);
    }
}

void cuda_add_to(struct cuda *cuda, const struct add_args *args)
{
    dim3 grid((unsigned)((args->count + ADD_THREADS - 1) / ADD_THREADS));
    cudaStream_t stream = args->stream;
    if (args->dtype == DT_F16) {
        CUDA_LAUNCH(add_to<__half>, grid, ADD_THREADS, 0, stream, (const __half *)args->from,
                    (__half *)args->to, args->count);
    } else {
        CUDA_LAUNCH(add_to<float>, grid, ADD_THREADS, 0, stream, (const float *)args->from,
                    (float *)args->to, args->count);
    }
    CUDA_LAUNCHED(cuda);
}

static int64_t chunks_of(int64_t rows)
{
    int64_t chunks = (rows + CHUNK_ROWS * TILE_ROWS - 1) / (CHUNK_ROWS * TILE_ROWS);
    return chunks < 1 ? 1 : chunks > CHUNKS_MAX ? CHUNKS_MAX : chunks;
}

int64_t cuda_column_sum_bytes(int64_t rows, int64_t columns)
{
    return chunks_of(rows) * columns * (int64_t)sizeof(float);
}

/* partial (chunks, columns) = the sum of the rows that are the chunk's: chunk, chunk + chunks, ... by tiles. */
template <typename T>
static __global__ void column_partial(const T *x, int64_t rows, int64_t columns, float *partial)
{
    __shared__ float tile[TILE_ROWS][TILE_COLUMNS];
    int64_t column = (int64_t)blockIdx.x * TILE_COLUMNS + threadIdx.x;
    int64_t step = (int64_t)gridDim.y * TILE_ROWS;
    float sum = 0.0f;
    if (column < columns) {
        for (int64_t row = (int64_t)blockIdx.y * TILE_ROWS + threadIdx.y; row < rows; row += step) {
            sum += (float)x[row * columns + column];
        }
    }
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int i = 1; i < TILE_ROWS; i++) {
            sum += tile[i][threadIdx.x];
        }
        partial[(int64_t)blockIdx.y * columns + column] = sum;
    }
}

template <typename T>
static __global__ void column_total(const float *partial, int64_t chunks, int64_t columns,
                                    bool is_added, T *sums)
{
    int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns) {
        float sum = is_added ? (float)sums[column] : 0.0f;
        for (int64_t i = 0; i < chunks; i++) {
            sum += partial[i * columns + column];
        }
        sums[column] = (T)sum;
    }
}

template <typename T> static void column_sum(struct cuda *cuda, const struct column_sum_args *args)
{
    int64_t chunks = chunks_of(args->rows);
    dim3 grid((unsigned)((args->columns + TILE_COLUMNS - 1) / TILE_COLUMNS), (unsigned)chunks);
    dim3 block(TILE_COLUMNS, TILE_ROWS);
    dim3 last((unsigned)((args->columns + ADD_THREADS - 1) / ADD_THREADS));
    cudaStream_t stream = args->stream;
    CUDA_LAUNCH(column_partial<T>, grid, block, 0, stream, (const T *)args->x, args->rows,
                args->columns, args->partial);
    CUDA_LAUNCHED(cuda);
    CUDA_LAUNCH(column_total<T>, last, ADD_THREADS, 0, stream, (const float *)args->partial, chunks,
                args->columns, args->is_added, (T *)args->sums);
    CUDA_LAUNCHED(cuda);
}

void cuda_column_sum(struct cuda *cuda, const struct column_sum_args *args)
{
    if (args->dtype == DT_F16) {
        column_sum<__half>(cuda, args);
    } else {
        column_sum<float>(cuda, args);
    }
}
