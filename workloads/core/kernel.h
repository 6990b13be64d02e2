/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between the graph and a backend: the kernels, what each reads and writes, and the table of functions
   that a backend is. The graph never reads a buffer; the backend does not know the model.

   Letters: N batch, C channels, H W height and width, K output channels, R S filter height and width, G groups. Logical
   order is that of PyTorch (N, C, H, W), (K, C/G, R, S); a backend may store activations otherwise (NHWC, padded
   channels) because it alone sizes them (tensor_bytes) and moves them from and to the host (upload, download). */
#pragma once

#include "core/async.h"
#include "core/comm.h"
#include "core/geom.h"
#include "core/operands.h"
#include "core/optim.h"
#include "core/tensor.h"

#define KERNEL_IN_MAX  10
#define KERNEL_OUT_MAX 6

/* in -> out, in this order; [x] may be absent (NULL). An output marked += is added to when args.accumulate has its bit,
   every other output is overwritten. running_* are read and written. Outputs whose input is named after ~ may lie in the
   memory of that input.

   Elements are args.dtype unless said otherwise. mean and rstd are double where the graph says so (struct graph_types),
   else float. With DT_F16: gamma, beta, running_*, sums and their gradients are float, so is the loss; all sums are
   made in float or better, and every gradient carries the factor *args.loss_scale. */
enum kernel_id {
    K_CONV_FWD,        /* x (N,C,H,W), w (K,C/G,R,S), [bias (K)] -> y (N,K,P,Q) */
    K_CONV_BWD_DATA,   /* dy, w -> dx += */
    K_CONV_BWD_WEIGHT, /* dy, x -> dw +=, [dbias +=] */
    K_BN_FWD, /* x, gamma (C), beta (C) -> y ~x, mean (C), rstd (C), running_mean (C), running_var (C) */
    K_BN_BWD, /* dy, x, gamma, mean, rstd, [y if relu; where it is absent: beta, and the mask is recomputed from x]
                 -> dx ~dy +=, dgamma +=, dbeta +=   (y is in[5], beta in[6]) */
    K_RELU_FWD,     /* x -> y ~x */
    K_RELU_BWD,     /* dy, y -> dx ~dy += */
    K_ADD_FWD,      /* a, b -> y ~a ~b */
    K_ADD_BWD,      /* dy, [y if relu] -> dx ~dy +=   (one call for each of a and b) */
    K_MAXPOOL_FWD,  /* x -> y, at (int32: offset in the H*W plane of the largest element) */
    K_MAXPOOL_BWD,  /* dy, at -> dx += */
    K_AVGPOOL_FWD,  /* x (N,C,H,W) -> y (N,C,P,Q): mean of what a window holds of the image */
    K_AVGPOOL_BWD,  /* dy -> dx +=   (stride = window, pad = 0: each pixel is in one window) */
    K_DROPOUT_FWD,  /* x, step () int64 -> y ~x: 0 or x / (1 - rate) */
    K_DROPOUT_BWD,  /* dy, step -> dx ~dy += */
    K_UPSAMPLE_FWD, /* x (N,C,H,W) -> y (N,C,P,Q): bilinear */
    K_UPSAMPLE_BWD, /* dy -> dx += */
    K_CONCAT_FWD,   /* 1 to CONCAT_IN_MAX of x (N,C_i,H,W) -> y (N,C,H,W), C = sum of C_i */
    K_CONCAT_BWD,   /* dy -> dx +=   (one call for each x: geom.concat.part) */
    /* Where geom.linear.n_parts is above 1 the matrix is several parameters (K/n_parts,C) one behind the other without a gap, and so
       are bias, dw and dbias: the call names the others after the first ones, for those who count uses. With geom.linear.is_rounded a
       backend may give y, w and the bias more than K columns or rows, which are 0 in what is read and in what is written. */
    K_LINEAR_FWD,        /* x (N,C), w (K,C), [bias (K)] -> y (N,K) */
    K_LINEAR_BWD_DATA,   /* dy, w -> dx += */
    K_LINEAR_BWD_WEIGHT, /* dy, x -> dw +=, [dbias +=] */
    /* The mean over no labels (all ignored) is 0, and so is its gradient. */
    K_LOSS_FWD, /* logits (N,C,H,W), labels (N,H,W) int64 -> loss () +=, prob (N,C,H,W) ~logits */
    K_LOSS_BWD, /* prob, labels -> dlogits ~prob += */
    /* Sequences: T = N*S tokens, D wide; ids and places are int64. */
    K_EMBED_FWD, /* ids (N,S), segments (N,S), word (V,D) ROLE_TABLE, position (,D), segment (,D) -> y (T,D): the sum of a row of each */
    K_EMBED_BWD, /* dy, ids, segments -> dword +=, dposition +=, dsegment += */
    K_LAYER_NORM_FWD, /* x (T,C), gamma (C), beta (C) -> y ~x, mean (T), rstd (T) */
    K_LAYER_NORM_BWD, /* dy, x, gamma, mean, rstd -> dx ~dy +=, dgamma +=, dbeta += */
    K_GELU_FWD, /* x -> y ~x: x times the normal distribution's share below x (erf, no tanh) */
    K_GELU_BWD, /* dy, x -> dx ~dy += */
    K_TANH_FWD, /* x -> y ~x */
    K_TANH_BWD, /* dy, y -> dx ~dy += */
    /* Softmax over the keys whose mask is not 0; none at all: context 0. Dropout is of the probabilities. */
    K_ATTENTION_FWD, /* qkv (T,3*D), mask (N,S), [step] -> context (T,D), lse (N,heads,S): log of the sum of exp of the scores */
    K_ATTENTION_BWD, /* dcontext, qkv, mask, context, lse, [step] -> dqkv += */
    K_GATHER_FWD,    /* x (N*S,C), [at (N,P), else 0] -> y (N*P,C): row at[n,p] of the rows of n */
    K_GATHER_BWD,    /* dy, [at] -> dx += */
    K_ROW_LOSS, /* logits (R,C), labels (R) -> loss () +=, dlogits ~logits +=: K_LOSS and its gradient in one call. What a backend adds to a
                   row is not read and is 0 in dlogits */
    /* What graph/fuse.h makes of the calls above. sum, squares (of x itself, not of its distance from the mean), sum_dz, sum_hat
       are (C) or (K) in the type of mean, scale and shift in args.dtype: cuDNN's fused convolutions have them so and no other way.
       They are overwritten, and those of this rank alone. "Normalised x" is x * scale + shift, or 0 where that is below; what a
       window sees outside the image is 0, too. Which add it is: bn.has_relu. */
    K_BN_ADD_FWD, /* x, gamma, beta, a -> y ~x ~a (bn(x) + a, then ReLU if bn.has_relu), mean, rstd, running_mean, running_var */
    K_BN_ADD_BWD, /* dy, x, gamma, mean, rstd, [y if relu] -> dx ~dy +=, dgamma +=, dbeta +=, [da +=] */
    K_CONV_STATS_FWD, /* x, w, [scale, shift: x is then normalised first] -> y, sum, squares (of y, over N, P, Q) */
    K_BN_FINALIZE, /* sum, squares, gamma, beta -> mean, rstd, [scale = gamma * rstd, shift = beta - mean * scale], running_mean,
                      running_var   (sums over bn.n_ranks ranks) */
    K_BN_APPLY, /* x, gamma, beta, mean, rstd, [a, [the same four for a]] -> y ~x ~a: gamma * hat + beta + a, a normalised by its four if
                   they are there, then ReLU if bn.has_relu */
    K_CONV_BWD_DATA_BN, /* dy, w, x, gamma, beta, mean, rstd, [da], [a] -> dz, sum_dz, sum_hat   (geom.conv; x, da, a, dz are (N,C,H,W))
                           dz = (data gradient + da) where gamma * hat + beta + a > 0, else 0; sum_dz its sum, sum_hat that of dz * hat,
                           hat = (x - mean) * rstd */
    K_BN_BWD_APPLY, /* dz, x, gamma, mean, rstd, sum_dz, sum_hat -> dx ~dz: gamma * rstd * (dz - (sum_dz + hat * sum_hat) / count), dgamma +=
                       sum_hat, dbeta += sum_dz   (dx with the sums and the count over bn.n_ranks ranks) */
    K_DROP_ADD_NORM_FWD, /* x (T,C), gamma, beta, a, step -> y, mean, rstd, sum ~x ~a: dropout of x, plus a, and its layer norm y */
    K_DROP_ADD_NORM_BWD, /* dy, sum, gamma, mean, rstd, step -> dx ~dy, dgamma +=, dbeta +=, [da +=] */
    K_NORM_CONV_BWD_WEIGHT, /* dy, x (normalised first), scale, shift -> dw += */
    /* geom.upsample_loss. The upsampled logits are never stored. lse is the logarithm of the sum of their exponentials at each
       pixel, n_labels how many labels count (those of all ranks); both have the type of mean. */
    K_UPSAMPLE_LOSS_FWD, /* x (N,C,H,W), labels (N,P,Q) int64 -> loss () +=, lse (N,P,Q), n_labels () */
    K_UPSAMPLE_LOSS_BWD, /* x, labels, lse, n_labels -> dx += */
    K_COUNT
};

const char *kernel_name(enum kernel_id id);

struct kernel_args {
    enum kernel_id id;
    enum dtype dtype; /* DT_F32 or DT_F64 */
    union geom geom;
    const void *in[KERNEL_IN_MAX];
    void *out[KERNEL_OUT_MAX];
    unsigned accumulate; /* bit i: out[i] += */
    bool has_bias;       /* convolution and linear: in[2], or out[1], is there */
    unsigned has_in;     /* bit i: in[i] is there; known in prepare(), where no address is */
    void *workspace;     /* workspace_bytes of it, shared by all calls, contents undefined */
    int64_t workspace_bytes;
    struct comm *comm;       /* borrowed: for geometry with n_ranks above 1, else NULL */
    const float *loss_scale; /* on the device; NULL: 1 */
    int stream;              /* below the backend's n_streams */
    void *prepared; /* what prepare() returned for this call, owned by the backend, or NULL */
};

struct forms; /* core/forms.h */
struct form_times;
enum form_choice {
    FORM_UNTIMED,     /* it is supported, and nothing is timed: fused */
    FORM_FASTER,      /* fused */
    FORM_SLOWER,      /* plain */
    FORM_UNSUPPORTED, /* plain: the library has no plan for the fused one */
    FORM_CHOICE_COUNT
};

/* One device's kernels. Functions that cannot fail on a CPU fail stop elsewhere (STYLE.md section 2). */
struct backend {
    const char *name; /* "cpu-plain" */
    void *self;       /* owned by the backend's creator */
    int n_threads;
    int64_t (*tensor_bytes)(void *self, const struct tensor_desc *desc);
    void *(*alloc)(void *self, int64_t bytes); /* zeroed, 64-byte aligned */
    void (*free)(void *self, void *ptr);
    /* The host's side is packed, in the order of the shape; for DT_F16 its elements are float. */
    void (*upload)(void *self, const struct tensor_desc *desc, const void *host, void *device);
    void (*download)(void *self, const struct tensor_desc *desc, const void *device, void *host);
    /* Before any memory is planned: pointers in args are NULL. Sets args->prepared and args->workspace_bytes. */
    int (*prepare)(void *self, struct kernel_args *args, struct err *err);
    void (*unprepare)(void *self, struct kernel_args *args);
    /* core/forms.h. Before any memory is planned: takes memory while it works. NULL: what is supported is fused. */
    int (*compare)(void *self, const struct forms *forms, enum form_choice *ret_choice,
                   struct form_times *ret_times, struct err *err);
    void (*run[K_COUNT])(void *self, const struct kernel_args *args); /* NULL: not implemented */
    /* The optimiser, core/optim.h. Before any memory is planned: pointers in args are NULL. Sets args->prepared and
       args->workspace_bytes. */
    int (*prepare_update)(void *self, struct opt_args *args, struct err *err);
    void (*unprepare_update)(void *self, struct opt_args *args);
    /* state->lr on the device, for the update that is enqueued or replayed next; never captured itself. */
    void (*set_hyper)(void *self, const struct opt_args *args, const struct opt_hyper *hyper);
    /* Where n_micro > 1: the gradients of a micro-batch into args->sum: written (=) if it is the first of an update,
       else added (+=). */
    void (*add_gradients)(void *self, const struct opt_args *args, bool is_first);
    void (*update)(void *self, const struct opt_args *args);
    struct backend_async async;
};
