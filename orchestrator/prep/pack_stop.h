/* SPDX-License-Identifier: Apache-2.0 */
/* ^C and SIGTERM: noted, and checked between two jobs. Before threads are started. */
#ifndef PREP_PACK_STOP_H
#define PREP_PACK_STOP_H

#include "base/base.h"

void stop_catch(void);
/* The signal that came, or 0. */
int stop_signal(void);

#endif
