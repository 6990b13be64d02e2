/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's short vectors with their real alignment, so that UBSan sees a misaligned load. */
#ifndef CUDA_EMU_VECTOR_H
#define CUDA_EMU_VECTOR_H

#define EMU_VECTOR(type, name, align_1, align_2, align_4)                                          \
    struct name##1                                                                                 \
    {                                                                                              \
        type x;                                                                                    \
    };                                                                                             \
    struct alignas(align_2) name##2                                                                \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(align_4) name##4                                                                \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return name##2 {x, y};                                                                     \
    }                                                                                              \
    static inline name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return name##3 {x, y, z};                                                                  \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return name##4 {x, y, z, w};                                                               \
    }

EMU_VECTOR(signed char, char, 1, 2, 4)
EMU_VECTOR(unsigned char, uchar, 1, 2, 4)
EMU_VECTOR(short, short, 2, 4, 8)
EMU_VECTOR(unsigned short, ushort, 2, 4, 8)
EMU_VECTOR(int, int, 4, 8, 16)
EMU_VECTOR(unsigned, uint, 4, 8, 16)
EMU_VECTOR(float, float, 4, 8, 16)
EMU_VECTOR(long long, longlong, 8, 16, 16)
EMU_VECTOR(unsigned long long, ulonglong, 8, 16, 16)
EMU_VECTOR(double, double, 8, 16, 16)

#endif
