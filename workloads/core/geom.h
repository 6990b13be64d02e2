/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of a call, fully resolved, so that a kernel needs no shapes. Letters: core/kernel.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CONV_WINDOW_MAX 256 /* filter height times width */
#define CONCAT_IN_MAX   5

struct conv_geom {
    int64_t n, c, h, w;
    int64_t k, r, s, p, q; /* p, q: output height and width */
    int64_t stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups;
};
struct bn_geom {
    int64_t n, c, plane; /* plane = H*W */
    double eps, momentum;
    bool has_relu;
    bool is_running_biased; /* the running variance averages variances divided by n, not by n - 1 */
    int n_ranks; /* above 1: one batch together with all other ranks, whose N is the same */
};
/* c and plane are an image's C and H*W; plane is 0 if it is no image and is stored as its shape says. */
struct elem_geom {
    int64_t count;
    int64_t c, plane;
    bool has_relu;
};
struct pool_geom {
    int64_t n, c, h, w, p, q, window, stride, pad;
    bool is_flat; /* average over the whole image: y is (N, C) and no image */
};
/* Source of the two rules: PyTorch, interpolate(mode="bilinear"). Output pixel p lies at p * (H-1)/(P-1) of the input with
   aligned corners, else at (p + 1/2) * H/P - 1/2, and no lower than 0; what would lie past the last pixel is the last. */
struct resize_geom {
    int64_t n, c, h, w, p, q;
    bool is_aligned;
};
/* Element i of step t is dropped if a hash of (stream, t, (first + i) / run) says so: the same on every device and for any number
   of ranks, and nothing has to be stored. */
struct dropout_geom {
    int64_t count;
    int64_t c, plane; /* as in elem_geom */
    int64_t run;      /* elements that are dropped together: 1, or the plane of a channel */
    int64_t first;    /* number of the first element in the batch of all ranks */
    double rate;      /* above 0, below 1 */
    uint64_t stream;
};
struct concat_geom {
    int64_t n, c, plane;          /* of the result */
    int64_t parts[CONCAT_IN_MAX]; /* channels of each input, 0 past the last */
    int64_t part;                 /* backward: whose gradient */
};
struct linear_geom {
    int64_t n, c, k;
    int n_parts;     /* parameters that the matrix is made of, 1 or 3 */
    bool is_rounded; /* n_parts is 1; y is ROLE_ROWS, w ROLE_TABLE, the bias ROLE_CHANNEL */
};
/* Softmax cross-entropy averaged over the labels that are not ignore_label, over all ranks. */
struct loss_geom {
    int64_t n, c, plane;
    double smoothing; /* label smoothing, 0 to below 1 */
    int64_t ignore_label;
    double weight;   /* of this loss in the sum of all losses */
    int n_ranks;     /* above 1: loss and mean are those of all ranks' batches */
    bool is_image;   /* logits are (N,C,H,W), not (N,C) */
    bool is_rounded; /* K_ROW_LOSS: logits are ROLE_ROWS */
};
struct upsample_loss_geom {
    struct resize_geom resize; /* of the logits; p and q are those of the labels */
    struct loss_geom loss;     /* plane is p * q */
};
#define LOSS_IGNORE_NONE INT64_MIN

/* What one step's draws have in common: run idx is kept where its hash is not below the threshold. */
struct dropout_draw {
    uint64_t base, threshold;
};
struct dropout_draw dropout_draw_of(const struct dropout_geom *geom, int64_t step);

/* Source of the mixing steps: Steele et al., "Fast splittable pseudorandom number generators" (2014), as splitmix64. */
static inline uint64_t dropout_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static inline bool dropout_keeps(const struct dropout_draw *draw, int64_t run_idx)
{
    return dropout_mix(draw->base ^ (uint64_t)run_idx) >> 11 >= draw->threshold;
}

struct embed_geom {
    int64_t n, s, d;
    int64_t vocabulary, positions, segments; /* rows of the three tables */
};
struct layer_norm_geom {
    int64_t rows, c;
    double eps;
};
/* Dropout of single elements, of rows without padding. */
struct drop_add_norm_geom {
    struct layer_norm_geom norm;
    struct dropout_geom dropout;
};
/* Of qkv's row, columns [0, heads * d) are the queries, then come the keys, then the values; head h has d of each from h * d on.
   Scores are divided by sqrt(d). */
struct attention_geom {
    int64_t n, s, heads, d;
    /* rate 0: none; the element is ((n * heads + head) * s + query) * s + key */
    struct dropout_geom dropout;
};
struct gather_geom {
    int64_t n, s, p, c;
};

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
    struct upsample_loss_geom upsample_loss;
    struct embed_geom embed;
    struct layer_norm_geom layer_norm;
    struct drop_add_norm_geom drop_add_norm;
    struct attention_geom attention;
    struct gather_geom gather;
};
