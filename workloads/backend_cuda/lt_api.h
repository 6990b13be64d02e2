/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuBLASLt that are used, found at run time (core/load.h), and its errors as ours. Private to lt*.c. */
#pragma once

#include "core/load.h"

#include <cublasLt.h>

#define LT_API_SYMBOLS(X)                                                                          \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmulAlgoCheck)                                                                     \
    X(cublasLtMatmul)

struct lt_api {
    struct load load;
    LT_API_SYMBOLS(LOAD_FIELD)
};

MUST_CHECK int lt_api_open(struct lt_api *api, struct err *err);
void lt_api_close(struct lt_api *api);

/* Sets an unset err to "cublaslt: WHAT: the library's own text"; an err that is set stays. */
void lt_api_error(const struct lt_api *api, cublasStatus_t status, const char *what,
                  struct err *err);
