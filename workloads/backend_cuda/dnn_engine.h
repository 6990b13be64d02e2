/* SPDX-License-Identifier: Apache-2.0 */
/* The engines that cuDNN has for a graph: from its heuristics, or rebuilt from the name of an earlier choice. Private to
   dnn*.c. */
#pragma once

#include "backend_cuda/dnn_graph.h"
#include "backend_cuda/plans.h"

#define DNN_KNOBS_MAX 24

/* What plans are made for: a real device, or a described one. */
struct dnn_device {
    const struct dnn_api *api;         /* borrowed */
    cudnnHandle_t handle;              /* borrowed; NULL: */
    cudnnBackendDescriptor_t property; /* owned; else NULL */
};

MUST_CHECK int dnn_device_describe(struct dnn_device *device, const char *json, struct err *err);

/* Which engines may be taken. */
struct dnn_rules {
    bool
        allows_tensor_cores; /* also with inputs rounded first: all there is with DT_F16, TF32 with DT_F32 */
    bool allows_compiled; /* compiled on request, 0.2 to 1.5 s each */
    int64_t workspace_max_bytes;
};

struct dnn_engine {
    cudnnBackendDescriptor_t plan, config, engine; /* owned */
    cudnnBackendDescriptor_t knobs[DNN_KNOBS_MAX]; /* owned */
    int n_knobs;
    struct plan_info info;
};

/* Why engines were not taken: how many for each reason. */
struct dnn_refused {
    int n_any_order;               /* their sums may differ from run to run */
    int n_rounding;                /* they round inputs or sums */
    int n_compiled;                /* they are compiled on request */
    int n_large;                   /* they need more workspace, */
    int64_t least_workspace_bytes; /* this much at least */
    int n_failed;                  /* they could not be built */
};
#define DNN_REFUSED_TEXT_MAX 320
void dnn_refused_text(const struct dnn_refused *refused, const struct dnn_rules *rules,
                      char ret_text[DNN_REFUSED_TEXT_MAX]);

/* The heuristics' engines, best first, then the fallbacks; up to n_max whose plan could be built within the rules, without duplicates.
   Returns how many. */
int dnn_engines_find(const struct dnn_device *device, const struct dnn_graph *graph,
                     const struct dnn_rules *rules, int n_max, struct dnn_engine *ret_engines,
                     struct dnn_refused *ret_refused);

/* By info.name of an earlier find. */
MUST_CHECK int dnn_engine_named(const struct dnn_device *device, const struct dnn_graph *graph,
                                const struct dnn_rules *rules, const char *name,
                                struct dnn_engine *ret_engine, struct err *err);
void dnn_engine_release(const struct dnn_api *api, struct dnn_engine *engine);
