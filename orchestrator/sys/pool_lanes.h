/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for the rooms that have none (base/lanes.h): a lane a core. */
#ifndef SYS_POOL_LANES_H
#define SYS_POOL_LANES_H

#include "base/lanes.h"

struct lanes pool_lanes(void);

#endif
