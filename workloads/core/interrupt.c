/* SPDX-License-Identifier: Apache-2.0 */
#include "core/interrupt.h"

#include <stddef.h>

#define STACK_BYTES                                                                                \
    (64 << 10) /* a frame with AVX-512's registers takes some 4 KiB, with AMX's 11 */

static volatile sig_atomic_t caught; /* the one thing the handler may touch */

static void on_signal(int signal_number)
{
    caught = signal_number;
}

/* On a stack of their own: oneDNN's kernels keep data below the stack pointer, which a signal in their midst overwrote. The kernel
   delivers a process's signals to its first thread as long as that accepts them. */
const volatile sig_atomic_t *interrupt_catch(void)
{
    static char stack[STACK_BYTES];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaltstack(&own, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    return &caught;
}
