/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, copies and fills: checked before they are queued. */
#include "emu_internal.h"

#include <stdlib.h>
#include <string.h>

#define OPTINS_MAX 256

static struct {
    const void *function;
    size_t bytes;
} optins[OPTINS_MAX];
static int n_optins;

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attr, int value)
{
    if (attr == cudaFuncAttributePreferredSharedMemoryCarveout) {
        return cudaSuccess;
    }
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        (size_t)value > emu_shared_optin() || n_optins == OPTINS_MAX) {
        return emu_fail(cudaErrorInvalidValue);
    }
    if (emu_is_planted("no_opt_in")) { /* as if it had not been requested */
        return cudaSuccess;
    }
    int i = 0;
    while (i < n_optins && optins[i].function != function) {
        i++;
    }
    optins[i].function = function;
    optins[i].bytes = (size_t)value;
    n_optins += i == n_optins;
    return cudaSuccess;
}

static bool may_launch(const void *function, const struct emu_dim *grid,
                       const struct emu_dim *block, size_t shared_bytes)
{
    size_t most = (size_t)48 << 10;
    for (int i = 0; i < n_optins; i++) {
        most = optins[i].function == function && optins[i].bytes > most ? optins[i].bytes : most;
    }
    return block->x >= 1 && block->y >= 1 && block->z >= 1 && block->x <= 1024 &&
           block->y <= 1024 && block->z <= 64 &&
           (uint64_t)block->x * block->y * block->z <= EMU_THREADS_MAX && grid->x >= 1 &&
           grid->y >= 1 && grid->z >= 1 && grid->x <= INT32_MAX && grid->y <= 65535 &&
           grid->z <= 65535 && shared_bytes <= most;
}

static cudaError_t launch(const void *function, struct emu_work *work, cudaStream_t stream)
{
    const struct emu_kernel *kernel = &work->kernel;
    cudaError_t error = cudaSuccess;
    if (!may_launch(function, &kernel->grid, &kernel->block, kernel->shared_bytes)) {
        error = cudaErrorInvalidConfiguration;
    } else if (emu_fault("launch")) {
        error = cudaErrorLaunchFailure;
    }
    if (error != cudaSuccess) {
        emu_work_free(work);
        return emu_fail(error);
    }
    return emu_enqueue(work, stream, NULL);
}

void emu_launch(const void *function, const char *name, const struct emu_dim *grid,
                const struct emu_dim *block, size_t shared_bytes, void *stream,
                void (*call)(void *), void *closure, void (*drop)(void *))
{
    struct emu_work work = {.kind = EMU_KERNEL,
                            .kernel = {.name = name,
                                       .call = call,
                                       .closure = closure,
                                       .drop = drop,
                                       .grid = *grid,
                                       .block = *block,
                                       .shared_bytes = shared_bytes}};
    (void)launch(function, &work, stream);
}

int emu_launch_grid(const void *function, const char *name, const struct emu_dim *grid,
                    const struct emu_dim *block, size_t shared_bytes, void *stream,
                    void (*call)(void *), void *closure, void (*drop)(void *))
{
    struct emu_work work = {.kind = EMU_KERNEL,
                            .kernel = {.name = name,
                                       .call = call,
                                       .closure = closure,
                                       .drop = drop,
                                       .grid = *grid,
                                       .block = *block,
                                       .shared_bytes = shared_bytes,
                                       .is_whole = true}};
    return (int)launch(function, &work, stream);
}

void emu_enqueue_when(const char *name, void *stream, int (*is_ready)(void *), void (*call)(void *),
                      void *closure, void (*drop)(void *))
{
    const struct emu_dim one = {1, 1, 1};
    struct emu_work work = {.kind = EMU_KERNEL,
                            .kernel = {.name = name,
                                       .call = call,
                                       .closure = closure,
                                       .drop = drop,
                                       .is_ready = is_ready,
                                       .grid = one,
                                       .block = one}};
    (void)emu_enqueue(&work, stream, NULL);
}

/* --- copies ------------------------------------------------------------------------------------- */
static cudaError_t check_side(const void *ptr, size_t bytes, bool must_be_device, bool is_default)
{
    bool is_device = emu_is_device(ptr);
    if (!is_default && is_device != must_be_device) {
        return cudaErrorInvalidValue;
    }
    return is_device && !emu_in_device(ptr, bytes) ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                        cudaStream_t stream, bool may_return_early)
{
    bool is_default = kind == cudaMemcpyDefault;
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!is_default && (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDeviceToDevice)) {
        return emu_fail(cudaErrorInvalidMemcpyDirection);
    }
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    cudaError_t error = check_side(dst, bytes, to_device, is_default);
    error = error == cudaSuccess ? check_side(src, bytes, from_device, is_default) : error;
    error = error == cudaSuccess && emu_fault("memcpy") ? cudaErrorUnknown : error;
    if (error != cudaSuccess) {
        return emu_fail(error);
    }
    struct emu_work work = {.kind = EMU_COPY, .copy = {.dst = dst, .src = src, .bytes = bytes}};
    bool is_captured = emu_stream_captures(stream);
    bool is_pageable = (!emu_is_device(src) && !emu_is_pinned(src)) ||
                       (!emu_is_device(dst) && !emu_is_pinned(dst));
    if (is_captured || (may_return_early && !is_pageable)) {
        return emu_enqueue(&work, stream, NULL);
    }
    if (may_return_early && emu_is_device(dst)) { /* from pageable memory: staged first */
        work.copy.staged = malloc(bytes);
        if (work.copy.staged == NULL) {
            emu_die("out of memory");
        }
        memcpy(work.copy.staged, src, bytes);
        work.copy.src = work.copy.staged;
        return emu_enqueue(&work, stream, NULL);
    }
    return emu_enqueue_and_wait(&work, stream);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return copy(dst, src, bytes, kind, stream, true);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    return copy(dst, src, bytes, kind, NULL, false);
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t bytes, cudaStream_t stream)
{
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!emu_in_device(ptr, bytes)) {
        return emu_fail(cudaErrorInvalidValue);
    }
    struct emu_work work = {.kind = EMU_SET, .set = {.ptr = ptr, .value = value, .bytes = bytes}};
    return emu_enqueue(&work, stream, NULL);
}

cudaError_t cudaMemset(void *ptr, int value, size_t bytes)
{
    return cudaMemsetAsync(ptr, value, bytes, NULL);
}
