/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's short vectors that are used, with their real alignment, so that UBSan sees a misaligned load. */
#pragma once

struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static inline int4 make_int4(int x, int y, int z, int w)
{
    return int4{x, y, z, w};
}
