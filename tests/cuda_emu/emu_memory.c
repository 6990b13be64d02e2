/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: each allocation in pages of its own followed by a protected page, filled with NaN, and inaccessible to
   the host while no queued work runs. Addresses are not reused, so that a stale pointer faults. */
#include "emu_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, bytes)   ((void)(ptr), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, bytes) ((void)(ptr), (void)(bytes))
#endif

#define RESERVE_BYTES   ((size_t)256 << 30)
#define PAGE_BYTES      ((size_t)4096)
#define ALIGN_BYTES     ((size_t)256) /* what cudaMalloc promises */
#define POISON          0xff          /* NaN in every floating type */
#define CANARY          0xa5
#define CLOSE_MAX_BYTES ((size_t)8 << 20)
#define CLOSE_ONE_IN    512

struct block {
    unsigned char *pages, *ptr;
    size_t pages_bytes, bytes;
    bool is_pinned; /* the host's, by cudaMallocHost */
    void *shadow;   /* owned; see emu_memory_range */
};

static struct block *blocks;
static size_t n_blocks, cap_blocks;
static unsigned char *reserve;
static size_t reserved, used_bytes;
static size_t total_bytes; /* 0: not asked for yet */
static bool is_open;

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

void emu_memory_size(size_t bytes)
{
    total_bytes = bytes;
}

static size_t device_bytes(void)
{
    if (total_bytes == 0) {
        const char *text = getenv("REPERF_EMU_MEMORY");
        total_bytes = text != NULL ? (size_t)strtoull(text, NULL, 10) : (size_t)2 << 30;
    }
    return total_bytes;
}

static struct block *add_block(void)
{
    if (n_blocks == cap_blocks) {
        cap_blocks = cap_blocks == 0 ? 64 : cap_blocks * 2;
        blocks = realloc(blocks, cap_blocks * sizeof(*blocks));
        if (blocks == NULL) {
            emu_die("out of memory");
        }
    }
    return &blocks[n_blocks++];
}

static struct block *find(const void *ptr)
{
    const unsigned char *at = ptr;
    for (size_t i = 0; i < n_blocks; i++) {
        if (at >= blocks[i].ptr && at < blocks[i].ptr + blocks[i].bytes) {
            return &blocks[i];
        }
    }
    return NULL;
}

bool emu_is_device(const void *ptr)
{
    const unsigned char *at = ptr;
    return reserve != NULL && at >= reserve && at < reserve + RESERVE_BYTES;
}

bool emu_in_device(const void *ptr, size_t bytes)
{
    const struct block *block = find(ptr);
    return block != NULL && !block->is_pinned &&
           bytes <= (size_t)(block->ptr + block->bytes - (const unsigned char *)ptr);
}

int emu_memory_range(const void *ptr, void **ret_ptr, size_t *ret_bytes, void ***ret_shadow)
{
    struct block *block = find(ptr);
    if (block == NULL || block->is_pinned) {
        return 0;
    }
    *ret_ptr = block->ptr;
    *ret_bytes = block->bytes;
    *ret_shadow = &block->shadow;
    return 1;
}

bool emu_is_pinned(const void *ptr)
{
    const struct block *block = find(ptr);
    return block != NULL && block->is_pinned;
}

static void protect(const struct block *block, int how)
{
    if (mprotect(block->pages, block->pages_bytes, how) != 0) {
        emu_die("mprotect of device memory failed");
    }
}

void emu_memory_open(void)
{
    if (!is_open) {
        for (size_t i = 0; i < n_blocks; i++) {
            if (!blocks[i].is_pinned) {
                protect(&blocks[i], PROT_READ | PROT_WRITE);
            }
        }
    }
    is_open = true;
}

static void check_block(const struct block *block)
{
    const unsigned char *end = block->pages + block->pages_bytes;
    for (const unsigned char *at = block->ptr + block->bytes; at < end; at++) {
        if (*at != CANARY) {
            emu_die("something wrote %zu bytes past the end of an allocation of %zu bytes",
                    (size_t)(at - block->ptr) - block->bytes, block->bytes);
        }
    }
    for (const unsigned char *at = block->pages; at < block->ptr; at++) {
        if (*at != CANARY) {
            emu_die("something wrote %zu bytes before an allocation of %zu bytes",
                    (size_t)(block->ptr - at), block->bytes);
        }
    }
}

void emu_memory_check(void)
{
#ifndef __SANITIZE_ADDRESS__
    for (size_t i = 0; i < n_blocks; i++) {
        if (!blocks[i].is_pinned) {
            check_block(&blocks[i]);
        }
    }
#else
    (void)check_block; /* ASan has seen it already */
#endif
}

/* Closing changes the protection of every page: with much memory it is done only now and then. */
static bool is_worth_closing(void)
{
    static unsigned n_asked;
    return used_bytes <= CLOSE_MAX_BYTES || n_asked++ % CLOSE_ONE_IN == 0;
}

void emu_memory_close(void)
{
    if (!is_open || !is_worth_closing()) {
        return;
    }
    emu_memory_check();
    for (size_t i = 0; i < n_blocks; i++) {
        if (!blocks[i].is_pinned) {
            protect(&blocks[i], PROT_NONE);
        }
    }
    is_open = false;
}

static cudaError_t may_allocate(const char *name, void **ptr)
{
    cudaError_t error = emu_ready();
    if (error != cudaSuccess) {
        return error;
    }
    if (emu_is_capturing()) {
        emu_capture_break();
        return cudaErrorStreamCaptureUnsupported;
    }
    return ptr == NULL       ? cudaErrorInvalidValue
           : emu_fault(name) ? cudaErrorMemoryAllocation
                             : cudaSuccess;
}

cudaError_t cudaMalloc(void **ptr, size_t bytes)
{
    cudaError_t error = may_allocate("cudaMalloc", ptr);
    if (error == cudaSuccess && bytes > device_bytes() - used_bytes) {
        error = cudaErrorMemoryAllocation;
    }
    if (error != cudaSuccess) {
        return emu_fail(error);
    }
    if (bytes == 0) {
        *ptr = NULL;
        return cudaSuccess;
    }
    if (reserve == NULL) {
        reserve = mmap(NULL, RESERVE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
        if (reserve == MAP_FAILED) {
            emu_die("no address space for device memory");
        }
    }
    size_t pages_bytes = round_up(bytes, PAGE_BYTES);
    if (pages_bytes + PAGE_BYTES > RESERVE_BYTES - reserved) {
        emu_die("the address space for device memory is used up");
    }
    struct block *block = add_block();
    *block = (struct block){.pages = reserve + reserved,
                            .pages_bytes = pages_bytes,
                            .ptr = reserve + reserved + pages_bytes - round_up(bytes, ALIGN_BYTES),
                            .bytes = bytes};
    reserved += pages_bytes + PAGE_BYTES;
    protect(block, PROT_READ | PROT_WRITE);
    memset(block->pages, CANARY, pages_bytes);
    memset(block->ptr, POISON, bytes);
    ASAN_POISON_MEMORY_REGION(block->pages, pages_bytes);
    ASAN_UNPOISON_MEMORY_REGION(block->ptr, bytes);
    if (!is_open) {
        protect(block, PROT_NONE);
    }
    used_bytes += bytes;
    *ptr = block->ptr;
    return cudaSuccess;
}

static cudaError_t release(void *ptr, bool is_pinned)
{
    if (ptr == NULL) {
        return cudaSuccess;
    }
    struct block *block = find(ptr);
    if (block == NULL || block->ptr != ptr || block->is_pinned != is_pinned) {
        return emu_fail(cudaErrorInvalidValue);
    }
    cudaError_t error = emu_drain();
    if (error != cudaSuccess) {
        return error;
    }
    free(block->shadow);
    if (is_pinned) {
        free(ptr);
    } else {
        used_bytes -= block->bytes;
        (void)madvise(block->pages, block->pages_bytes, MADV_DONTNEED);
    }
    *block = blocks[--n_blocks];
    return cudaSuccess;
}

cudaError_t cudaFree(void *ptr)
{
    cudaError_t error = emu_ready();
    return error != cudaSuccess ? emu_fail(error) : release(ptr, false);
}

cudaError_t cudaMallocHost(void **ptr, size_t bytes)
{
    cudaError_t error = may_allocate("cudaMallocHost", ptr);
    void *made = NULL;
    if (error == cudaSuccess && posix_memalign(&made, PAGE_BYTES, bytes > 0 ? bytes : 1) != 0) {
        error = cudaErrorMemoryAllocation;
    }
    if (error != cudaSuccess) {
        return emu_fail(error);
    }
    memset(made, POISON, bytes);
    *add_block() = (struct block){.ptr = made, .bytes = bytes, .is_pinned = true};
    *ptr = made;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *ptr)
{
    return release(ptr, true);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *ret_total_bytes)
{
    cudaError_t error = emu_ready();
    if (error != cudaSuccess) {
        return emu_fail(error);
    }
    *ret_total_bytes = device_bytes();
    *free_bytes = device_bytes() - used_bytes;
    return cudaSuccess;
}

size_t emu_allocated_bytes(void)
{
    return used_bytes;
}
