/* SPDX-License-Identifier: Apache-2.0 */
/* What dnn.c and dnn_choose.c share. Private to dnn*.c. */
#ifndef BACKEND_CUDA_DNN_PLAN_H
#define BACKEND_CUDA_DNN_PLAN_H

#include "backend_cuda/dnn_engine.h"

struct dnn_legacy; /* dnn_legacy.c: the older calls */
struct dnn_legacy_plan;

/* One way to perform a call, shared by all equal calls. */
struct dnn_plan {
    struct dnn_plan *next; /* owned */
    int n_users;
    char key[DNN_KEY_MAX];
    struct dnn_call call;
    struct dnn_graph graph;
    struct dnn_engine engine;
    struct dnn_legacy_plan *legacy; /* owned; NULL: the graph's engine does it */
    bool is_matmul;                 /* done by cuBLASLt, as the matrix product that it also is */
    struct kernel_args matmul;      /* prepared there where is_matmul */
};

struct dnn {
    struct dnn_api api;
    struct dnn_device device;
    cudnnHandle_t handles[CUDA_STREAMS_MAX]; /* owned */
    int n_handles;
    bool allows_nondeterministic;
    bool allows_compiled;
    struct dnn_legacy *legacy; /* owned; NULL: the graph API is used */
    char *cache_folder;        /* owned; NULL: none */
    char version[48];
    char device_name[256];
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
struct dnn_rules dnn_rules_of(const struct dnn *dnn, const struct dnn_call *call);

/* What a choice depends on, for core/plan_cache.h; and the storing of a timed one. */
void dnn_cache_key(const struct dnn *dnn, const struct dnn_plan *plan, char *key);
void dnn_keep_choice(const struct dnn *dnn, const struct dnn_plan *plan);

/* Creates the plan of plan->call: an earlier run's choice, the fastest, or the library's first. On failure plan is as good as empty. */
MUST_CHECK int dnn_choose(struct cuda *cuda, struct dnn_plan *plan, struct err *err);

#endif
