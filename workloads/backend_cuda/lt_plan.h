/* SPDX-License-Identifier: Apache-2.0 */
/* What lt.c and lt_choose.c share: a linear layer as cuBLASLt sees it, and one way to perform it. Private to lt*.c. */
#pragma once

#include "backend_cuda/cuda.h"
#include "backend_cuda/lt_api.h"
#include "backend_cuda/plans.h"

#define LT_KEY_MAX 120

/* Everything that decides which algorithms exist. */
struct lt_problem {
    enum kernel_id id;
    enum dtype dtype;
    int64_t n, c, k;
    bool has_bias;
    bool is_added, is_bias_added; /* out[0] +=, out[1] += */
    bool has_tf32;
};

/* An algorithm, and whether it also computes dbias. */
struct lt_way {
    cublasLtMatmulAlgo_t algo;
    int64_t workspace_bytes;
    bool has_bgrad;
};

struct lt_plan {
    struct lt_plan *next; /* owned */
    int n_users;
    char key[LT_KEY_MAX];
    struct lt_problem problem;
    int64_t workspace_max_bytes;
    cublasLtMatmulDesc_t how;       /* owned */
    cublasLtMatrixLayout_t a, b, d; /* owned */
    struct lt_way way;
    struct plan_info info;
};

struct lt {
    struct lt_api api;
    cublasLtHandle_t handle; /* owned */
    char version[40];
    struct lt_plan *plans; /* owned */
};

/* Where a call's matrices lie. */
struct lt_operands {
    const void *a, *b;
    void *d;
    const void *bias; /* read */
    void *dbias;
    void *workspace;
    cudaStream_t stream;
};

/* The description then requests the bias, or dbias, in addition to the product. */
bool lt_set_epilogue(const struct lt_api *api, struct lt_plan *plan, bool has_bgrad,
                     struct err *err);

/* Enqueues the product and, where it does not compute dbias, the sum that does. */
bool lt_run_way(struct cuda *cuda, struct lt_plan *plan, const struct lt_way *way,
                const struct lt_operands *at, struct err *err);

/* Bytes of workspace for that sum; 0 where there is none. */
int64_t lt_sum_bytes(const struct lt_problem *problem);

/* Sets plan->way and plan->info: an earlier run's choice, the fastest, or the library's first. */
MUST_CHECK int lt_choose(struct cuda *cuda, struct lt_plan *plan, struct err *err);
