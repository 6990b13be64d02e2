/* SPDX-License-Identifier: Apache-2.0 */
/* Queued work. An op may run when everything before it has run; which of those runs next is drawn. */
#include "emu_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct emu_op {
    struct emu_work work;
    bool owns_work, is_done;
    int refs;
    int n_before; /* not done yet, and one until it is submitted */
    struct emu_op **after;
    int n_after, cap_after;
    int64_t ended_ns;
};

static struct emu_op **ready;
static int n_ready, cap_ready;
static enum emu_progress progress;
static uint64_t seed;
static bool is_running;

void emu_queue_seed(uint64_t new_seed)
{
    seed = new_seed;
}

void emu_progress(enum emu_progress how)
{
    progress = how;
}

void emu_work_free(struct emu_work *work)
{
    if (work->kind == EMU_KERNEL) {
        work->kernel.drop(work->kernel.closure);
    }
    if (work->kind == EMU_COPY) {
        free(work->copy.staged);
    }
    if (work->kind == EMU_EMPTY && work->launched != NULL) {
        emu_graph_drop(work->launched);
    }
}

static void grow(struct emu_op ***list, int n, int *cap)
{
    if (n == *cap) {
        *cap = *cap == 0 ? 8 : *cap * 2;
        *list = realloc(*list, (size_t)*cap * sizeof(**list));
        if (*list == NULL) {
            emu_die("out of memory");
        }
    }
}

struct emu_op *emu_op_add(const struct emu_work *work, bool owns_work)
{
    struct emu_op *op = calloc(1, sizeof(*op));
    if (op == NULL) {
        emu_die("out of memory");
    }
    op->work = *work;
    op->owns_work = owns_work;
    op->n_before = 1;
    op->refs = 2; /* the caller's and the queue's */
    return op;
}

void emu_op_hold(struct emu_op *op)
{
    op->refs++;
}

void emu_op_drop(struct emu_op *op)
{
    if (op != NULL && --op->refs == 0) {
        free(op->after);
        free(op);
    }
}

bool emu_op_done(const struct emu_op *op)
{
    return op->is_done;
}

int64_t emu_op_ended_ns(const struct emu_op *op)
{
    return op->ended_ns;
}

void emu_op_after(struct emu_op *op, struct emu_op *earlier)
{
    if (earlier == NULL || earlier->is_done) {
        return;
    }
    grow(&earlier->after, earlier->n_after, &earlier->cap_after);
    earlier->after[earlier->n_after++] = op;
    op->n_before++;
}

static void one_less(struct emu_op *op)
{
    if (--op->n_before == 0) {
        grow(&ready, n_ready, &cap_ready);
        ready[n_ready++] = op;
    }
}

static void run_work(const struct emu_work *work)
{
    switch (work->kind) {
    case EMU_KERNEL:
        emu_memory_open();
        emu_kernel_run(&work->kernel);
        break;
    case EMU_COPY:
        emu_memory_open();
        memmove(work->copy.dst, work->copy.src, work->copy.bytes);
        break;
    case EMU_SET:
        emu_memory_open();
        memset(work->set.ptr, work->set.value, work->set.bytes);
        break;
    case EMU_EMPTY:
    default:
        break;
    }
}

static bool may_run(const struct emu_op *op)
{
    const struct emu_kernel *kernel = &op->work.kernel;
    return op->work.kind != EMU_KERNEL || kernel->is_ready == NULL ||
           kernel->is_ready(kernel->closure) != 0;
}

/* False: all that could run wait for other devices. */
static bool run_one(void)
{
    if (is_running) {
        emu_die("a host function called the runtime");
    }
    uint32_t n_tried = 0;
    uint32_t at = n_ready > 0 ? emu_random_below((uint32_t)n_ready) : 0;
    while (n_tried < (uint32_t)n_ready && !may_run(ready[at])) {
        at = (at + 1) % (uint32_t)n_ready;
        n_tried++;
    }
    if (n_tried == (uint32_t)n_ready) {
        return false;
    }
    struct emu_op *op = ready[at];
    ready[at] = ready[--n_ready];
    is_running = true;
    run_work(&op->work);
    is_running = false;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    op->ended_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    op->is_done = true;
    if (op->owns_work) {
        emu_work_free(&op->work);
    }
    for (int i = 0; i < op->n_after; i++) {
        one_less(op->after[i]);
    }
    emu_op_drop(op);
    return true;
}

static void nap(void)
{
    const struct timespec some = {.tv_nsec = 100000};
    (void)nanosleep(&some, NULL);
}

void emu_op_wait(struct emu_op *op)
{
    while (!op->is_done) {
        if (n_ready == 0) {
            emu_die("waits for work that nothing will start");
        }
        if (!run_one()) {
            nap();
        }
    }
    emu_memory_close();
}

void emu_op_wait_all(void)
{
    while (n_ready > 0) {
        if (!run_one()) {
            nap();
        }
    }
    emu_memory_close();
}

void emu_op_step(void)
{
    if (run_one()) {
        emu_memory_close();
    }
}

void emu_op_some(void)
{
    enum emu_progress how = progress != EMU_BY_SEED ? progress
                            : seed % 3 == 0         ? EMU_EAGER
                            : seed % 3 == 1         ? EMU_LATE
                                                    : EMU_RANDOM;
    if (how == EMU_EAGER) {
        while (run_one()) {
        }
        emu_memory_close();
    }
    if (how == EMU_RANDOM) {
        for (uint32_t n = emu_random_below(4); n > 0 && run_one(); n--) {
        }
        emu_memory_close();
    }
}

void emu_op_submit(struct emu_op *op)
{
    one_less(op);
    emu_op_some();
}
