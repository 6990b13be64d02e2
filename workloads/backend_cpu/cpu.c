/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include <omp.h>

#define ALIGN_BYTES 64

static int64_t tensor_bytes(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

static void *cpu_alloc(void *self UNUSED, int64_t bytes)
{
    /* calloc's pages are zero without being touched: who needs a few tensors of a large network pays for those alone. In front of what is
       returned stands where the allocation begins. */
    char *whole = calloc(1, (size_t)bytes + ALIGN_BYTES);
    if (!whole) {
        return NULL;
    }
    uintptr_t at = ((uintptr_t)whole / ALIGN_BYTES + 1) * ALIGN_BYTES;
    void **ptr = (void **)at;
    ptr[-1] = whole;
    return ptr;
}

static void cpu_free(void *self UNUSED, void *ptr)
{
    free(ptr ? ((void **)ptr)[-1] : NULL);
}

static void copy_in(void *self, const struct tensor_desc *desc, const void *host, void *device)
{
    memcpy(device, host, (size_t)tensor_bytes(self, desc));
}

static void copy_out(void *self, const struct tensor_desc *desc, const void *device, void *host)
{
    memcpy(host, device, (size_t)tensor_bytes(self, desc));
}

/* The taps of all rows and columns, then for each thread a row of the input and, backward, a plane of it, in double. */
static int64_t upsample_workspace(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct resize_geom *g = &args->geom.resize;
    int64_t plane = args->id == K_UPSAMPLE_BWD ? g->h * g->w : 0;
    return (g->p + g->q) * (int64_t)sizeof(struct cpu_tap) +
           (plane + g->w) * (int64_t)sizeof(double) * cpu->n_threads;
}

/* The same; forward a row of every class and one pixel, backward a plane and two rows. */
static int64_t upsample_loss_workspace(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct resize_geom *g = &args->geom.upsample_loss.resize;
    int64_t doubles = args->id == K_UPSAMPLE_LOSS_FWD ? g->c * g->w + g->c : g->h * g->w + 2 * g->w;
    return (g->p + g->q) * (int64_t)sizeof(struct cpu_tap) +
           doubles * (int64_t)sizeof(double) * cpu->n_threads;
}

int64_t cpu_gemm_bytes(const struct cpu *cpu)
{
    return (gemm_workspace_bytes(cpu->n_threads) + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* A convolution, and its input once more, normalised. */
static int64_t norm_conv_workspace(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct conv_geom *g = &args->geom.conv;
    return cpu_gemm_bytes(cpu) + g->n * g->c * g->h * g->w * dtype_bytes(args->dtype);
}

/* Each rank's moments, or the sums over all: only where batch norm is over several ranks. */
static int64_t bn_workspace(const struct kernel_args *args)
{
    const struct bn_geom *g = &args->geom.bn;
    int64_t rows = args->id == K_BN_FWD || args->id == K_BN_ADD_FWD ? g->n_ranks : 1;
    return g->n_ranks > 1 ? rows * g->c * (int64_t)sizeof(struct cpu_moments) : 0;
}

struct cpu_moments cpu_join_moments(const struct cpu_moments *moments, int n_ranks, int64_t stride,
                                    double count)
{
    /* Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979). */
    struct cpu_moments all = moments[0];
    for (int rank = 1; rank < n_ranks; rank++) {
        const struct cpu_moments more = moments[rank * stride];
        double seen = count * rank;
        double apart = more.mean - all.mean;
        all.mean += apart * count / (seen + count);
        all.squares += more.squares + apart * apart * seen * count / (seen + count);
    }
    return all;
}

/* For each thread what rows_attention.inc keeps of one head. */
static int64_t attention_workspace(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct attention_geom *g = &args->geom.attention;
    int64_t rows = g->s * g->d;
    int64_t count =
        args->id == K_ATTENTION_FWD ? rows + g->s : 5 * rows + (2 + 2 * HEAD_ROWS) * g->s;
    return count * dtype_bytes(args->dtype) * cpu->n_threads;
}

static int64_t plain_workspace(const struct cpu *cpu, const struct kernel_args *args)
{
    switch ((int)args->id) {
    case K_CONV_FWD:
    case K_CONV_BWD_DATA:
    case K_CONV_BWD_WEIGHT:
    case K_LINEAR_FWD:
    case K_LINEAR_BWD_DATA:
    case K_LINEAR_BWD_WEIGHT:
    case K_CONV_BWD_DATA_BN:
        return gemm_workspace_bytes(cpu->n_threads);
    case K_CONV_STATS_FWD:
    case K_NORM_CONV_BWD_WEIGHT:
        return norm_conv_workspace(cpu, args);
    case K_BN_FWD:
    case K_BN_BWD:
    case K_BN_ADD_FWD:
    case K_BN_ADD_BWD:
    case K_BN_FINALIZE:
    case K_BN_BWD_APPLY:
        return bn_workspace(args);
    case K_MAXPOOL_BWD:
        return args->geom.pool.h * args->geom.pool.w * (int64_t)sizeof(double) * cpu->n_threads;
    case K_UPSAMPLE_FWD:
    case K_UPSAMPLE_BWD:
        return upsample_workspace(cpu, args);
    case K_UPSAMPLE_LOSS_FWD:
    case K_UPSAMPLE_LOSS_BWD:
        return upsample_loss_workspace(cpu, args);
    case K_ATTENTION_FWD:
    case K_ATTENTION_BWD:
        return attention_workspace(cpu, args);
    default:
        return 0;
    }
}

static int cpu_prepare(void *self, struct kernel_args *args, struct err *err)
{
    const struct cpu *cpu = self;
    if (cpu->onednn && args->dtype == DT_F32 && onednn_prepare(cpu->onednn, args, err) < 0) {
        return err_wrap(err, "%s", kernel_name(args->id));
    }
    if (!args->prepared) {
        args->workspace_bytes = plain_workspace(cpu, args);
    }
    return 0;
}

static void cpu_unprepare(void *self UNUSED, struct kernel_args *args)
{
    if (args->prepared) {
        onednn_unprepare(args);
    }
}

/* The part of a call that oneDNN leaves to the plain kernel. */
static void run_bias_grad(const struct cpu *cpu, const struct kernel_args *args)
{
    struct kernel_args bias = *args;
    bias.out[0] = NULL;
    if ((args->id == K_CONV_BWD_WEIGHT || args->id == K_LINEAR_BWD_WEIGHT) && args->out[1]) {
        cpu->kernels_f32[args->id](cpu, &bias);
    }
}

static void run_kernel(void *self, const struct kernel_args *args)
{
    const struct cpu *cpu = self;
    if (args->prepared) {
        onednn_run(cpu->onednn, args);
        run_bias_grad(cpu, args);
    } else if (cpu->onednn && args->dtype == DT_F32 && onednn_is_linear(args->id)) {
        onednn_linear(cpu, args);
        run_bias_grad(cpu, args);
    } else if (args->dtype == DT_F64) {
        cpu_kernels_f64[args->id](cpu, args);
    } else {
        ASSERT(args->dtype == DT_F32);
        cpu->kernels_f32[args->id](cpu, args);
    }
}

int cpu_init(struct cpu *cpu, enum cpu_flavour flavour, int n_threads, struct backend *ret_backend,
             struct err *err)
{
    *cpu = (struct cpu){.n_threads = n_threads > 0 ? n_threads : omp_get_max_threads(),
                        .micro = gemm_micro_best(),
                        .kernels_f32 = cpu_kernels_f32};
    if (cpu->n_threads > CPU_THREADS_MAX) {
        return err_set(err, ERR_USAGE, "%d threads, expected at most %d", cpu->n_threads,
                       CPU_THREADS_MAX);
    }
    omp_set_num_threads(cpu->n_threads); /* oneDNN's own loops ask OpenMP for the number */
    if (flavour == CPU_ONEDNN && onednn_init(&cpu->onednn, err) < 0) {
        return -1;
    }
    *ret_backend = (struct backend){
        .name = flavour == CPU_ONEDNN ? "cpu-onednn" : "cpu-plain",
        .self = cpu,
        .n_threads = cpu->n_threads,
        .tensor_bytes = tensor_bytes,
        .alloc = cpu_alloc,
        .free = cpu_free,
        .upload = copy_in,
        .download = copy_out,
        .prepare = cpu_prepare,
        .unprepare = cpu_unprepare,
        .prepare_update = cpu_prepare_update,
        .unprepare_update = cpu_unprepare_update,
        .set_hyper = cpu_set_hyper,
        .add_gradients = cpu_add_gradients,
        .update = cpu_update,
        .async = {.n_streams = 1},
    };
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        cpu->kernels_f32 = cpu_kernels_f32_avx2;
        ret_backend->add_gradients = cpu_add_gradients_avx2;
        ret_backend->update = cpu_update_avx2;
    }
#endif
    for (int id = 0; id < K_COUNT; id++) {
        ret_backend->run[id] = cpu_kernels_f64[id] ? run_kernel : NULL;
    }
    return 0;
}

void cpu_release(struct cpu *cpu)
{
    if (cpu->onednn) {
        onednn_release(cpu->onednn);
        cpu->onednn = NULL;
    }
}
