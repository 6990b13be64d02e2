/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM set a number that loops check between kernel calls. */
#pragma once

#include <signal.h>

/* From here on the two signals are caught, and a closed pipe is a write error instead of SIGPIPE. To be called once, on the
   process's first thread, before there is another. Returns the signal's number, 0 until there is one; valid as long as the
   process. */
const volatile sig_atomic_t *interrupt_catch(void);
