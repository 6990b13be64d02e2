/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuDNN that are used, found at run time (core/load.h), and its errors as ours. Private to dnn*.c. */
#pragma once

#include "core/load.h"

#include <cudnn_graph.h>

#define DNN_API_SYMBOLS(X)                                                                         \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetLastErrorString)                                                                     \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

struct dnn_api {
    struct load load;
    DNN_API_SYMBOLS(LOAD_FIELD)
};

MUST_CHECK int dnn_api_open(struct dnn_api *api, struct err *err);
void dnn_api_close(struct dnn_api *api);

/* Sets an unset err to "cudnn: WHAT: the library's own text"; an err that is set stays. */
void dnn_api_error(const struct dnn_api *api, cudnnStatus_t status, const char *what,
                   struct err *err);
