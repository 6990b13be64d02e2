/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's older calls, for Volta: the graph API has next to no engines for it, and cuDNN 9.10 with CUDA 12.9 is its last. Only the three
   plain convolutions; the fused calls of graph/fuse.h are not supported. NEVER RUN on such a device: only compiled, and run on the
   emulated one with a fake library. Private to dnn*.c. */
#ifndef BACKEND_CUDA_DNN_LEGACY_H
#define BACKEND_CUDA_DNN_LEGACY_H

#include "backend_cuda/dnn_plan.h"

/* Finds the older calls in the library and sets dnn->legacy. */
MUST_CHECK int dnn_legacy_open(struct dnn *dnn, struct err *err);
void dnn_legacy_close(struct dnn *dnn);

/* Sets plan->legacy and plan->engine.info; *ret_found is false where there is no algorithm within the rules. */
MUST_CHECK int dnn_legacy_choose(struct cuda *cuda, struct dnn_plan *plan, bool *ret_found,
                                 struct err *err);
void dnn_legacy_release(struct dnn *dnn, struct dnn_plan *plan);

cudnnStatus_t dnn_legacy_run(const struct dnn *dnn, cudnnHandle_t handle,
                             const struct dnn_plan *plan, const struct dnn_pointers *at);

/* Whether the call is one of the three. */
bool dnn_legacy_supports(const struct dnn_call *call);

#endif
