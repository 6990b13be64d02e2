/* SPDX-License-Identifier: Apache-2.0 */
/* A call as cuDNN's graph API wants it: tensors with numbers, operations between them, and where each tensor's memory comes from
   when it runs. Private to dnn*.c. */
#pragma once

#include "backend_cuda/cuda.h"
#include "backend_cuda/dnn_api.h"

#define DNN_DESCS_MAX    64
#define DNN_OPS_MAX      12
#define DNN_BINDINGS_MAX 16
#define DNN_KEY_MAX      224

/* Everything that decides which plans exist. Channels are those on the device. */
struct dnn_call {
    enum kernel_id id;
    enum dtype dtype;
    struct conv_geom geom;
    bool has_bias; /* forward: y has it added */
    bool has_norm; /* x is normalised first */
    bool has_da, has_a;
    bool is_added; /* out[0] += */
    bool
        is_aside; /* data and filter gradients: computed in the workspace, not in out[0]; not in the key */
    bool has_tf32;
};

struct dnn_call dnn_call_of(const struct cuda *cuda, const struct kernel_args *args);

/* "conv_fwd f16 n256 c64 h56 w56 k256 r1 s1 p56 q56 stride1x1 pad0x0 dil1x1 g1 bias": equal calls, equal texts. */
void dnn_call_key(const struct dnn_call *call, char key[DNN_KEY_MAX]);

enum dnn_place { DNN_IN, DNN_OUT, DNN_SCRATCH };

struct dnn_binding {
    int64_t uid;
    enum dnn_place place;
    int idx;              /* of in[] or out[] */
    int64_t offset_bytes; /* DNN_SCRATCH: in the workspace */
    int64_t size_bytes;
};

struct dnn_graph {
    const struct dnn_api *api;                     /* borrowed */
    cudnnBackendDescriptor_t descs[DNN_DESCS_MAX]; /* owned, in the order of making */
    int n_descs;
    cudnnBackendDescriptor_t ops[DNN_OPS_MAX]; /* borrowed from descs */
    int n_ops;
    cudnnBackendDescriptor_t graph; /* borrowed from descs */
    struct dnn_binding bindings[DNN_BINDINGS_MAX];
    int n_bindings;
    int64_t scratch_bytes; /* of the workspace, before what the plan needs */
    struct err err;
};

/* handle may be NULL: the graph is for a described device. */
MUST_CHECK int dnn_graph_make(struct dnn_graph *graph, const struct dnn_api *api,
                              cudnnHandle_t handle, const struct dnn_call *call, struct err *err);
void dnn_graph_release(struct dnn_graph *graph);
