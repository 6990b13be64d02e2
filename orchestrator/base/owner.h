/* SPDX-License-Identifier: Apache-2.0 */
/* Folders whose names only their owner may change. */
#ifndef BASE_OWNER_H
#define BASE_OWNER_H

#include "base/err.h"

/* ERR_AUTH where the folder is neither ours nor root's, or anybody may rename what lies in it. Nothing there: no error. */
MUST_CHECK int owner_check(const char *folder, struct err *err);

#endif
