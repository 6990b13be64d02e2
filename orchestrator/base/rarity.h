/* SPDX-License-Identifier: Apache-2.0 */
/* How rare a text is in logs, so that a search begins with what it seldom meets. Only speed depends on it. */
#ifndef BASE_RARITY_H
#define BASE_RARITY_H

#include "base/str.h"

#define RARITY_BYTES 4
#define RARITY_WORDS (UINT32_MAX - 1000) /* from here on: words of many lines in many logs */

/* The rarest RARITY_BYTES bytes of a text, among its first: their offset, and how often logs hold them, in no unit; the text is as long
   as that. Of two texts the one with the smaller number is found with less work. */
uint32_t rarity_common(struct str text, size_t *ret_offset);
/* Bytes in a thousand, at least 1. */
uint32_t rarity_weight(unsigned char c);

#endif
