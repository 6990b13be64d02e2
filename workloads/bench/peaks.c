/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "bench/peaks.h"

#define TERA 1e12

/* Where a data sheet gives tensor cores with sparsity only, half of it is used. Read 2026-11. */
#define H100 "NVIDIA H100 Tensor Core GPU data sheet"
#define H200 "NVIDIA H200 Tensor Core GPU data sheet"
#define A100 "NVIDIA A100 Tensor Core GPU data sheet"
#define V100 "NVIDIA V100 Tensor Core GPU data sheet"
#define T4   "NVIDIA T4 Tensor Core GPU data sheet"

static const struct peak PEAKS[] = {
    {"NVIDIA H200", 989.5 * TERA, 494.5 * TERA, 67.0 * TERA, 4.8 * TERA, H200},
    {"NVIDIA H100 80GB HBM3", 989.5 * TERA, 494.5 * TERA, 67.0 * TERA, 3.35 * TERA, H100},
    {"NVIDIA H100 PCIe", 756.5 * TERA, 378.0 * TERA, 51.0 * TERA, 2.0 * TERA, H100},
    {"NVIDIA A100-SXM4-80GB", 312.0 * TERA, 156.0 * TERA, 19.5 * TERA, 2.039 * TERA, A100},
    {"NVIDIA A100 80GB PCIe", 312.0 * TERA, 156.0 * TERA, 19.5 * TERA, 1.935 * TERA, A100},
    {"NVIDIA A100-SXM4-40GB", 312.0 * TERA, 156.0 * TERA, 19.5 * TERA, 1.555 * TERA, A100},
    {"NVIDIA A100-PCIE-40GB", 312.0 * TERA, 156.0 * TERA, 19.5 * TERA, 1.555 * TERA, A100},
    {"Tesla V100-SXM2-32GB", 125.0 * TERA, 0.0, 15.7 * TERA, 0.9 * TERA, V100},
    {"Tesla V100-SXM2-16GB", 125.0 * TERA, 0.0, 15.7 * TERA, 0.9 * TERA, V100},
    {"Tesla V100-PCIE-32GB", 112.0 * TERA, 0.0, 14.0 * TERA, 0.9 * TERA, V100},
    {"Tesla V100-PCIE-16GB", 112.0 * TERA, 0.0, 14.0 * TERA, 0.9 * TERA, V100},
    {"Tesla T4", 65.0 * TERA, 0.0, 8.1 * TERA, 0.32 * TERA, T4},
};

const struct peak *peak_at(int idx)
{
    return idx >= 0 && idx < (int)ARRAY_LEN(PEAKS) ? &PEAKS[idx] : NULL;
}

const struct peak *peak_find(struct str gpu_name)
{
    for (size_t i = 0; i < ARRAY_LEN(PEAKS); i++) {
        if (str_eq_z(gpu_name, PEAKS[i].name)) {
            return &PEAKS[i];
        }
    }
    return NULL;
}

bool peak_fuses_norms(const struct peak *peak)
{
    return peak->tf32_flops_per_s > 0.0;
}
