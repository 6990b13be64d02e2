/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share. Only store/store*.c include it. */
#pragma once

#include "base/temp.h"
#include "store/store.h"

/* The folder of blobs, for errors that name a path. */
/* A new file in tmp/. */
MUST_CHECK int store_temp(const struct store *store, struct temp **ret_temp, struct err *err);

/* A small file that is replaced whole, written by way of tmp/. */
MUST_CHECK int store_write(const struct store *store, const char *path, struct str text,
                           struct err *err);
