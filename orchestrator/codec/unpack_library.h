/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive, opened when it is needed. For codec/unpack*.c. */
#ifndef CODEC_UNPACK_LIBRARY_H
#define CODEC_UNPACK_LIBRARY_H

#include "base/err.h"

/* Before any call of it. */
MUST_CHECK int unpack_library_open(struct err *err);

#endif
