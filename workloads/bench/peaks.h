/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rates of GPUs by their data sheets: what a measured time is compared with. */
#pragma once

#include "base/str.h"

struct peak {
    const char *name;        /* as nvidia-smi has it */
    double half_flops_per_s; /* FP16 products, FP32 sums, by tensor cores, no sparsity */
    double tf32_flops_per_s; /* 0: no TF32 */
    double float_flops_per_s;
    double bytes_per_s;
    const char *source;
};

/* NULL for a GPU that is not in the table: it has no floor. */
const struct peak *peak_find(struct str gpu_name);

/* Whether cuDNN has convolutions with batch norms in them for it: from compute capability 8.0 on, which also brought TF32. Source:
   cuDNN 9.10 and 9.19 asked without a device. */
bool peak_fuses_norms(const struct peak *peak);

/* The idx-th, NULL past the last. */
const struct peak *peak_at(int idx);
