/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is printed into an arena. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/str.h"

struct str str_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct str str_vprintf(struct arena *arena, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

#endif
