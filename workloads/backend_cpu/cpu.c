/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include <omp.h>

#define ALIGN_BYTES 64

static int64_t tensor_bytes(void *self UNUSED, const struct shape *shape, enum dtype dtype)
{
    return shape_count(shape) * dtype_bytes(dtype);
}

static void *cpu_alloc(void *self UNUSED, int64_t bytes)
{
    size_t size = ((size_t)bytes + ALIGN_BYTES) / ALIGN_BYTES * ALIGN_BYTES;
    void *ptr = aligned_alloc(ALIGN_BYTES, size);
    if (ptr) {
        memset(ptr, 0, size);
    }
    return ptr;
}

static void cpu_free(void *self UNUSED, void *ptr)
{
    free(ptr);
}

static void copy_in(void *self UNUSED, const struct shape *shape, enum dtype dtype,
                    const void *host, void *device)
{
    memcpy(device, host, (size_t)(shape_count(shape) * dtype_bytes(dtype)));
}

static void copy_out(void *self UNUSED, const struct shape *shape, enum dtype dtype,
                     const void *device, void *host)
{
    memcpy(host, device, (size_t)(shape_count(shape) * dtype_bytes(dtype)));
}

/* The taps of all rows and columns, then for each thread a row of the input and, backward, a plane of it, in double. */
static int64_t upsample_workspace(const struct cpu *cpu, const struct kernel_args *args)
{
    const struct resize_geom *g = &args->geom.resize;
    int64_t plane = args->id == K_UPSAMPLE_BWD ? g->h * g->w : 0;
    return (g->p + g->q) * (int64_t)sizeof(struct cpu_tap) +
           (plane + g->w) * (int64_t)sizeof(double) * cpu->n_threads;
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
        return gemm_workspace_bytes(cpu->n_threads);
    case K_MAXPOOL_BWD:
        return args->geom.pool.h * args->geom.pool.w * (int64_t)sizeof(double) * cpu->n_threads;
    case K_UPSAMPLE_FWD:
    case K_UPSAMPLE_BWD:
        return upsample_workspace(cpu, args);
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

static void run_kernel(void *self, const struct kernel_args *args)
{
    const struct cpu *cpu = self;
    if (args->prepared) {
        onednn_run(cpu->onednn, args);
        if (args->id == K_CONV_BWD_WEIGHT && args->has_bias) {
            struct kernel_args bias = *args;
            bias.out[0] = NULL;
            cpu_kernels_f32[args->id](cpu, &bias);
        }
    } else if (args->dtype == DT_F64) {
        cpu_kernels_f64[args->id](cpu, args);
    } else {
        ASSERT(args->dtype == DT_F32);
        cpu_kernels_f32[args->id](cpu, args);
    }
}

static void run_sgd(void *self, const struct sgd_args *args)
{
    const struct cpu *cpu = self;
    if (args->dtype == DT_F64) {
        cpu_sgd_f64(cpu, args);
    } else {
        ASSERT(args->dtype == DT_F32);
        cpu_sgd_f32(cpu, args);
    }
}

int cpu_init(struct cpu *cpu, enum cpu_flavour flavour, int n_threads, struct backend *ret_backend,
             struct err *err)
{
    *cpu = (struct cpu){.n_threads = n_threads > 0 ? n_threads : omp_get_max_threads(),
                        .micro = gemm_micro_best()};
    if (cpu->n_threads > CPU_THREADS_MAX) {
        return err_set(err, ERR_USAGE, "%d threads, expected at most %d", cpu->n_threads,
                       CPU_THREADS_MAX);
    }
    omp_set_num_threads(cpu->n_threads); /* oneDNN's own loops ask OpenMP for it */
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
        .sgd = run_sgd,
    };
    for (int id = 0; id < K_COUNT; id++) {
        ret_backend->run[id] = run_kernel;
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
