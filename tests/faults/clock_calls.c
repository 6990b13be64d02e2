/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD: the program called REPERF_CLOCK_OF has the monotonic clock of a test, which the machine's speed does not move; no other program is touched.
   With REPERF_CLOCK=FILE it is the machine's until that file is there; from then on it is so many seconds ahead as the file says, which may say more later, and
   stands, unless a + stands behind them. With REPERF_CLOCK_TICK_NS it stands from the start, but each look at it takes so long, and a usleep as long as it is asked to, in no time at all.
   poll ends when its time has passed by this clock, or by the machine's. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define LOOK_MS   20 /* between two looks whether the clock was moved */

static _Atomic int64_t stands_ns; /* 0: it goes */
static _Atomic int64_t moved_ns;

static bool is_ours(void)
{
    const char *name = getenv("REPERF_CLOCK_OF");
    return name && strcmp(name, program_invocation_short_name) == 0;
}

static int64_t machine_ns(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void raise_to(_Atomic int64_t *value, int64_t least)
{
    int64_t was = atomic_load(value);
    while (was < least && !atomic_compare_exchange_weak(value, &was, least)) {
    }
}

static void stop(void)
{
    int64_t none = 0;
    (void)atomic_compare_exchange_strong(&stands_ns, &none, machine_ns());
}

/* It is written in one piece, and empty just before. */
static void read_file(void)
{
    const char *path = getenv("REPERF_CLOCK");
    char text[32] = "";
    long fd = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return;
    }
    if (syscall(SYS_read, fd, text, sizeof(text) - 1) > 0) {
        if (!strchr(text, '+')) {
            stop();
        }
        raise_to(&moved_ns, strtoll(text, NULL, 10) * NS_PER_S);
    }
    (void)syscall(SYS_close, fd);
}

/* A look that costs nothing. */
static int64_t test_ns(void)
{
    if (getenv("REPERF_CLOCK_TICK_NS")) {
        stop();
    }
    read_file();
    int64_t stood_ns = atomic_load(&stands_ns);
    return (stood_ns ? stood_ns : machine_ns()) + atomic_load(&moved_ns);
}

int clock_gettime(clockid_t id, struct timespec *ret_now)
{
    const char *tick = getenv("REPERF_CLOCK_TICK_NS");
    int was = errno;
    if (!is_ours() || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_RAW)) {
        return (int)syscall(SYS_clock_gettime, id, ret_now);
    }
    if (tick) {
        atomic_fetch_add(&moved_ns, strtoll(tick, NULL, 10));
    }
    int64_t now_ns = test_ns();
    *ret_now = (struct timespec){now_ns / NS_PER_S, now_ns % NS_PER_S};
    errno = was;
    return 0;
}

int usleep(useconds_t us)
{
    struct timespec span = {us / 1000000, us % 1000000 * 1000};
    if (is_ours() && getenv("REPERF_CLOCK_TICK_NS")) {
        atomic_fetch_add(&moved_ns, (int64_t)us * 1000);
        return 0;
    }
    return (int)syscall(SYS_nanosleep, &span, NULL);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (!is_ours() || timeout_ms <= 0) {
        return (int)syscall(SYS_poll, fds, n, timeout_ms);
    }
    int64_t end_ns = machine_ns() + timeout_ms * NS_PER_MS;
    int64_t test_end_ns = test_ns() + timeout_ms * NS_PER_MS;
    for (;;) {
        int64_t left_ms = (end_ns - machine_ns() + NS_PER_MS - 1) / NS_PER_MS;
        bool is_over = left_ms <= 0 || test_ns() >= test_end_ns;
        long got = syscall(SYS_poll, fds, n, is_over ? 0 : left_ms < LOOK_MS ? left_ms : LOOK_MS);
        if (got != 0 || is_over) {
            return (int)got;
        }
    }
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size)
{
    (void)size;
    return poll(fds, n, timeout_ms);
}
