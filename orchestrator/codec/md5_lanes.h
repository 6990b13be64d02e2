/* SPDX-License-Identifier: Apache-2.0 */
/* The two vector kernels of codec/md5_many.c; only where the processor has what they need. */
#pragma once

#include "codec/md5_many.h"

void md5_blocks_avx2(uint32_t (*state)[MD5_LANES_MAX], const uint8_t *const *ptrs, size_t n_blocks);
void md5_blocks_avx512f(uint32_t (*state)[MD5_LANES_MAX], const uint8_t *const *ptrs,
                        size_t n_blocks);
