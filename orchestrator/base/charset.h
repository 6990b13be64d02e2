/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of characters, as text. */
#ifndef BASE_CHARSET_H
#define BASE_CHARSET_H

#include "base/str.h"

/* Whether it has a byte, and each of its bytes is in the set: "a-z0-9._-", with ranges, and a dash at the end for itself. */
bool str_is_made_of(struct str s, const char *set);

#endif
