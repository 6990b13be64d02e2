/* SPDX-License-Identifier: Apache-2.0 */
/* Some threads for work that blocks: hashing, zstd, getaddrinfo, fsync (STYLE.md section 9). A job is a function and its
   argument. From pool_submit until the job is done the argument belongs to the job alone; the job touches nothing else. All
   functions here are for the one thread that owns the pool. Signals stay with that thread. */
#pragma once

#include <stdatomic.h>

#include "base/lanes.h"
#include "sys/loop.h"

#define POOL_THREADS_MIN 1
#define POOL_THREADS_MAX 128 /* one a core at most; I/O needs 2 to 4 */

struct pool;
struct pool_job;

/* 0, or -1 with *err filled. A long job looks at *is_cancelled now and then and ends early with ERR_INTERRUPTED. */
typedef int (*pool_fn)(void *arg, const atomic_bool *is_cancelled, struct err *err);

struct pool_job {
    pool_fn fn;
    void *arg; /* borrowed */
    /* The pool's own from here on. */
    struct pool_job *next;
    int result;
    struct err err;
    bool is_done;
};

MUST_CHECK int pool_new(size_t n_threads, struct pool **ret_pool, struct err *err);
/* Sets the flag, drops jobs that have not begun, waits for those that have. NULL is fine. */
void pool_free(struct pool *pool);
CLEANUP_POINTER(pool, struct pool, pool_free);
/* job is borrowed until pool_wait or pool_poll says that it is done; jobs begin in order. */
void pool_submit(struct pool *pool, struct pool_job *job);
/* Blocks until the job is done; gives its result and error. */
MUST_CHECK int pool_wait(struct pool *pool, struct pool_job *job, struct err *err);
bool pool_is_done(struct pool *pool, const struct pool_job *job);
/* Many things, each by `each` on one of n_threads of the pool. Blocks until all are done, one has failed (its error is the
   result), or it was stopped, which is asked ten times a second: ERR_INTERRUPTED. is_stopped: the others may end early.
   on_tick may be NULL. */
struct pool_many {
    struct pool *pool;
    size_t n_threads, n;
    int (*each)(void *ctx, size_t idx, const atomic_bool *is_stopped, struct err *err);
    void (*on_tick)(void *ctx, size_t n_begun);
    void *ctx;
};
MUST_CHECK int pool_many(const struct pool_many *many, struct err *err);
/* The end of a job ends the loop's wait; counted, so that several users of one pool may ask for it. */
MUST_CHECK int pool_attach(struct pool *pool, struct loop *loop, struct err *err);
void pool_detach(struct pool *pool, struct loop *loop);

/* One blocking call of unknown length (a resolver, an agent) in a thread of its own, which may be left behind when it hangs:
   so the argument is the task's, and release ends it in the caller's thread or in the other, whichever has done with it
   last. */
struct task;
struct task_spec {
    pool_fn fn; /* *is_cancelled: it was left behind */
    void *arg;
    void (*release)(void *arg);
};
/* The end of it ends the loop's wait. On failure the argument was released. */
MUST_CHECK int task_start(struct loop *loop, const struct task_spec *spec, struct task **ret_task,
                          struct err *err);
/* 1: done, 0: not yet, -1: it failed. */
MUST_CHECK int task_result(struct task *task, struct err *err);
/* Waits a moment for one that is about to end. NULL is fine. */
void task_leave(struct task *task);

/* Threads for the rooms that have none (base/lanes.h): a lane a core. */
struct lanes pool_lanes(void);

/* A library that serves one thread at a time is called in turns:
       CLEANUP(library_turn) struct library_turn turn = library_turn_take(); */
struct library_turn {
    bool is_taken;
};
struct library_turn library_turn_take(void);
void library_turn_give(struct library_turn *turn);
CLEANUP_BY(library_turn, struct library_turn, library_turn_give);
