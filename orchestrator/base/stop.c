/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/stop.h"

#include <signal.h>

/* Set once, before other threads start. Where sys/loop catches signals it stays false: they are that loop's. */
static bool is_held;

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

void stop_hold(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t idx = 0; idx < ARRAY_LEN(SIGNALS); idx++) {
        struct sigaction now;
        /* A signal that the caller ignores (nohup) stays ignored; if blocked, it would count. */
        if (sigaction(SIGNALS[idx], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
            sigaddset(&set, SIGNALS[idx]);
        }
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    is_held = true;
}

int stop_status(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    for (size_t idx = 0; is_held && idx < ARRAY_LEN(SIGNALS); idx++) {
        if (sigismember(&pending, SIGNALS[idx]) == 1) {
            return 128 + SIGNALS[idx];
        }
    }
    return 0;
}

bool stop_is_asked(void)
{
    return stop_status() != 0;
}
