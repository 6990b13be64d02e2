/* SPDX-License-Identifier: Apache-2.0 */
/* What the emulator's files share. One OS thread does everything; there is no locking. */
#pragma once

#include "cuda_runtime_api.h"
#include "emu.h"

#include <stdbool.h>
#include <stdint.h>

#define EMU_WARP        32
#define EMU_THREADS_MAX 1024

/* emu_block.c: one launch, all its blocks, to the end. Device memory is open meanwhile. */
struct emu_kernel {
    const char *name;
    void (*call)(void *closure); /* runs the kernel's body as the current thread */
    void *closure;               /* owned; freed by emu_kernel_free */
    void (*drop)(void *closure);
    int (*is_ready)(void *closure); /* NULL: always; waits for what is not this device's */
    struct emu_dim grid, block;
    size_t shared_bytes;
    bool is_whole; /* call(closure) runs all threads of all blocks */
};
void emu_kernel_run(const struct emu_kernel *kernel);

/* emu_memory.c. The host cannot access device memory except between open and close. */
void emu_memory_open(void);
void emu_memory_close(void);
bool emu_is_device(const void *ptr);
bool emu_is_pinned(const void *ptr);
/* The range lies in one live allocation of the device. */
bool emu_in_device(const void *ptr, size_t bytes);
void emu_memory_check(void); /* nothing wrote past the end of an allocation */

void emu_memory_size(size_t bytes);

/* emu_runtime.c */
cudaError_t emu_fail(cudaError_t error); /* remembers it for cudaGetLastError */
cudaError_t emu_ready(void);             /* cudaSuccess, or why there is no device */
bool emu_is_planted(const char *name);   /* for good: no_device, old_driver, no_opt_in */
size_t emu_shared_optin(void);           /* dynamic shared memory a block may ask for */

/* emu_queue.c: work, and what it waits for. An op runs once; the nodes of a graph become ops with each launch of it. */
struct emu_work {
    enum { EMU_EMPTY, EMU_KERNEL, EMU_COPY, EMU_SET } kind;
    union {
        struct emu_kernel kernel;
        struct {
            void *dst;
            const void *src;
            void *staged; /* owned copy of src, or NULL */
            size_t bytes;
        } copy;
        struct {
            void *ptr;
            int value;
            size_t bytes;
        } set;
        cudaGraph_t launched; /* EMU_EMPTY: the end of a launch, which holds the graph; or NULL */
    };
};
struct emu_op;
struct emu_op *emu_op_add(const struct emu_work *work, bool owns_work);
void emu_op_after(struct emu_op *op, struct emu_op *earlier); /* earlier may be NULL */
void emu_op_submit(struct emu_op *op);                        /* all its emu_op_after are told */
void emu_op_wait(struct emu_op *op); /* runs what it needs, and maybe more */
void emu_op_step(void);              /* runs one, if one can */
bool emu_op_done(const struct emu_op *op);
int64_t emu_op_ended_ns(const struct emu_op *op);
void emu_op_hold(struct emu_op *op);
void emu_op_drop(struct emu_op *op); /* NULL is allowed */
void emu_op_wait_all(void);
void emu_op_some(void); /* a call went by: the device may have done something */
void emu_work_free(struct emu_work *work);
void emu_queue_seed(uint64_t seed);

/* emu_stream.c */
cudaError_t emu_enqueue(struct emu_work *work, cudaStream_t stream, struct emu_op **ret_op);
cudaError_t emu_enqueue_and_wait(struct emu_work *work, cudaStream_t stream);
bool emu_stream_captures(cudaStream_t stream);
/* An op that is now the stream's last and that the caller submits. */
struct emu_op *emu_stream_replace_last(cudaStream_t stream, const struct emu_work *work);
bool emu_is_capturing(void); /* some stream is: calls that synchronise are then errors */
void emu_capture_break(void);
cudaError_t emu_drain(void);

/* emu_graph.c: a captured graph; nodes know the nodes they come after. */
int emu_graph_add(cudaGraph_t graph, struct emu_work *work, const int *after, int n_after);
cudaGraph_t emu_graph_new(void);
void emu_graph_drop(cudaGraph_t graph);
bool emu_graph_reaches_all(cudaGraph_t graph, const int *ends, int n_ends);

uint64_t emu_random(void);
static inline uint32_t emu_random_below(uint32_t n)
{
    return (uint32_t)(((emu_random() >> 32) * n) >> 32);
}

/* Reports the fault and where the current thread is, and aborts. */
_Noreturn void emu_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
