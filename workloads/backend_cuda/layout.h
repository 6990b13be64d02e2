/* SPDX-License-Identifier: Apache-2.0 */
/* How a tensor is stored on the device, and how it is copied there and back. Pure C: no device is needed.

   On the host a
tensor is packed in the order of its shape, half precision as float. On the device an image (N, C, H, W) is stored as
(N, H, W, C'), a filter (K, C, R, S) as (K', R, S, C'), a depthwise one (K, 1, R, S) as (R, S, K'), a channel vector (C)
as (C'), rows (R, C) as (R, C'), a table (K, C) as (K', C), everything else as its shape says, where X' is X rounded up
to the backend's channel_pad. The padding is zero. */
#pragma once

#include "core/tensor.h"

/* Every case is (outer, plane, inner) on the device and (outer, inner, plane) on the host. */
struct layout {
    int64_t outer, outer_pad; /* N of an image, K of a filter or a table, R of rows, else 1 */
    int64_t inner, inner_pad; /* C, or all elements where nothing is rounded up */
    int64_t plane;            /* H * W, R * S, else 1 */
    enum dtype dtype;
};

struct layout layout_of(const struct tensor_desc *desc, int64_t channel_pad);

/* Elements and bytes on the device. */
int64_t layout_count(const struct layout *layout);
int64_t layout_bytes(const struct layout *layout);

/* Elements [first, first + count) of the device's order: from the whole tensor at `host` to `piece`, which holds only them. */
void layout_pack(const struct layout *layout, const void *host, int64_t first, int64_t count,
                 void *piece);

/* The way back; the padding is dropped. */
void layout_unpack(const struct layout *layout, const void *piece, int64_t first, int64_t count,
                   void *host);
