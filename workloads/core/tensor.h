/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and shapes, shared by all rooms of the engine. Values only: nothing here owns memory. */
#pragma once

#include "base/err.h"

enum dtype { DT_F32, DT_F64, DT_I32, DT_I64, DT_F16, DT_COUNT };

#define SHAPE_DIMS_MAX 8
#define SHAPE_COUNT_MAX                                                                            \
    (INT64_C(1) << 40) /* elements of one tensor; 8 TiB of doubles is far past any machine */

/* n_dims == 0 is a scalar: one element. */
struct shape {
    int n_dims;
    int64_t dim[SHAPE_DIMS_MAX];
};

#define SHAPE(...)                                                                                 \
    ((struct shape){.n_dims = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                    .dim = {__VA_ARGS__}})
#define SHAPE_SCALAR ((struct shape){0})

/* The role of a tensor in the network: a backend may store each in its own layout. */
enum role {
    ROLE_PLAIN,            /* as its shape says */
    ROLE_IMAGE,            /* (N, C, H, W) */
    ROLE_FILTER,           /* (K, C/G, R, S) */
    ROLE_FILTER_DEPTHWISE, /* (K, 1, R, S): one filter a channel, K = G = C > 1 */
    ROLE_CHANNEL, /* (C): a number for each channel of an image, or each column of ROLE_ROWS */
    ROLE_ROWS,    /* (R, C): rows that a product makes of a ROLE_TABLE */
    ROLE_TABLE,   /* (K, C): a matrix with a row for each column of ROLE_ROWS */
};

struct tensor_desc {
    struct shape shape;
    enum dtype dtype;
    enum role role;
};

int64_t dtype_bytes(enum dtype dtype);
const char *dtype_name(enum dtype dtype); /* "f32" */

/* Elements of a shape that we made, with every dimension >= 1. */
int64_t shape_count(const struct shape *shape);

/* The same for a shape from outside: a dimension below 0 or more than SHAPE_COUNT_MAX elements is an error. */
MUST_CHECK int shape_count_checked(const struct shape *shape, int64_t *ret_count, struct err *err);

bool shape_eq(const struct shape *a, const struct shape *b);

/* "[4, 3, 64, 64]" into text, which has SHAPE_TEXT_MAX bytes. */
#define SHAPE_TEXT_MAX 192
void shape_text(const struct shape *shape, char *text);
