/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: plain C with OpenMP, float and double. Every sum is in double, but attention's of float. In double it is the
   oracle the other backends are checked against; it is what runs where there is no GPU. Activations are stored as PyTorch has them
   (NCHW). */
#pragma once

#include "backend_cpu/gemm.h"
#include "core/kernel.h"

enum cpu_flavour {
    CPU_PLAIN,  /* "cpu-plain" */
    CPU_ONEDNN, /* "cpu-onednn": float convolutions and linear layers by oneDNN, the rest plain */
};

struct cpu;
typedef void (*cpu_kernel_fn)(const struct cpu *cpu, const struct kernel_args *args);

struct cpu {
    int n_threads;
    gemm_micro_fn micro;
    const cpu_kernel_fn *kernels_f32;
    void *onednn; /* owned engine of backend_cpu/onednn.c, or NULL */
};

#define CPU_THREADS_MAX 1024

/* True if this build has oneDNN. */
bool cpu_has_onednn(void);

/* Fills *ret_backend, which borrows cpu until cpu_release. n_threads 0 is what OpenMP gives. */
MUST_CHECK int cpu_init(struct cpu *cpu, enum cpu_flavour flavour, int n_threads,
                        struct backend *ret_backend, struct err *err);
void cpu_release(struct cpu *cpu);
static inline void cpu_cleanup(struct cpu *cpu)
{
    cpu_release(cpu);
}

/* For backend_cpu/ itself. What one output row or column of an upsampling is made of:
   (1 - share) of input `low` and share of input `high`. */
struct cpu_tap {
    int64_t low, high;
    double share;
};

/* Moments of one channel, of one rank's batch or joined over all ranks. */
struct cpu_moments {
    double mean, squares; /* sum of squared distances from the mean */
};
struct cpu_bn_sums {
    double grad, hat; /* sums of dy, and of dy times normalised x */
};
_Static_assert(sizeof(struct cpu_bn_sums) == 2 * sizeof(double), "summed over ranks as doubles");

/* Of n_ranks batches of `count` values each, the moments of which lie `stride` apart; in the order of the ranks. */
struct cpu_moments cpu_join_moments(const struct cpu_moments *moments, int n_ranks, int64_t stride,
                                    double count);

#define HEAD_ROWS 4 /* of attention: rows that are added in one go */

/* Bytes of workspace that a matrix product needs; what else a call keeps there comes after them. */
int64_t cpu_gemm_bytes(const struct cpu *cpu);

/* One table of kernels a type. What CPU_NAME names is compiled a second time on x86-64, for processors with AVX2 (Makefile). */
#ifdef REPERF_AVX2
#define CPU_NAME(name) name##_avx2
#else
#define CPU_NAME(name) name
#endif
extern const cpu_kernel_fn cpu_kernels_f32[K_COUNT], cpu_kernels_f32_avx2[K_COUNT];
extern const cpu_kernel_fn cpu_kernels_f64[K_COUNT];

/* The optimiser (optim.c), as in struct backend. */
MUST_CHECK int cpu_prepare_update(void *self, struct opt_args *args, struct err *err);
void cpu_unprepare_update(void *self, struct opt_args *args);
void cpu_set_hyper(void *self, const struct opt_args *args, const struct opt_hyper *hyper);
void cpu_add_gradients(void *self, const struct opt_args *args, bool is_first);
void cpu_add_gradients_avx2(void *self, const struct opt_args *args, bool is_first);
void cpu_update(void *self, const struct opt_args *args);
void cpu_update_avx2(void *self, const struct opt_args *args);

/* oneDNN: prepare sets args->prepared where it takes the call over, and leaves it NULL where it does not. */
MUST_CHECK int onednn_init(void **ret_engine, struct err *err);
void onednn_release(void *engine);
MUST_CHECK int onednn_prepare(void *engine, struct kernel_args *args, struct err *err);
void onednn_unprepare(struct kernel_args *args);
void onednn_run(void *engine, const struct kernel_args *args);

/* K_LINEAR_* but for dbias: no plan, no engine. */
bool onednn_is_linear(enum kernel_id id);
void onednn_linear(const struct cpu *cpu, const struct kernel_args *args);
