/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/tensor.h"

static const struct {
    const char *name;
    int64_t bytes;
} DTYPES[DT_COUNT] = {
    [DT_F32] = {"f32", 4}, [DT_F64] = {"f64", 8}, [DT_I32] = {"i32", 4},
    [DT_I64] = {"i64", 8}, [DT_F16] = {"f16", 2},
};

int64_t dtype_bytes(enum dtype dtype)
{
    return DTYPES[dtype].bytes;
}

const char *dtype_name(enum dtype dtype)
{
    return DTYPES[dtype].name;
}

int64_t shape_count(const struct shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->n_dims; i++) {
        count *= shape->dim[i];
    }
    return count;
}

int shape_count_checked(const struct shape *shape, int64_t *ret_count, struct err *err)
{
    int64_t count = 1;
    bool has_zero = false;
    for (int i = 0; i < shape->n_dims; i++) {
        if (shape->dim[i] < 0) {
            return err_set(err, ERR_PARSE, "dimension %d is %" PRId64 ", expected 0 or more", i,
                           shape->dim[i]);
        }
        has_zero = has_zero || shape->dim[i] == 0;
    }
    for (int i = 0; i < shape->n_dims && !has_zero; i++) {
        if (__builtin_mul_overflow(count, shape->dim[i], &count) || count > SHAPE_COUNT_MAX) {
            return err_set(err, ERR_PARSE, "more than %" PRId64 " elements", SHAPE_COUNT_MAX);
        }
    }
    *ret_count = has_zero ? 0 : count;
    return 0;
}

bool shape_eq(const struct shape *a, const struct shape *b)
{
    if (a->n_dims != b->n_dims) {
        return false;
    }
    for (int i = 0; i < a->n_dims; i++) {
        if (a->dim[i] != b->dim[i]) {
            return false;
        }
    }
    return true;
}

void shape_text(const struct shape *shape, char *text)
{
    int used = snprintf(text, SHAPE_TEXT_MAX, "[");
    for (int i = 0; i < shape->n_dims; i++) {
        used += snprintf(text + used, (size_t)(SHAPE_TEXT_MAX - used), "%s%" PRId64,
                         i > 0 ? ", " : "", shape->dim[i]);
        ASSERT(used < SHAPE_TEXT_MAX - 1); /* 8 dimensions of 20 digits and their commas fit */
    }
    snprintf(text + used, (size_t)(SHAPE_TEXT_MAX - used), "]");
}
