/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/layout.h"

#include "core/half.h"

static int64_t round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

struct layout layout_of(const struct tensor_desc *desc, int64_t channel_pad)
{
    const int64_t *dim = desc->shape.dim;
    struct layout layout = {
        .outer = 1, .inner = shape_count(&desc->shape), .plane = 1, .dtype = desc->dtype};
    bool is_padded = desc->role != ROLE_PLAIN && desc->role != ROLE_TABLE;
    switch (desc->role) {
    case ROLE_IMAGE:
    case ROLE_FILTER:
        ASSERT(desc->shape.n_dims == 4);
        layout.outer = dim[0];
        layout.inner = dim[1];
        layout.plane = dim[2] * dim[3];
        break;
    case ROLE_FILTER_DEPTHWISE:
        ASSERT(desc->shape.n_dims == 4);
        ASSERT(dim[1] == 1);
        layout.inner = dim[0];
        layout.plane = dim[2] * dim[3];
        break;
    case ROLE_CHANNEL:
        ASSERT(desc->shape.n_dims == 1);
        break;
    case ROLE_ROWS:
    case ROLE_TABLE:
        ASSERT(desc->shape.n_dims == 2);
        layout.outer = dim[0];
        layout.inner = dim[1];
        break;
    case ROLE_PLAIN:
        break;
    }
    bool has_more_rows = desc->role == ROLE_FILTER || desc->role == ROLE_TABLE;
    layout.outer_pad = has_more_rows ? round_up(layout.outer, channel_pad) : layout.outer;
    layout.inner_pad = is_padded ? round_up(layout.inner, channel_pad) : layout.inner;
    return layout;
}

int64_t layout_count(const struct layout *layout)
{
    return layout->outer_pad * layout->plane * layout->inner_pad;
}

int64_t layout_bytes(const struct layout *layout)
{
    return layout_count(layout) * dtype_bytes(layout->dtype);
}

/* A stretch of one row (the inner_pad elements of one (outer, plane)): where its elements are on the host, and how many of
   them exist. */
struct stretch {
    int64_t host;   /* of the first */
    int64_t stride; /* on the host */
    int64_t count;  /* elements of the row in this piece */
    int64_t real;   /* the first of them; the others are padding */
};

static struct stretch stretch_at(const struct layout *layout, int64_t at, int64_t end)
{
    int64_t row = at / layout->inner_pad;
    int64_t inner = at % layout->inner_pad;
    int64_t outer = row / layout->plane;
    int64_t left = layout->inner_pad - inner;
    int64_t real = outer < layout->outer && inner < layout->inner ? layout->inner - inner : 0;
    struct stretch stretch = {
        .host = (outer * layout->inner + inner) * layout->plane + row % layout->plane,
        .stride = layout->plane,
        .count = left < end - at ? left : end - at,
    };
    stretch.real = real < stretch.count ? real : stretch.count;
    return stretch;
}

static void pack_half(const struct stretch *stretch, const float *host, uint16_t *piece)
{
    for (int64_t i = 0; i < stretch->real; i++) {
        piece[i] = half_from_float(host[stretch->host + i * stretch->stride]);
    }
}

static void unpack_half(const struct stretch *stretch, const uint16_t *piece, float *host)
{
    for (int64_t i = 0; i < stretch->real; i++) {
        host[stretch->host + i * stretch->stride] = half_to_float(piece[i]);
    }
}

/* Elements of `size` bytes, from one side to the other as they are. */
static void copy_elements(int64_t count, int64_t size, const char *from, int64_t from_stride,
                          char *to, int64_t to_stride)
{
    if (from_stride == 1 && to_stride == 1) {
        memcpy(to, from, (size_t)(count * size));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * to_stride * size, from + i * from_stride * size, (size_t)size);
    }
}

void layout_pack(const struct layout *layout, const void *host, int64_t first, int64_t count,
                 void *piece)
{
    int64_t size = dtype_bytes(layout->dtype);
    char *out = piece;
    for (int64_t at = first; at < first + count;) {
        const struct stretch stretch = stretch_at(layout, at, first + count);
        if (layout->dtype == DT_F16) {
            pack_half(&stretch, host, (uint16_t *)(void *)out);
        } else if (stretch.real > 0) {
            copy_elements(stretch.real, size, (const char *)host + stretch.host * size,
                          stretch.stride, out, 1);
        }
        memset(out + stretch.real * size, 0, (size_t)((stretch.count - stretch.real) * size));
        out += stretch.count * size;
        at += stretch.count;
    }
}

void layout_unpack(const struct layout *layout, const void *piece, int64_t first, int64_t count,
                   void *host)
{
    int64_t size = dtype_bytes(layout->dtype);
    const char *in = piece;
    for (int64_t at = first; at < first + count;) {
        const struct stretch stretch = stretch_at(layout, at, first + count);
        if (layout->dtype == DT_F16) {
            unpack_half(&stretch, (const uint16_t *)(const void *)in, host);
        } else if (stretch.real > 0) {
            copy_elements(stretch.real, size, in, 1, (char *)host + stretch.host * size,
                          stretch.stride);
        }
        in += stretch.count * size;
        at += stretch.count;
    }
}
