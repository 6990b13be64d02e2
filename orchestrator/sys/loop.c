/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/loop.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/arena.h"

#define WAIT_MAX_NS (60 * NS_PER_S)

struct loop_fd {
    int fd;
    short events;
    loop_fd_fn fn;
    void *ctx;
};

struct loop_timer {
    uint64_t id;
    int64_t due_ns;
    loop_timer_fn fn;
    void *ctx;
};

void loop_init(struct loop *loop, struct clock_src clock)
{
    *loop = LOOP_EMPTY;
    loop->clock = clock;
    loop->next_timer_id = 1;
}

void loop_release(struct loop *loop)
{
    if (loop->signal_fd >= 0) {
        close(loop->signal_fd);
        sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
    }
    free(loop->fds);
    free(loop->timers);
    *loop = LOOP_EMPTY;
}

int64_t loop_now_ns(const struct loop *loop)
{
    return loop->clock.mono_ns(loop->clock.ctx);
}

int loop_watch(struct loop *loop, int fd, short events, loop_fd_fn fn, void *ctx, struct err *err)
{
    struct loop_fd row = {fd, events, fn, ctx};
    ASSERT(fd >= 0);
    for (size_t idx = 0; idx < loop->n_fds; idx++) {
        if (loop->fds[idx].fd < 0) {
            loop->fds[idx] = row;
            return 0;
        }
    }
    if (loop->n_fds >= LOOP_FDS_MAX) {
        return err_set(err, ERR_INTERNAL, "loop: more than %d descriptors", LOOP_FDS_MAX);
    }
    loop->fds = xrealloc(loop->fds, (loop->n_fds + 1) * sizeof(row));
    loop->fds[loop->n_fds++] = row;
    return 0;
}

void loop_unwatch(struct loop *loop, int fd)
{
    for (size_t idx = 0; fd >= 0 && idx < loop->n_fds; idx++) {
        if (loop->fds[idx].fd == fd) {
            loop->fds[idx].fd = -1;
        }
    }
}

int loop_timer_add(struct loop *loop, int64_t due_ns, loop_timer_fn fn, void *ctx, uint64_t *ret_id,
                   struct err *err)
{
    struct loop_timer row = {loop->next_timer_id, due_ns, fn, ctx};
    size_t idx = 0;
    while (idx < loop->n_timers && loop->timers[idx].id) {
        idx++;
    }
    if (idx >= LOOP_TIMERS_MAX) {
        return err_set(err, ERR_INTERNAL, "loop: more than %d timers", LOOP_TIMERS_MAX);
    }
    if (idx == loop->n_timers) {
        loop->timers = xrealloc(loop->timers, (idx + 1) * sizeof(row));
        loop->n_timers++;
    }
    loop->timers[idx] = row;
    *ret_id = loop->next_timer_id++;
    return 0;
}

void loop_timer_drop(struct loop *loop, uint64_t id)
{
    for (size_t idx = 0; id && idx < loop->n_timers; idx++) {
        if (loop->timers[idx].id == id) {
            loop->timers[idx].id = 0;
        }
    }
}

int loop_catch_signals(struct loop *loop, loop_signal_fn fn, void *ctx, struct err *err)
{
    sigset_t caught;
    ASSERT(loop->signal_fd < 0);
    sigemptyset(&caught);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    sigaddset(&caught, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &caught, &loop->old_mask) < 0) {
        return err_set(err, ERR_INTERNAL, "sigprocmask: %s", err_errno_text(errno));
    }
    loop->signal_fd = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (loop->signal_fd < 0) {
        int saved = errno;
        sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
        return err_set(err, ERR_INTERNAL, "signalfd: %s", err_errno_text(saved));
    }
    loop->on_signal = fn;
    loop->signal_ctx = ctx;
    return 0;
}

static void take_signals(struct loop *loop)
{
    struct signalfd_siginfo info;
    while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        loop->on_signal(loop->signal_ctx, (int)info.ssi_signo);
    }
}

static void fire_timers(struct loop *loop)
{
    int64_t now_ns = loop_now_ns(loop);
    for (size_t idx = 0; idx < loop->n_timers; idx++) {
        struct loop_timer due = loop->timers[idx]; /* the callback may reuse the row */
        if (due.id && due.due_ns <= now_ns) {
            loop->timers[idx].id = 0;
            due.fn(due.ctx);
        }
    }
}

static int wait_ms(const struct loop *loop, int64_t max_wait_ns)
{
    int64_t now_ns = loop_now_ns(loop);
    int64_t left_ns = max_wait_ns > WAIT_MAX_NS ? WAIT_MAX_NS : max_wait_ns;
    for (size_t idx = 0; idx < loop->n_timers; idx++) {
        const struct loop_timer *timer = &loop->timers[idx];
        if (timer->id && timer->due_ns - now_ns < left_ns) {
            left_ns = timer->due_ns - now_ns;
        }
    }
    /* Rounded up, so that a timer due in 0.4 ms is not a busy loop. */
    return left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

static void dispatch(struct loop *loop, const struct pollfd *polled, size_t n_polled)
{
    for (size_t idx = 0; idx < n_polled; idx++) {
        if (!polled[idx].revents || polled[idx].fd < 0) {
            continue;
        }
        if (polled[idx].fd == loop->signal_fd) {
            take_signals(loop);
            continue;
        }
        /* An earlier callback may have dropped this descriptor. */
        for (size_t row = 0; row < loop->n_fds; row++) {
            if (loop->fds[row].fd == polled[idx].fd) {
                struct loop_fd ready = loop->fds[row];
                ready.fn(ready.ctx, ready.fd, polled[idx].revents);
                break;
            }
        }
    }
}

int loop_once(struct loop *loop, int64_t max_wait_ns, struct err *err)
{
    size_t n_polled = 0;
    struct pollfd *polled CLEANUP(free) = xcalloc(loop->n_fds + 1, sizeof(*polled));
    for (size_t idx = 0; idx < loop->n_fds; idx++) {
        if (loop->fds[idx].fd >= 0) {
            polled[n_polled++] =
                (struct pollfd){.fd = loop->fds[idx].fd, .events = loop->fds[idx].events};
        }
    }
    if (loop->signal_fd >= 0) {
        polled[n_polled++] = (struct pollfd){.fd = loop->signal_fd, .events = POLLIN};
    }
    int n_ready = poll(polled, n_polled, wait_ms(loop, max_wait_ns));
    if (n_ready < 0 && errno != EINTR) {
        return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
    }
    if (n_ready > 0) {
        dispatch(loop, polled, n_polled);
    }
    fire_timers(loop);
    return 0;
}
