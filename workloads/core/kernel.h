/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between the graph and a backend: the kernels there are, what each reads and writes, and the table of
   functions a backend is. The graph never looks inside a buffer; the backend never learns what model it runs.

   Letters: N batch, C channels, H W height and width, K output channels, R S filter height and width, G groups.
   Logical order is that of PyTorch (N, C, H, W), (K, C/G, R, S); a backend may store activations otherwise (NHWC,
   padded channels) because it alone sizes them (tensor_bytes) and moves them from and to the host (upload, download). */
#ifndef CORE_KERNEL_H
#define CORE_KERNEL_H

#include "core/tensor.h"

#define KERNEL_IN_MAX  6
#define KERNEL_OUT_MAX 5

#define CONV_WINDOW_MAX 256 /* filter height times width */
#define CONCAT_IN_MAX   5

/* in -> out, in this order; [x] may be absent (NULL). An output marked += is added to when args.accumulate has its bit,
   every other output is overwritten. running_* are read and written. Elements are args.dtype unless said otherwise;
   mean and rstd are double. Outputs whose input is named after ~ may lie in the memory of that input. */
enum kernel_id {
    K_CONV_FWD,        /* x (N,C,H,W), w (K,C/G,R,S), [bias (K)] -> y (N,K,P,Q) */
    K_CONV_BWD_DATA,   /* dy, w -> dx += */
    K_CONV_BWD_WEIGHT, /* dy, x -> dw +=, [dbias +=] */
    K_BN_FWD, /* x, gamma (C), beta (C) -> y ~x, mean (C), rstd (C), running_mean (C), running_var (C) */
    K_BN_BWD,          /* dy, x, gamma, mean, rstd, [y if relu] -> dx ~dy +=, dgamma +=, dbeta += */
    K_RELU_FWD,        /* x -> y ~x */
    K_RELU_BWD,        /* dy, y -> dx ~dy += */
    K_ADD_FWD,         /* a, b -> y ~a ~b */
    K_ADD_BWD,         /* dy, [y if relu] -> dx ~dy +=   (one call for each of a and b) */
    K_MAXPOOL_FWD,     /* x -> y, at (int32: offset in the H*W plane of the largest element) */
    K_MAXPOOL_BWD,     /* dy, at -> dx += */
    K_AVGPOOL_FWD,     /* x (N,C,H,W) -> y (N,C,P,Q): mean of what a window holds of the image */
    K_AVGPOOL_BWD,     /* dy -> dx +=   (stride = window, pad = 0: each pixel is in one window) */
    K_DROPOUT_FWD,     /* x, step () int64 -> y ~x: 0 or x / (1 - rate) */
    K_DROPOUT_BWD,     /* dy, step -> dx ~dy += */
    K_UPSAMPLE_FWD,    /* x (N,C,H,W) -> y (N,C,P,Q): bilinear */
    K_UPSAMPLE_BWD,    /* dy -> dx += */
    K_CONCAT_FWD,      /* 1 to CONCAT_IN_MAX of x (N,C_i,H,W) -> y (N,C,H,W), C = sum of C_i */
    K_CONCAT_BWD,      /* dy -> dx +=   (one call for each x: geom.concat.part) */
    K_LINEAR_FWD,      /* x (N,C), w (K,C), [bias (K)] -> y (N,K) */
    K_LINEAR_BWD_DATA, /* dy, w -> dx += */
    K_LINEAR_BWD_WEIGHT, /* dy, x -> dw +=, [dbias +=] */
    /* The mean over no label at all (each one ignored) is 0, and so is its gradient. */
    K_LOSS_FWD, /* logits (N,C,H,W), labels (N,H,W) int64 -> loss () +=, prob (N,C,H,W) ~logits */
    K_LOSS_BWD, /* prob, labels -> dlogits ~prob += */
    K_COUNT
};

const char *kernel_name(enum kernel_id id);

/* Geometry is fully resolved: a kernel needs no shape beside it. */
struct conv_geom {
    int64_t n, c, h, w;
    int64_t k, r, s, p, q; /* p, q: output height and width */
    int64_t stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups;
};
struct bn_geom {
    int64_t n, c, plane; /* plane = H*W */
    double eps, momentum;
    bool has_relu;
};
struct elem_geom {
    int64_t count;
    bool has_relu;
};
struct pool_geom {
    int64_t n, c, h, w, p, q, window, stride, pad;
};
/* Source of the two rules: PyTorch, interpolate(mode="bilinear"). Output pixel p lies at p * (H-1)/(P-1) of the input with
   aligned corners, else at (p + 1/2) * H/P - 1/2, and no lower than 0; what would lie past the last pixel is the last. */
struct resize_geom {
    int64_t n, c, h, w, p, q;
    bool is_aligned;
};
/* Element i of step t is dropped if a hash of (stream, t, i / run) says so: the same on every device, nothing to remember. */
struct dropout_geom {
    int64_t count;
    int64_t run; /* elements that stand or fall together: 1, or the plane of a channel */
    double rate; /* above 0, below 1 */
    uint64_t stream;
};
struct concat_geom {
    int64_t n, c, plane;          /* of the result */
    int64_t parts[CONCAT_IN_MAX]; /* channels of each input, 0 past the last */
    int64_t part;                 /* backward: whose gradient */
};
struct linear_geom {
    int64_t n, c, k;
};
/* Softmax cross-entropy averaged over the labels that are not ignore_label. */
struct loss_geom {
    int64_t n, c, plane;
    double smoothing; /* label smoothing, 0 to below 1 */
    int64_t ignore_label;
    double weight; /* of this loss in the sum of all */
};
#define LOSS_IGNORE_NONE INT64_MIN

/* Source of the mixing steps: Steele et al., "Fast splittable pseudorandom number generators" (2014), as splitmix64. */
bool dropout_keeps(const struct dropout_geom *geom, int64_t step, int64_t run_idx);

union geom {
    struct conv_geom conv;
    struct bn_geom bn;
    struct elem_geom elem;
    struct pool_geom pool;
    struct resize_geom resize;
    struct concat_geom concat;
    struct dropout_geom dropout;
    struct linear_geom linear;
    struct loss_geom loss;
};

struct kernel_args {
    enum kernel_id id;
    enum dtype dtype; /* DT_F32 or DT_F64 */
    union geom geom;
    const void *in[KERNEL_IN_MAX];
    void *out[KERNEL_OUT_MAX];
    unsigned accumulate; /* bit i: out[i] += */
    bool has_bias;       /* convolution and linear: in[2], or out[1], is there */
    void *workspace;     /* workspace_bytes of it, shared by all calls, contents undefined */
    int64_t workspace_bytes;
    void *prepared; /* what prepare() returned for this call, owned by the backend, or NULL */
};

struct sgd_args {
    enum dtype dtype;
    int64_t count;
    void *weight;     /* (count) = */
    void *velocity;   /* (count) = */
    const void *grad; /* (count) */
    double lr, momentum, weight_decay;
};

/* One device's kernels. Functions that cannot fail on a CPU fail stop elsewhere (STYLE.md section 2). */
struct backend {
    const char *name; /* "cpu-plain" */
    void *self;       /* owned by who made the backend */
    int n_threads;
    int64_t (*tensor_bytes)(void *self, const struct shape *shape, enum dtype dtype);
    void *(*alloc)(void *self, int64_t bytes); /* zeroed, 64-byte aligned */
    void (*free)(void *self, void *ptr);
    void (*upload)(void *self, const struct shape *shape, enum dtype dtype, const void *host,
                   void *device);
    void (*download)(void *self, const struct shape *shape, enum dtype dtype, const void *device,
                     void *host);
    /* Before any memory is planned: pointers in args are NULL. Sets args->prepared and args->workspace_bytes. */
    int (*prepare)(void *self, struct kernel_args *args, struct err *err);
    void (*unprepare)(void *self, struct kernel_args *args);
    void (*run[K_COUNT])(void *self, const struct kernel_args *args); /* NULL: not implemented */
    /* velocity = momentum * velocity + (grad + weight_decay * weight); weight -= lr * velocity */
    void (*sgd)(void *self, const struct sgd_args *args);
};

#endif
