/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/lt_api.h"

#include <cuda_runtime_api.h>

/* The library of the major version of the toolkit that this program was built with. */
#define CUDA_MAJOR (CUDART_VERSION / 1000)
#if CUDART_VERSION >= 13000
#define SONAME "libcublasLt.so.13"
#elif CUDART_VERSION >= 12000
#define SONAME "libcublasLt.so.12"
#else
#define SONAME "libcublasLt.so.11"
#endif

static const char *const NAMES[] = {LT_API_SYMBOLS(LOAD_NAME)};

static int version_of(load_fn fn)
{
    return (int)((size_t(*)(void))fn)();
}

int lt_api_open(struct lt_api *api, struct err *err)
{
    load_fn table[ARRAY_LEN(NAMES)];
    struct load_want want = {.what = "cuBLASLt",
                             .soname = SONAME,
                             .folder_variable = "REPERF_CUBLAS_DIR",
                             .version_symbol = "cublasLtGetVersion",
                             .version = version_of,
                             .version_min = CUDA_MAJOR * 10000,
                             .version_end = (CUDA_MAJOR + 1) * 10000,
                             .symbols = NAMES,
                             .n_symbols = (int)ARRAY_LEN(NAMES),
                             .table = table};
    struct load load = {0};
    if (load_open(&want, &load, err) < 0) {
        return -1;
    }
    *api = (struct lt_api){.load = load};
    LOAD_FIELDS_FROM(LT_API_SYMBOLS, api, table);
    return 0;
}

void lt_api_close(struct lt_api *api)
{
    load_close(&api->load);
    *api = (struct lt_api){0};
}

void lt_api_error(const struct lt_api *api, cublasStatus_t status, const char *what,
                  struct err *err)
{
    if (err->code == ERR_NONE) {
        int failed = err_set(err, ERR_WORKLOAD, "cublaslt: %s: %s", what,
                             api->cublasLtGetStatusString(status));
        ASSERT(failed < 0);
    }
}
