/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the blocks of a kernel, one after another in random order. Each thread is a fibre that runs until it waits (barrier,
   warp collective) or returns; the next to run is drawn from all that can. A thread that never waits needs no switch: the
   fibre that ran it takes the next new thread. */
#include "emu_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu_fibre.h"

enum state { NEW, READY, AT_BARRIER, AT_WARP, GONE };

struct thread {
    enum state state;
    struct emu_fibre *fibre; /* NULL before it began */
    const char *file;        /* of the barrier it waits at */
    int line;
    int value;
    unsigned mask; /* of the warp call it waits in */
    const char *what;
    void (*fn)(void *const lanes[32]);
    void *mine;
};

struct emu_dim emu_thread_idx, emu_block_idx, emu_block_dim, emu_grid_dim;
unsigned char *emu_shared;

static struct thread threads[EMU_THREADS_MAX];
static uint32_t ready[EMU_THREADS_MAX];
static uint32_t n_threads, n_ready, n_live, n_at_barrier, current;
static int barrier_result;
static const struct emu_kernel *running;
static struct emu_fibre *host; /* where the block was started from */
static uint64_t n_waits;       /* at barriers, and of lanes for each other */

/* Shared variables of all kernels: emu.ld gathers them. */
extern unsigned char __start_emu_shared_memory[], __stop_emu_shared_memory[];
/* Makes the section exist even if it is empty. */
__asm__(".pushsection emu_shared_memory,\"aw\",@nobits\n.balign 8\n.zero 8\n.popsection");

void emu_die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fprintf(stderr, "cuda_emu: ");
    (void)vfprintf(stderr, format, list);
    va_end(list);
    if (running != NULL) {
        (void)fprintf(stderr,
                      "\ncuda_emu: in %s, block (%u, %u, %u) of (%u, %u, %u), thread (%u, %u, %u) "
                      "of (%u, %u, %u)",
                      running->name, emu_block_idx.x, emu_block_idx.y, emu_block_idx.z,
                      emu_grid_dim.x, emu_grid_dim.y, emu_grid_dim.z, emu_thread_idx.x,
                      emu_thread_idx.y, emu_thread_idx.z, emu_block_dim.x, emu_block_dim.y,
                      emu_block_dim.z);
    }
    (void)fprintf(stderr, "\n");
    (void)fflush(stderr);
    abort();
}

void emu_trap(const char *what)
{
    emu_die("%s", what);
}

static void make_ready(uint32_t idx)
{
    threads[idx].state = READY;
    ready[n_ready++] = idx;
}

static void set_current(uint32_t idx)
{
    current = idx;
    emu_thread_idx.x = idx % emu_block_dim.x;
    emu_thread_idx.y = idx / emu_block_dim.x % emu_block_dim.y;
    emu_thread_idx.z = idx / (emu_block_dim.x * emu_block_dim.y);
}

/* No thread can run: either the barrier is complete or the kernel hangs. */
static void release_barrier(void)
{
    const struct thread *first = NULL;
    bool is_any = false;
    for (uint32_t i = 0; i < n_threads; i++) {
        const struct thread *t = &threads[i];
        if (t->state == AT_WARP) {
            set_current(i);
            emu_die("hangs: lane %u waits in %s, mask %08x, for lanes that do not come",
                    i % EMU_WARP, t->what, t->mask);
        }
        if (t->state != AT_BARRIER) {
            continue;
        }
        if (first == NULL) {
            first = t;
        }
        if (t->line != first->line || strcmp(t->file, first->file) != 0) {
            set_current(i);
            emu_die("threads of one block wait at different barriers: %s:%d and %s:%d", first->file,
                    first->line, t->file, t->line);
        }
        is_any |= t->value != 0;
    }
    if (first == NULL || n_at_barrier != n_live) {
        emu_die("hangs: %u of %u live threads are at a barrier", n_at_barrier, n_live);
    }
    barrier_result = is_any;
    n_at_barrier = 0;
    n_waits++;
    for (uint32_t i = 0; i < n_threads; i++) {
        if (threads[i].state == AT_BARRIER) {
            make_ready(i);
        }
    }
}

/* The next thread, including those that have not begun. */
static uint32_t draw(void)
{
    if (n_ready == 0) {
        release_barrier();
    }
    uint32_t at = emu_random_below(n_ready);
    uint32_t idx = ready[at];
    ready[at] = ready[--n_ready];
    return idx;
}

/* A fibre runs new threads until it is told to continue one that waited. */
static void fibre_main(void)
{
    for (;;) {
        threads[current].fibre = emu_fibre_self();
        running->call(running->closure);
        threads[current].state = GONE;
        n_live--;
        if (n_live == 0) {
            emu_fibre_leave(host);
            continue;
        }
        uint32_t next = draw();
        set_current(next);
        if (threads[next].fibre != NULL) {
            emu_fibre_leave(threads[next].fibre);
            /* Reused for a new thread. */
        }
    }
}

/* The current thread has recorded what it waits for; runs others until it is ready again. */
static void wait_turn(void)
{
    uint32_t me = current;
    uint32_t next = draw();
    if (next != me) {
        set_current(next);
        struct emu_fibre *fibre = threads[next].fibre;
        emu_fibre_switch(fibre != NULL ? fibre : emu_fibre_take(fibre_main));
    }
    /* The switch has made this thread the current one. */
}

int emu_barrier(const char *file, int line, int value)
{
    struct thread *t = &threads[current];
    t->state = AT_BARRIER;
    t->file = file;
    t->line = line;
    t->value = value;
    n_at_barrier++;
    wait_turn();
    return barrier_result;
}

unsigned emu_lane(void)
{
    return current % EMU_WARP;
}

void emu_warp(unsigned mask, const char *what, void (*fn)(void *const lanes[32]), void *mine)
{
    uint32_t first = current / EMU_WARP * EMU_WARP;
    struct thread *warp = &threads[first];
    void *lanes[EMU_WARP] = {NULL};
    if ((mask >> (current - first) & 1) == 0) {
        emu_die("%s: mask %08x does not hold the calling lane %u", what, mask, current - first);
    }
    threads[current].mask = mask;
    threads[current].what = what;
    threads[current].fn = fn;
    threads[current].mine = mine;
    for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) == 0) {
            continue;
        }
        const struct thread *t = &warp[lane];
        if (first + lane >= n_threads || t->state == GONE) {
            emu_die("%s: mask %08x names lane %u, which is not there", what, mask, lane);
        }
        if (first + lane != current && t->state != AT_WARP) {
            threads[current].state = AT_WARP;
            wait_turn();
            return;
        }
        if (t->mask != mask || t->fn != fn || t->what != what) {
            emu_die("%s with mask %08x meets lane %u in %s with mask %08x", what, mask, lane,
                    t->what, t->mask);
        }
        lanes[lane] = t->mine;
    }
    fn(lanes);
    n_waits++;
    for (uint32_t lane = 0; lane < EMU_WARP; lane++) {
        if ((mask >> lane & 1) != 0 && first + lane != current) {
            make_ready(first + lane);
        }
    }
    make_ready(current);
    wait_turn();
}

/* 0xff: NaN in every floating type, -1 in the others. */
static void poison_shared(size_t dynamic_bytes)
{
    emu_fibre_poison(__start_emu_shared_memory,
                     (size_t)(__stop_emu_shared_memory - __start_emu_shared_memory));
    if (dynamic_bytes > 0) {
        memset(emu_shared, 0xff, dynamic_bytes);
    }
}

/* Shared memory of threads that never wait is each thread's own: it need not be poisoned again for every block. */
static void begin_shared(bool is_first, uint64_t waits_before)
{
    if (is_first || n_waits != waits_before) {
        poison_shared(running->shared_bytes);
    }
}

static void run_block(uint64_t idx)
{
    const struct emu_dim *grid = &running->grid;
    emu_block_idx.x = (unsigned)(idx % grid->x);
    emu_block_idx.y = (unsigned)(idx / grid->x % grid->y);
    emu_block_idx.z = (unsigned)(idx / grid->x / grid->y);
    n_live = n_threads;
    n_ready = n_threads;
    n_at_barrier = 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        threads[i].state = NEW;
        threads[i].fibre = NULL;
        ready[i] = i;
    }
    set_current(draw());
    host = emu_fibre_self();
    emu_fibre_switch(emu_fibre_take(fibre_main));
}

void emu_kernel_run(const struct emu_kernel *kernel)
{
    if (kernel->is_whole) {
        kernel->call(kernel->closure);
        return;
    }
    const struct emu_dim *grid = &kernel->grid;
    uint64_t n_blocks = (uint64_t)grid->x * grid->y * grid->z;
    uint32_t *order = malloc(n_blocks * sizeof(*order));
    void *shared = NULL;
    if (order == NULL || n_blocks > UINT32_MAX ||
        (kernel->shared_bytes > 0 && posix_memalign(&shared, 1024, kernel->shared_bytes) != 0)) {
        emu_die("%s: a grid of %llu blocks is too large to emulate", kernel->name,
                (unsigned long long)n_blocks);
    }
    running = kernel;
    emu_shared = shared;
    emu_grid_dim = kernel->grid;
    emu_block_dim = kernel->block;
    n_threads = kernel->block.x * kernel->block.y * kernel->block.z;
    for (uint32_t i = 0; i < n_blocks; i++) {
        uint32_t at = emu_random_below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    uint64_t waits = n_waits;
    for (uint32_t i = 0; i < n_blocks; i++) {
        begin_shared(i == 0, waits);
        run_block(order[i]);
    }
    running = NULL;
    emu_shared = NULL;
    free(shared);
    free(order);
}
