/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "emu_library.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cuda/cuda.h"
#include "core/half.h"
#include "emu.h"

#define WORKSPACE_BYTES 1000

struct call {
    struct kernel_args args;
    void (*fn)(const struct kernel_args *args);
};

static void *must(void *ptr)
{
    if (ptr == NULL) {
        emu_trap("out of memory");
    }
    return ptr;
}

static void run(void *closure)
{
    const struct call *call = closure;
    if (call->args.workspace_bytes > 0) {
        memset(call->args.workspace, 0x5a, (size_t)call->args.workspace_bytes);
    }
    call->fn(&call->args);
}

static _Noreturn void die(const struct kernel_args *args, const char *what)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "the library's %s %s", kernel_name(args->id), what);
    emu_trap(text);
}

void library_enqueue(struct cuda *cuda, const struct kernel_args *args, const char *name,
                     void (*fn)(const struct kernel_args *args))
{
    const struct emu_dim one = {1, 1, 1};
    if (args->prepared == NULL || args->workspace == NULL ||
        args->workspace_bytes < WORKSPACE_BYTES) {
        die(args, "was not prepared, or has no workspace");
    }
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        if ((uintptr_t)args->in[i] % 16 != 0) {
            die(args, "has an input that is not aligned to 16 bytes");
        }
    }
    struct call *call = must(malloc(sizeof(*call)));
    *call = (struct call){.args = *args, .fn = fn};
    emu_launch(name, name, &one, &one, 0, cuda_stream(cuda, args), run, call, free);
    (void)cuda_ok(cuda, cudaGetLastError(), name);
}

float *library_read(const struct kernel_args *args, const void *ptr, int64_t count)
{
    if (ptr == NULL) {
        return NULL;
    }
    float *copy = must(malloc((size_t)count * sizeof(*copy) + 1));
    if (args->dtype == DT_F16) {
        const uint16_t *from = ptr;
        for (int64_t i = 0; i < count; i++) {
            copy[i] = half_to_float(from[i]);
        }
    } else {
        memcpy(copy, ptr, (size_t)count * sizeof(*copy));
    }
    return copy;
}

void library_write(const struct kernel_args *args, int out, const double *from, int64_t count)
{
    bool adds = (args->accumulate >> out & 1) != 0;
    for (int64_t i = 0; i < count; i++) {
        if (args->dtype == DT_F16) {
            uint16_t *to = args->out[out];
            double old = adds ? (double)half_to_float(to[i]) : 0.0;
            double product = adds ? library_round(args, from[i]) : from[i]; /* as the libraries */
            to[i] = half_from_float((float)(old + product));
        } else {
            float *to = args->out[out];
            to[i] = (float)((adds ? (double)to[i] : 0.0) + from[i]);
        }
    }
}

double library_round(const struct kernel_args *args, double value)
{
    return args->dtype == DT_F16 ? (double)half_to_float(half_from_float((float)value)) : value;
}

double *library_zeros(int64_t count)
{
    return must(calloc((size_t)count + 1, sizeof(double)));
}

void library_prepare(struct kernel_args *args, const char *name)
{
    struct plan_info *info = must(calloc(1, sizeof(*info)));
    (void)snprintf(info->name, sizeof(info->name), "%s", name);
    info->workspace_bytes = WORKSPACE_BYTES;
    info->is_deterministic = true;
    args->prepared = info;
    args->workspace_bytes = WORKSPACE_BYTES;
}

void library_unprepare(struct kernel_args *args)
{
    free(args->prepared);
    args->prepared = NULL;
}

struct plan_info library_info(const struct kernel_args *args)
{
    return *(const struct plan_info *)args->prepared;
}

double library_dot(const float *a, const float *b, int64_t count)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += (double)a[i + k] * (double)b[i + k];
        }
    }
    for (; i < count; i++) {
        sum[0] += (double)a[i] * (double)b[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}
