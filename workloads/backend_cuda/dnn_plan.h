/* SPDX-License-Identifier: Apache-2.0 */
/* What dnn.c and dnn_choose.c share. Private to dnn*.c. */
#pragma once

#include "backend_cuda/dnn_engine.h"

/* Source: cuDNN's support matrix: 9.10 is the last with kernels for Volta. */
#define DNN_VOLTA_VERSION_END 91100

/* One way to perform a call, shared by all equal calls. */
struct dnn_plan {
    struct dnn_plan *next; /* owned */
    int n_users;
    char key[DNN_KEY_MAX];
    struct dnn_call call;
    struct dnn_graph graph;
    struct dnn_engine engine;
    bool is_matmul;            /* done by cuBLASLt, as the matrix product that it also is */
    struct kernel_args matmul; /* prepared there where is_matmul */
};

struct dnn {
    struct dnn_api api;
    struct dnn_device device;
    cudnnHandle_t handles[CUDA_STREAMS_MAX]; /* owned */
    int n_handles;
    bool allows_nondeterministic;
    bool allows_compiled;
    char version[48];
    struct dnn_plan *plans; /* owned */
};

/* Where a call's tensors lie. */
struct dnn_pointers {
    const void *const *in;
    void *const *out;
    char *workspace;
};

cudnnStatus_t dnn_execute(const struct dnn_api *api, cudnnHandle_t handle,
                          const struct dnn_graph *graph, cudnnBackendDescriptor_t plan,
                          const struct dnn_pointers *at);

/* The engines that may be taken for the call. */
struct dnn_rules dnn_rules_of(const struct cuda *cuda, const struct dnn_call *call);

/* Blocks of a fused convolution add to its sums by channel in the order in which they end, so that the last bits differ from run to run. cuDNN
   notes of no engine that it does; measured with 9.14 on an H200, of ResNet-50's sizes nearly all do. */
bool dnn_sums_vary(const struct dnn_call *call);

/* Creates the plan of plan->call: an earlier run's choice, the fastest, or the library's first. On failure plan is as good as empty. */
MUST_CHECK int dnn_choose(struct cuda *cuda, struct dnn_plan *plan, struct err *err);
