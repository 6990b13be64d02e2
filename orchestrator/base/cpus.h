/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include "base/base.h"

/* The number of processors that this process may run on; 0: not known. */
size_t cpus_usable(void);

#endif
