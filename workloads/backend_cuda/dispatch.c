/* SPDX-License-Identifier: Apache-2.0 */
/* Which function does which call. */
#include "base/base.h"

#include "backend_cuda/dnn.h"
#include "backend_cuda/kernels.h"
#include "backend_cuda/lt.h"
#include "backend_cuda/optim_cuda.h"

/* The function that runs a kernel id; its workspace, and whether it supports a call, where that varies. */
struct row {
    void (*run)(void *self, const struct kernel_args *args);
    int64_t (*workspace)(const struct cuda *cuda, const struct kernel_args *args);
    int (*check)(const struct cuda *cuda, const struct kernel_args *args, struct err *err);
    enum { OWN, CUDNN, CUBLASLT } home;
};

static const struct row ROWS[K_COUNT] = {
    [K_RELU_FWD] = {.run = cuda_relu_fwd},
    [K_RELU_BWD] = {.run = cuda_elem_bwd},
    [K_ADD_FWD] = {.run = cuda_add_fwd},
    [K_ADD_BWD] = {.run = cuda_elem_bwd},
    [K_CONCAT_FWD] = {.run = cuda_concat_fwd},
    [K_CONCAT_BWD] = {.run = cuda_concat_bwd},
    [K_DROPOUT_FWD] = {.run = cuda_dropout},
    [K_DROPOUT_BWD] = {.run = cuda_dropout},
    [K_MAXPOOL_FWD] = {.run = cuda_maxpool_fwd},
    [K_MAXPOOL_BWD] = {.run = cuda_maxpool_bwd},
    [K_AVGPOOL_FWD] = {.run = cuda_avgpool_fwd},
    [K_AVGPOOL_BWD] = {.run = cuda_avgpool_bwd},
    [K_UPSAMPLE_FWD] = {.run = cuda_upsample_fwd},
    [K_UPSAMPLE_BWD] = {.run = cuda_upsample_bwd},
    [K_BN_FWD] = {.run = cuda_bn_fwd, .workspace = cuda_bn_workspace, .check = cuda_bn_check},
    [K_BN_BWD] = {.run = cuda_bn_bwd, .workspace = cuda_bn_workspace, .check = cuda_bn_check},
    [K_BN_ADD_FWD] = {.run = cuda_bn_fwd, .workspace = cuda_bn_workspace, .check = cuda_bn_check},
    [K_BN_ADD_BWD] = {.run = cuda_bn_bwd, .workspace = cuda_bn_workspace, .check = cuda_bn_check},
    [K_BN_FINALIZE] = {.run = cuda_bn_finalize,
                       .workspace = cuda_bn_sums_workspace,
                       .check = cuda_bn_check},
    [K_BN_APPLY] = {.run = cuda_bn_apply},
    [K_BN_BWD_APPLY] = {.run = cuda_bn_bwd_apply,
                        .workspace = cuda_bn_sums_workspace,
                        .check = cuda_bn_check},
    [K_LOSS_FWD] = {.run = cuda_loss_fwd,
                    .workspace = cuda_loss_workspace,
                    .check = cuda_loss_check},
    [K_LOSS_BWD] = {.run = cuda_loss_bwd,
                    .workspace = cuda_loss_workspace,
                    .check = cuda_loss_check},
    [K_UPSAMPLE_LOSS_FWD] = {.run = cuda_upsample_loss_fwd,
                             .workspace = cuda_upsample_loss_workspace,
                             .check = cuda_loss_check},
    [K_UPSAMPLE_LOSS_BWD] = {.run = cuda_upsample_loss_bwd,
                             .workspace = cuda_upsample_loss_workspace,
                             .check = cuda_loss_check},
    [K_EMBED_FWD] = {.run = cuda_embed_fwd, .check = cuda_embed_check},
    [K_EMBED_BWD] = {.run = cuda_embed_bwd,
                     .workspace = cuda_embed_workspace,
                     .check = cuda_embed_check},
    [K_LAYER_NORM_FWD] = {.run = cuda_layer_norm_fwd, .check = cuda_layer_norm_check},
    [K_LAYER_NORM_BWD] = {.run = cuda_layer_norm_bwd,
                          .workspace = cuda_layer_norm_workspace,
                          .check = cuda_layer_norm_check},
    [K_GELU_FWD] = {.run = cuda_gelu_fwd},
    [K_GELU_BWD] = {.run = cuda_gelu_bwd},
    [K_TANH_FWD] = {.run = cuda_tanh_fwd},
    [K_TANH_BWD] = {.run = cuda_tanh_bwd},
    [K_ATTENTION_FWD] = {.run = cuda_attention_fwd, .check = cuda_attention_check},
    [K_ATTENTION_BWD] = {.run = cuda_attention_bwd,
                         .workspace = cuda_attention_workspace,
                         .check = cuda_attention_check},
    [K_GATHER_FWD] = {.run = cuda_gather_fwd},
    [K_GATHER_BWD] = {.run = cuda_gather_bwd},
    [K_ROW_LOSS] = {.run = cuda_row_loss,
                    .workspace = cuda_row_loss_workspace,
                    .check = cuda_loss_check},
    [K_CONV_FWD] = {.run = dnn_run, .home = CUDNN},
    [K_CONV_BWD_DATA] = {.run = dnn_run, .home = CUDNN},
    [K_CONV_BWD_WEIGHT] = {.run = dnn_run, .home = CUDNN},
    [K_CONV_STATS_FWD] = {.run = dnn_run, .home = CUDNN},
    [K_CONV_BWD_DATA_BN] = {.run = dnn_run, .home = CUDNN},
    [K_DROP_ADD_NORM_FWD] = {.run = cuda_layer_norm_fwd, .check = cuda_layer_norm_check},
    [K_DROP_ADD_NORM_BWD] = {.run = cuda_layer_norm_bwd,
                             .workspace = cuda_layer_norm_workspace,
                             .check = cuda_layer_norm_check},
    [K_NORM_CONV_BWD_WEIGHT] = {.run = dnn_run, .home = CUDNN},
    [K_LINEAR_FWD] = {.run = lt_run, .home = CUBLASLT},
    [K_LINEAR_BWD_DATA] = {.run = lt_run, .home = CUBLASLT},
    [K_LINEAR_BWD_WEIGHT] = {.run = lt_run, .home = CUBLASLT},
};

/* Filters of one channel each have a kernel of ours, whatever library is present. */
static const struct row DEPTHWISE[K_COUNT] = {
    [K_CONV_FWD] = {.run = cuda_depthwise_fwd, .check = cuda_depthwise_check},
    [K_CONV_BWD_DATA] = {.run = cuda_depthwise_bwd_data, .check = cuda_depthwise_check},
    [K_CONV_BWD_WEIGHT] = {.run = cuda_depthwise_bwd_weight,
                           .workspace = cuda_depthwise_workspace,
                           .check = cuda_depthwise_check},
};

static const struct row *row_of(const struct kernel_args *args)
{
    const struct conv_geom *g = &args->geom.conv;
    bool is_depthwise =
        DEPTHWISE[args->id].run && g->groups > 1 && g->c == g->groups && g->k == g->groups;
    return is_depthwise ? &DEPTHWISE[args->id] : &ROWS[args->id];
}

bool cuda_supports(void *self, const struct kernel_args *args)
{
    const struct row *row = row_of(args);
    return row->home == CUDNN ? dnn_supports(self, args) : row->run != NULL;
}

void cuda_run(void *self, const struct kernel_args *args)
{
    const struct cuda *cuda = self;
    if (cuda->err.code == ERR_NONE) {
        row_of(args)->run(self, args);
    }
}

int cuda_prepare(void *self, struct kernel_args *args, struct err *err)
{
    struct cuda *cuda = self;
    const struct row *row = row_of(args);
    if (!row->run) {
        return err_set(err, ERR_WORKLOAD, "%s: this build has no kernel for it",
                       kernel_name(args->id));
    }
    if (row->home == CUDNN) {
        return dnn_prepare(cuda, args, err);
    }
    if (row->home == CUBLASLT) {
        return lt_prepare(cuda, args, err);
    }
    if (row->check && row->check(cuda, args, err) < 0) {
        return err_wrap(err, "%s", kernel_name(args->id));
    }
    args->workspace_bytes = row->workspace ? row->workspace(cuda, args) : 0;
    return 0;
}

void cuda_unprepare(void *self, struct kernel_args *args)
{
    if (args->prepared && row_of(args)->home == CUDNN) {
        dnn_unprepare(self, args);
    } else if (args->prepared) {
        lt_unprepare(self, args);
    }
    args->prepared = NULL;
}

void cuda_fill_kernels(struct backend *backend)
{
    backend->prepare = cuda_prepare;
    backend->unprepare = cuda_unprepare;
    backend->compare = cuda_compare;
    cuda_fill_optim(backend);
    for (int id = 0; id < K_COUNT; id++) {
        backend->run[id] = ROWS[id].run || DEPTHWISE[id].run ? cuda_run : NULL;
    }
}
