/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loop, once for each vector width: 8 rows of A times W columns of B in registers, 8 / W times. */
#include "base/base.h"

#include "backend_cpu/gemm.h"

typedef double vec2 __attribute__((vector_size(16)));
typedef double vec4 __attribute__((vector_size(32)));
typedef double vec8 __attribute__((vector_size(64)));

#define DEFINE_MICRO(name, vec, target)                                                            \
    target static void name(int64_t n_k, const double *a, const double *b, double *c, int64_t ld)  \
    {                                                                                              \
        const int64_t width = (int64_t)(sizeof(vec) / sizeof(double));                             \
        for (int64_t col = 0; col < GEMM_PANEL; col += width) {                                    \
            vec acc[GEMM_PANEL];                                                                   \
            for (int i = 0; i < GEMM_PANEL; i++) {                                                 \
                memcpy(&acc[i], c + i * ld + col, sizeof(vec));                                    \
            }                                                                                      \
            for (int64_t k = 0; k < n_k; k++) {                                                    \
                vec right;                                                                         \
                memcpy(&right, b + k * GEMM_PANEL + col, sizeof(vec));                             \
                for (int i = 0; i < GEMM_PANEL; i++) {                                             \
                    acc[i] += a[k * GEMM_PANEL + i] * right;                                       \
                }                                                                                  \
            }                                                                                      \
            for (int i = 0; i < GEMM_PANEL; i++) {                                                 \
                memcpy(c + i * ld + col, &acc[i], sizeof(vec));                                    \
            }                                                                                      \
        }                                                                                          \
    }

#define NO_TARGET
DEFINE_MICRO(micro_any, vec2, NO_TARGET)

#if defined(__x86_64__)
DEFINE_MICRO(micro_avx2, vec4, __attribute__((target("avx2,fma"))))
DEFINE_MICRO(micro_avx512, vec8, __attribute__((target("avx512f"))))
#endif

gemm_micro_fn gemm_micro_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return micro_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return micro_avx2;
    }
#endif
    return micro_any;
}
