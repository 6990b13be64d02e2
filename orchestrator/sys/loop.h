/* SPDX-License-Identifier: Apache-2.0 */
/* The one loop: descriptors, timers and signals on poll(2). One thread owns it and all state that its callbacks touch.
   Callbacks note what became ready and return; the caller of loop_once then acts on it (STYLE.md section 9). A callback may
   add and drop descriptors and timers, its own included. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

#include <signal.h>

#define LOOP_FDS_MAX    4096
#define LOOP_TIMERS_MAX 4096

enum step { STEP_DONE, STEP_AGAIN, STEP_FAIL };

/* return step_fail(err_set(err, ...)); */
static inline enum step step_fail(int failed UNUSED)
{
    return STEP_FAIL;
}

typedef void (*loop_fd_fn)(void *ctx, int fd, short events);
typedef void (*loop_timer_fn)(void *ctx);
typedef void (*loop_signal_fn)(void *ctx, int signal_no);

struct loop_fd;
struct loop_timer;

struct loop {
    struct clock_src clock;
    struct loop_fd *fds; /* owned; fd -1 is a free row */
    size_t n_fds;
    struct loop_timer *timers; /* owned; id 0 is a free row */
    size_t n_timers;
    uint64_t next_timer_id;
    int signal_fd; /* -1: signals are not caught */
    sigset_t old_mask;
    loop_signal_fn on_signal;
    void *signal_ctx;
};

#define LOOP_EMPTY ((struct loop){.signal_fd = -1})

void loop_init(struct loop *loop, struct clock_src clock);
/* Restores the signal mask; borrowed descriptors stay open. */
void loop_release(struct loop *loop);
CLEANUP_BY(loop, struct loop, loop_release);

/* The descriptor stays the caller's. events: POLLIN, POLLOUT. Hang-up and error are always reported. */
MUST_CHECK int loop_watch(struct loop *loop, int fd, short events, loop_fd_fn fn, void *ctx,
                          struct err *err);
void loop_unwatch(struct loop *loop, int fd);

/* Fires once, at or after due_ns of the loop's monotonic clock. The id is never 0. */
MUST_CHECK int loop_timer_add(struct loop *loop, int64_t due_ns, loop_timer_fn fn, void *ctx,
                              uint64_t *ret_id, struct err *err);
void loop_timer_drop(struct loop *loop, uint64_t id); /* 0, or one that fired: nothing to do */

/* From here on SIGINT, SIGTERM and SIGHUP come to fn, from the loop, instead of ending the process. */
MUST_CHECK int loop_catch_signals(struct loop *loop, loop_signal_fn fn, void *ctx, struct err *err);

/* Waits at most max_wait_ns for something, then runs the callbacks of all that is ready. */
MUST_CHECK int loop_once(struct loop *loop, int64_t max_wait_ns, struct err *err);

int64_t loop_now_ns(const struct loop *loop);
