/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Bytes of the well-formed UTF-8 character at ptr, 0 if there is none within len.
   Source: The Unicode Standard 15.0, table 3-7. */
size_t utf8_char_bytes(const char *ptr, size_t len);

/* Writes a code point below 0x110000 that is no surrogate; returns its 1 to 4 bytes. */
size_t utf8_encode(uint32_t code, char text[4]);
