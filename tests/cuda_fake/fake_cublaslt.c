/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cuBLASLt under its own names: products by loops, from the descriptions as the library's manual defines them (columns first). Built
   as a shared library, so that all of lt*.c runs: opening, heuristics, timing, names of algorithms, epilogues, workspace. */
#include "base/base.h"

#include <cublasLt.h>

#include "tests/cuda_fake/fake.h"

#define MAGIC       0x6c74616cULL
#define N_ALGOS     3
#define NOT_WORKING 1 /* this algorithm is offered and fails */

static const uint64_t WORKSPACE[N_ALGOS] = {0, 512, 4096};
static int n_alive; /* descriptions and handles */

struct description {
    cublasOperation_t turn_a, turn_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};

struct matrix {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld;
};

struct preference {
    uint32_t schemes, align[4];
    uint64_t workspace;
};

struct product {
    struct description how;
    struct matrix a, b, d;
    float alpha, beta;
    const void *at_a, *at_b;
    void *at_d, *workspace;
    size_t workspace_bytes;
};

size_t cublasLtGetVersion(void)
{
    return CUDART_VERSION / 1000 * 10000 + 2;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "made-up failure";
}

static void *alive(size_t bytes)
{
    n_alive++;
    return calloc(1, bytes);
}

static cublasStatus_t gone(void *ptr)
{
    if (!ptr) {
        fake_die("cublaslt: NULL is destroyed");
    }
    n_alive--;
    free(ptr);
    return CUBLAS_STATUS_SUCCESS;
}

__attribute__((destructor)) static void nothing_is_left(void)
{
    if (n_alive != 0) {
        (void)fprintf(stderr, "made-up cublaslt: %d things are not destroyed\n", n_alive);
        _Exit(99);
    }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = alive(8);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return gone(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *desc = alive(sizeof(struct description));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return gone(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t name, const void *from,
                                              size_t bytes)
{
    struct description *how = (struct description *)desc;
    void *to = name == CUBLASLT_MATMUL_DESC_TRANSA         ? (void *)&how->turn_a
               : name == CUBLASLT_MATMUL_DESC_TRANSB       ? (void *)&how->turn_b
               : name == CUBLASLT_MATMUL_DESC_EPILOGUE     ? (void *)&how->epilogue
               : name == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? (void *)&how->bias
                                                           : NULL;
    size_t expected = name == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? sizeof(void *) : 4;
    if (!to || bytes != expected) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    struct matrix *matrix = alive(sizeof(*matrix));
    *matrix = (struct matrix){type, rows, columns, ld};
    *layout = (cublasLtMatrixLayout_t)matrix;
    return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return gone(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    struct preference *made = alive(sizeof(*made));
    *made = (struct preference){.schemes = CUBLASLT_REDUCTION_SCHEME_MASK,
                                .align = {256, 256, 256, 256}};
    *preference = (cublasLtMatmulPreference_t)made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return gone(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void *from, size_t bytes)
{
    struct preference *to = (struct preference *)preference;
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == 8) {
        memcpy(&to->workspace, from, 8);
    } else if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == 4) {
        memcpy(&to->schemes, from, 4);
    } else if (name >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
               name <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES && bytes == 4) {
        memcpy(&to->align[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], from, 4);
    } else {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Rows and columns of a matrix as it enters the product. */
static bool fits(const struct description *how, const struct matrix *a, const struct matrix *b,
                 const struct matrix *d)
{
    uint64_t m = how->turn_a == CUBLAS_OP_N ? a->rows : a->columns;
    uint64_t k = how->turn_a == CUBLAS_OP_N ? a->columns : a->rows;
    uint64_t n = how->turn_b == CUBLAS_OP_N ? b->columns : b->rows;
    uint64_t k_of_b = how->turn_b == CUBLAS_OP_N ? b->rows : b->columns;
    return m == d->rows && n == d->columns && k == k_of_b && a->type == d->type &&
           b->type == d->type;
}

static bool is_algo(const cublasLtMatmulAlgo_t *algo)
{
    for (int i = 2; i < 8; i++) {
        if (algo->data[i] != algo->data[1] * (uint64_t)i) {
            return false;
        }
    }
    return algo->data[0] == MAGIC && algo->data[1] < N_ALGOS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int n_max,
                                              cublasLtMatmulHeuristicResult_t *results, int *ret_n)
{
    const struct preference *wish = (const struct preference *)preference;
    (void)handle;
    if (c != d || !fits((struct description *)how, (struct matrix *)a, (struct matrix *)b,
                        (struct matrix *)d)) {
        fake_die("cublaslt: matrices that do not fit");
    }
    if ((wish->schemes &
         (CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE | CUBLASLT_REDUCTION_SCHEME_INPLACE)) != 0 ||
        wish->align[0] > 16 || wish->align[1] > 16 || wish->align[2] > 16 || wish->align[3] > 16) {
        fake_die("cublaslt: sums of parts, or alignment, are promised too much");
    }
    *ret_n = 0;
    for (int i = 0; i < N_ALGOS && *ret_n < n_max; i++) {
        cublasLtMatmulHeuristicResult_t *result = &results[*ret_n];
        *result = (cublasLtMatmulHeuristicResult_t){.workspaceSize = WORKSPACE[i],
                                                    .state = CUBLAS_STATUS_SUCCESS};
        result->algo.data[0] = MAGIC;
        for (int k = 1; k < 8; k++) {
            result->algo.data[k] = (uint64_t)(i * k);
        }
        *ret_n += 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t how,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    (void)handle;
    if (c != d || !is_algo(algo) ||
        !fits((struct description *)how, (struct matrix *)a, (struct matrix *)b,
              (struct matrix *)d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    result->workspaceSize = WORKSPACE[algo->data[1]];
    return CUBLAS_STATUS_SUCCESS;
}

static double get(cudaDataType type, const void *at, uint64_t i)
{
    return type == CUDA_R_16F ? (double)fake_half_to_float(((const uint16_t *)at)[i])
                              : (double)((const float *)at)[i];
}

static void put(cudaDataType type, void *at, uint64_t i, double value)
{
    if (type == CUDA_R_16F) {
        ((uint16_t *)at)[i] = fake_half_from_float((float)value);
    } else {
        ((float *)at)[i] = (float)value;
    }
}

/* The terms of each sum in a row: n_sum numbers for each of `count`, which are the matrix's rows if the sums run over its columns. */
static double *terms_of(const struct matrix *matrix, const void *at, bool sums_rows, uint64_t count,
                        uint64_t n_sum)
{
    double *terms = malloc(count * n_sum * sizeof(*terms) + 1);
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t k = 0; k < n_sum; k++) {
            uint64_t ld = (uint64_t)matrix->ld;
            terms[i * n_sum + k] = get(matrix->type, at, sums_rows ? k + i * ld : i + k * ld);
        }
    }
    return terms;
}

static double dot(const double *a, const double *b, uint64_t count)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    uint64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += a[i + (uint64_t)k] * b[i + (uint64_t)k];
        }
    }
    for (; i < count; i++) {
        sum[0] += a[i] * b[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void run(void *closure)
{
    const struct product *p = closure;
    bool is_turned_a = p->how.turn_a != CUBLAS_OP_N;
    bool is_turned_b = p->how.turn_b != CUBLAS_OP_N;
    uint64_t n_sum = is_turned_a ? p->a.rows : p->a.columns;
    double *a = terms_of(&p->a, p->at_a, is_turned_a, p->d.rows, n_sum);
    double *b = terms_of(&p->b, p->at_b, !is_turned_b, p->d.columns, n_sum);
    if (p->workspace_bytes > 0) {
        memset(p->workspace, 0x5a, p->workspace_bytes);
    }
    for (uint64_t n = 0; n < p->d.columns; n++) {
        for (uint64_t m = 0; m < p->d.rows; m++) {
            uint64_t i = m + n * (uint64_t)p->d.ld;
            double sum = (double)p->alpha * dot(a + m * n_sum, b + n * n_sum, n_sum);
            if (p->beta != 0.0F && p->d.type == CUDA_R_16F) { /* as on an H200 */
                sum = (double)fake_half_to_float(fake_half_from_float((float)sum));
            }
            sum += p->beta != 0.0F ? (double)p->beta * get(p->d.type, p->at_d, i) : 0.0;
            sum += p->how.epilogue == CUBLASLT_EPILOGUE_BIAS ? get(p->d.type, p->how.bias, m) : 0.0;
            put(p->d.type, p->at_d, i, sum);
        }
        double sum_b = 0.0;
        for (uint64_t k = 0; k < n_sum; k++) {
            sum_b += b[n * n_sum + k];
        }
        if (p->how.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
            /* The pointer is that of a bias which is read, or of one that is made. */
            put(p->d.type, (void *)(uintptr_t)p->how.bias, n, sum_b);
        }
    }
    free(a);
    free(b);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how, const void *alpha,
                              const void *at_a, cublasLtMatrixLayout_t a, const void *at_b,
                              cublasLtMatrixLayout_t b, const void *beta, const void *at_c,
                              cublasLtMatrixLayout_t c, void *at_d, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    (void)handle;
    if (!is_algo(algo) || workspace_bytes < WORKSPACE[algo->data[1]] || at_c != at_d || c != d ||
        ((uintptr_t)at_a | (uintptr_t)at_b | (uintptr_t)at_d) % 16 != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (algo->data[1] == NOT_WORKING) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    struct product *p = calloc(1, sizeof(*p));
    *p = (struct product){.how = *(struct description *)how,
                          .a = *(struct matrix *)a,
                          .b = *(struct matrix *)b,
                          .d = *(struct matrix *)d,
                          .alpha = *(const float *)alpha,
                          .beta = *(const float *)beta,
                          .at_a = at_a,
                          .at_b = at_b,
                          .at_d = at_d,
                          .workspace = workspace,
                          .workspace_bytes = WORKSPACE[algo->data[1]]};
    if (p->how.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !p->how.bias) {
        fake_die("cublaslt: an epilogue without its pointer");
    }
    fake_enqueue(stream, "cublaslt", run, p, free);
    return CUBLAS_STATUS_SUCCESS;
}
