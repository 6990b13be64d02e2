/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The number of processors that this process may run on; 0: not known. */
size_t cpus_usable(void);
