/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pack_stop.h"

#include <signal.h>

#include "prep/verb.h"

static volatile sig_atomic_t caught; /* the one thing a signal handler may touch */

static void on_signal(int signal_no)
{
    caught = signal_no;
}

void stop_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int stop_signal(void)
{
    return caught;
}

bool verb_is_stopped(void)
{
    return caught != 0;
}
