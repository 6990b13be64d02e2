/* SPDX-License-Identifier: Apache-2.0 */
/* What is derived of a run, and kept nowhere. */
#pragma once

#include "evidence/result.h"

static inline int keep_nothing(void *ctx UNUSED, const char *name UNUSED, struct str text UNUSED,
                               struct err *err UNUSED)
{
    return 0;
}
