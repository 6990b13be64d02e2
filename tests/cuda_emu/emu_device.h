/* SPDX-License-Identifier: Apache-2.0 */
/* What device code calls: barriers, warp collectives, atomics, intrinsics. Included by cuda_runtime.h alone. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#define __syncthreads()         ((void)emu_barrier(__FILE__, __LINE__, 0))
#define __syncthreads_or(value) emu_barrier(__FILE__, __LINE__, value)
#define __trap()                emu_trap("__trap()")

static inline void __threadfence(void)
{
}

/* --- warp collectives ----------------------------------------------------------------------------- */
enum emu_shuffle_kind { EMU_IDX, EMU_DOWN, EMU_XOR };

template <typename T> struct emu_shuffle {
    T value, result;
    int arg, width;
    emu_shuffle_kind kind;

    /* Source of the lane arithmetic: CUDA C++ Programming Guide, "Warp Shuffle Functions". */
    int source(int lane) const
    {
        int first = lane & ~(width - 1);
        int at = lane & (width - 1);
        switch (kind) {
        case EMU_IDX:
            return first + (arg & (width - 1));
        case EMU_DOWN:
            return at + arg < width ? lane + arg : lane;
        case EMU_XOR:
        default:
            return (lane ^ arg) < first + width ? lane ^ arg : lane;
        }
    }
    static void all(void *const lanes[32])
    {
        for (int lane = 0; lane < 32; lane++) {
            emu_shuffle *mine = (emu_shuffle *)lanes[lane];
            if (mine == NULL) {
                continue;
            }
            emu_shuffle *from = (emu_shuffle *)lanes[mine->source(lane) & 31];
            if (from == NULL) {
                emu_trap("shuffle from a lane that is not in the mask");
            }
            mine->result = from->value;
        }
    }
};

template <typename T>
static inline T emu_shuffle_sync(unsigned mask, T value, int arg, int width, emu_shuffle_kind kind)
{
    static const char *const names[] = {"__shfl_sync", "__shfl_down_sync", "__shfl_xor_sync"};
    if (width < 1 || width > 32 || (width & (width - 1)) != 0) {
        emu_trap("shuffle: the width is no power of two up to 32");
    }
    emu_shuffle<T> mine = {value, value, arg, width, kind};
    emu_warp(mask, names[kind], emu_shuffle<T>::all, &mine);
    return mine.result;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return emu_shuffle_sync(mask, value, lane, width, EMU_IDX);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32)
{
    return emu_shuffle_sync(mask, value, (int)delta, width, EMU_DOWN);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32)
{
    return emu_shuffle_sync(mask, value, lanes, width, EMU_XOR);
}

struct emu_vote {
    bool value;
    unsigned ballot;

    static void all(void *const lanes[32])
    {
        unsigned ballot = 0;
        for (int lane = 0; lane < 32; lane++) {
            emu_vote *mine = (emu_vote *)lanes[lane];
            ballot |= (unsigned)(mine != NULL && mine->value) << lane;
        }
        for (int lane = 0; lane < 32; lane++) {
            if (lanes[lane] != NULL) {
                ((emu_vote *)lanes[lane])->ballot = ballot;
            }
        }
    }
};
static inline unsigned emu_vote_sync(unsigned mask, bool value, const char *what)
{
    emu_vote mine = {value, 0};
    emu_warp(mask, what, emu_vote::all, &mine);
    return mine.ballot;
}
static inline unsigned __ballot_sync(unsigned mask, int value)
{
    return emu_vote_sync(mask, value != 0, "__ballot_sync");
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    (void)emu_vote_sync(mask, false, "__syncwarp");
}

/* --- atomics: one OS thread runs all, so plain code is atomic ---------------------------------------- */
template <typename T> static inline T atomicAdd(T *ptr, T value)
{
    T old = *ptr;
    *ptr = old + value;
    return old;
}

#include "emu_math.h"
