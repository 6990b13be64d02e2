/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM set a number that loops look at between kernel calls. */
#ifndef CORE_INTERRUPT_H
#define CORE_INTERRUPT_H

#include <signal.h>

/* From here on the two are caught, and a reader that is gone is a write error with its status, no SIGPIPE. To be called once, on the
   process's first thread, before any other. Returns the signal's number, 0 until there is one; lives as long as the process. */
const volatile sig_atomic_t *interrupt_catch(void);

#endif
