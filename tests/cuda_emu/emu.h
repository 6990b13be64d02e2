/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's own interface: what kernels are compiled against beneath the CUDA names, and the switches for tests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emu_dim {
    unsigned x, y, z;
};

/* --- switches ----------------------------------------------------------------------------------- */
/* Everything that a device may order freely is ordered by this seed: threads, blocks, streams. Start: REPERF_EMU_SEED or 1. */
void emu_seed(uint64_t seed);
/* When queued work runs. Start: by the seed, changing with it. */
enum emu_progress {
    EMU_BY_SEED,
    EMU_LATE,   /* only when somebody waits for it */
    EMU_EAGER,  /* at once */
    EMU_RANDOM, /* some of it with each call */
};
void emu_progress(enum emu_progress progress);
/* The nth next call (1: the next) named so fails as it does in reality: cudaMalloc, cudaMallocHost, launch, memcpy.
   REPERF_EMU_FAULT=NAME:NTH[,...] plants the same; names of their own are no_device, old_driver and no_opt_in. */
void emu_plant(const char *name, int nth);
int emu_fault(
    const char *name);  /* for what is emulated elsewhere: is a planted fault of this name due? */
void emu_unplant(void); /* all of them */
/* The device that the runtime reports, and as many others like it as REPERF_EMU_DEVICES says. Start: compute capability 9.0 (REPERF_EMU_CC=7.0), 8 GiB (REPERF_EMU_MEMORY, bytes). */
void emu_device(int major, int minor, size_t memory_bytes);

size_t emu_allocated_bytes(void);
/* --- the basis of cuda_runtime.h ---------------------------------------------------------------- */
extern struct emu_dim emu_thread_idx, emu_block_idx, emu_block_dim, emu_grid_dim;
extern unsigned char *emu_shared; /* dynamic shared memory of the running block */

/* Enqueues; call(closure) runs the body as the current thread; drop(closure) frees it. */
void emu_launch(const void *function, const char *name, const struct emu_dim *grid,
                const struct emu_dim *block, size_t shared_bytes, void *stream,
                void (*call)(void *), void *closure, void (*drop)(void *));

/* For what several devices do together: the work also waits until is_ready(closure) is not 0. Nothing else waits for that, except
   whoever waits for the work. */
void emu_enqueue_when(const char *name, void *stream, int (*is_ready)(void *), void (*call)(void *),
                      void *closure, void (*drop)(void *));

/* The same for a grid that call(closure) runs as a whole; shared_bytes is all of a block's. 0, or the runtime's error. */
int emu_launch_grid(const void *function, const char *name, const struct emu_dim *grid,
                    const struct emu_dim *block, size_t shared_bytes, void *stream,
                    void (*call)(void *), void *closure, void (*drop)(void *));

/* The live allocation of the device that contains ptr; *ret_shadow is for the checker of accesses, and freed with it. */
int emu_memory_range(const void *ptr, void **ret_ptr, size_t *ret_bytes, void ***ret_shadow);

/* All live threads of the block meet; whether any `value` is not 0 is returned. */
int emu_barrier(const char *file, int line, int value);

/* The lanes of `mask` meet. When the last arrives, fn gets each lane's value (NULL for lanes outside mask). */
void emu_warp(unsigned mask, const char *what, void (*fn)(void *const lanes[32]), void *mine);
unsigned emu_lane(void);
void emu_trap(const char *what) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
