/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codec/digest.h"

/* A regular file into a new one; folders above it are made. A stop is ERR_INTERRUPTED. ret_value (or NULL): its SHA-256. */
MUST_CHECK int copy_file(const char *from, const char *to, struct digest_value *ret_value,
                         struct err *err);
