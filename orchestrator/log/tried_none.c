/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing was tried before: for what is linked without build/MODE/growth_tried.c. */
#include "base/base.h"

#include "log/tried.h"

const struct tried TRIED = {NULL, NULL, 0};
