/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NCCL that are used, found at run time (core/load.h), and its errors as ours. Private to nccl*.c. */
#pragma once

#include "core/load.h"

#include <nccl.h>

#define NCCL_API_SYMBOLS(X)                                                                        \
    X(ncclGetVersion)                                                                              \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclGetUniqueId)                                                                             \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclAllGather)                                                                               \
    X(ncclBroadcast)

struct nccl_api {
    struct load load;
    NCCL_API_SYMBOLS(LOAD_FIELD)
};

MUST_CHECK int nccl_api_open(struct nccl_api *api, struct err *err);
void nccl_api_close(struct nccl_api *api);

/* "nccl: WHAT: the library's own text", into text; comm may be NULL. */
void nccl_api_text(const struct nccl_api *api, ncclResult_t status, ncclComm_t comm,
                   const char *what, char *text, size_t size);
