/* SPDX-License-Identifier: Apache-2.0 */
/* ^C and SIGTERM for commands that work in one loop of their own: blocked, and checked between two steps, so that the command
   can clean up before it ends. One thread; before it starts others. */
#pragma once

#include "base/err.h"

void stop_hold(void);
/* True from the first ^C on; without stop_hold never. Whatever takes long asks, on any thread: a stop is ERR_INTERRUPTED. */
bool stop_is_asked(void);
/* 128 + the signal, or 0. */
int stop_status(void);
