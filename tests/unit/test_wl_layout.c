/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of tensors on a device, element by element against independent formulas, whole and in pieces. */
#include "wl_fixture.h"

#include "backend_cuda/layout.h"
#include "core/half.h"

#define POISON 0x5a

/* Index of element (a, b, c, d) of the shape on the device, by the definition in layout.h. */
static int64_t device_index(const struct tensor_desc *desc, const int64_t at[4], int64_t pad)
{
    const int64_t *dim = desc->shape.dim;
    int64_t inner = (dim[1] + pad - 1) / pad * pad;
    int64_t outer = (dim[0] + pad - 1) / pad * pad;
    switch (desc->role) {
    case ROLE_IMAGE: /* n, h, w, c */
    case ROLE_FILTER:
        return ((at[0] * dim[2] + at[2]) * dim[3] + at[3]) * inner + at[1];
    case ROLE_FILTER_DEPTHWISE:
        return (at[2] * dim[3] + at[3]) * outer + at[0];
    case ROLE_CHANNEL:
    case ROLE_PLAIN:
    case ROLE_ROWS: /* of two dimensions: below */
    case ROLE_TABLE:
        break;
    }
    return ((at[0] * dim[1] + at[1]) * dim[2] + at[2]) * dim[3] + at[3];
}

static float value_of(int64_t i)
{
    return (float)(i + 1) * 0.25F; /* exact as a half up to 2048 * 0.25 */
}

/* Packs in pieces of `step` elements, checks each element, unpacks in pieces of another size. */
static void check_4d(const struct tensor_desc *desc, int64_t pad, int64_t step)
{
    const struct layout layout = layout_of(desc, pad);
    int64_t n = shape_count(&desc->shape);
    int64_t count = layout_count(&layout);
    int64_t size = dtype_bytes(desc->dtype);
    assert_int_equal(layout_bytes(&layout), count * size);
    CLEANUP(free) float *host = xcalloc((size_t)n, sizeof(*host));
    CLEANUP(free) float *back = xcalloc((size_t)n, sizeof(*back));
    CLEANUP(free) char *device = xmalloc((size_t)(count * size));
    CLEANUP(free) bool *is_real = xcalloc((size_t)count, sizeof(*is_real));
    memset(device, POISON, (size_t)(count * size));
    for (int64_t i = 0; i < n; i++) {
        host[i] = value_of(i);
    }
    for (int64_t at = 0; at < count; at += step) {
        layout_pack(&layout, host, at, count - at < step ? count - at : step, device + at * size);
    }
    const int64_t *dim = desc->shape.dim;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at[4] = {i / (dim[1] * dim[2] * dim[3]), i / (dim[2] * dim[3]) % dim[1],
                               i / dim[3] % dim[2], i % dim[3]};
        int64_t where = device_index(desc, at, pad);
        assert_true(where < count);
        assert_false(is_real[where]);
        is_real[where] = true;
        float found;
        uint16_t half;
        if (desc->dtype == DT_F16) {
            memcpy(&half, device + where * size, sizeof(half));
            found = half_to_float(half);
        } else {
            memcpy(&found, device + where * size, sizeof(found));
        }
        assert_true(found == host[i]);
    }
    for (int64_t i = 0; i < count * size; i++) {
        assert_true(is_real[i / size] || device[i] == 0);
    }
    for (int64_t at = 0; at < count; at += step + 3) {
        int64_t left = count - at < step + 3 ? count - at : step + 3;
        layout_unpack(&layout, device + at * size, at, left, back);
    }
    assert_memory_equal(back, host, (size_t)n * sizeof(*host));
}

TEST(test_images_and_filters)
{
    static const enum role roles[] = {ROLE_PLAIN, ROLE_IMAGE, ROLE_FILTER};
    static const int64_t shapes[][4] = {{2, 3, 5, 4}, {3, 18, 2, 3}, {19, 8, 1, 1}, {1, 1, 7, 1}};
    for (size_t r = 0; r < ARRAY_LEN(roles); r++) {
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
            const int64_t *d = shapes[i];
            struct tensor_desc desc = {SHAPE(d[0], d[1], d[2], d[3]), DT_F32, roles[r]};
            check_4d(&desc, 4, 7);
            check_4d(&desc, 1, 5);
            desc.dtype = DT_F16;
            check_4d(&desc, 8, 1);
            check_4d(&desc, 8, 100000);
        }
    }
}

TEST(test_depthwise_filters)
{
    struct tensor_desc desc = {SHAPE(21, 1, 3, 3), DT_F32, ROLE_FILTER_DEPTHWISE};
    check_4d(&desc, 4, 11);
    desc.dtype = DT_F16;
    check_4d(&desc, 8, 11);
}

TEST(test_sizes)
{
    const struct {
        struct tensor_desc desc;
        int64_t pad, count;
    } cases[] = {
        {{SHAPE(4, 3, 10, 10), DT_F16, ROLE_IMAGE}, 8, 4 * 100 * 8},
        {{SHAPE(4, 3, 10, 10), DT_F32, ROLE_IMAGE}, 4, 4 * 100 * 4},
        {{SHAPE(36, 18, 3, 3), DT_F16, ROLE_FILTER}, 8, 40 * 9 * 24},
        {{SHAPE(64, 1, 3, 3), DT_F16, ROLE_FILTER}, 8, 64 * 9 * 8}, /* one channel, no depthwise */
        {{SHAPE(36, 1, 3, 3), DT_F16, ROLE_FILTER_DEPTHWISE}, 8, 9 * 40},
        {{SHAPE(19), DT_F32, ROLE_CHANNEL}, 8, 24},
        {{SHAPE(1000, 2048), DT_F16, ROLE_PLAIN}, 8, 2048000},
        {{SHAPE(1920, 30522), DT_F16, ROLE_ROWS}, 8, 1920 * 30528},
        {{SHAPE(1920, 30522), DT_F32, ROLE_ROWS}, 4, 1920 * 30524},
        {{SHAPE(30522, 768), DT_F16, ROLE_TABLE}, 8, 30528 * 768},
        {{SHAPE(7, 5), DT_F16, ROLE_TABLE}, 8, 8 * 5}, /* its own rows are not padded */
        {{SHAPE(3, 5, 7), DT_I64, ROLE_PLAIN}, 8, 105},
        {{SHAPE_SCALAR, DT_F32, ROLE_PLAIN}, 8, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct layout layout = layout_of(&cases[i].desc, cases[i].pad);
        assert_int_equal(layout_count(&layout), cases[i].count);
        assert_int_equal(layout_bytes(&layout), cases[i].count * dtype_bytes(cases[i].desc.dtype));
    }
}

/* Rows are padded at their ends, a table by rows at its end. The padding is zero on the way there, and ignored on the way
   back. */
TEST(test_rows_and_tables)
{
    static const int64_t steps[] = {1, 5, 8, 1000};
    static const enum role roles[] = {ROLE_ROWS, ROLE_TABLE};
    for (size_t r = 0; r < ARRAY_LEN(roles) * ARRAY_LEN(steps); r++) {
        const struct tensor_desc desc = {SHAPE(5, 11), DT_F32, roles[r % 2]};
        const struct layout layout = layout_of(&desc, 4);
        int64_t step = steps[r / 2];
        int64_t pitch = desc.role == ROLE_ROWS ? 12 : 11;
        int64_t count = desc.role == ROLE_ROWS ? 5 * 12 : 8 * 11;
        float host[55];
        float back[55] = {0};
        float device[88];
        memset(device, POISON, sizeof(device));
        for (int i = 0; i < 55; i++) {
            host[i] = value_of(i);
        }
        assert_int_equal(layout_count(&layout), count);
        for (int64_t at = 0; at < count; at += step) {
            layout_pack(&layout, host, at, count - at < step ? count - at : step, device + at);
        }
        for (int64_t i = 0; i < count; i++) {
            bool is_real = i % pitch < 11 && i / pitch < 5;
            float expected = is_real ? host[i / pitch * 11 + i % pitch] : 0.0F;
            assert_true(device[i] == expected);
            device[i] = is_real ? device[i] : NAN;
        }
        for (int64_t at = 0; at < count; at += step) {
            layout_unpack(&layout, device + at, at, count - at < step ? count - at : step, back);
        }
        assert_memory_equal(back, host, sizeof(host));
    }
}

TEST(test_vectors_and_whole_numbers)
{
    const int64_t labels[] = {-1, INT64_MAX, 255, 7};
    const struct tensor_desc whole = {SHAPE(2, 2), DT_I64, ROLE_PLAIN};
    const struct layout as_is = layout_of(&whole, 8);
    int64_t stored[4];
    layout_pack(&as_is, labels, 0, 4, stored);
    assert_memory_equal(stored, labels, sizeof(labels));
    const float gamma[] = {1.0F, 2.0F, 3.0F};
    const struct tensor_desc desc = {SHAPE(3), DT_F32, ROLE_CHANNEL};
    const struct layout layout = layout_of(&desc, 8);
    const float expected[8] = {1.0F, 2.0F, 3.0F};
    float vector[8];
    float back[3];
    memset(vector, POISON, sizeof(vector));
    layout_pack(&layout, gamma, 0, 8, vector);
    assert_memory_equal(vector, expected, sizeof(expected));
    layout_unpack(&layout, vector, 0, 8, back);
    assert_memory_equal(back, gamma, sizeof(gamma));
}
