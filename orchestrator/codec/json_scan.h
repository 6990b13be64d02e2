/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of RFC 8259, checked before cJSON sees the text: cJSON alone accepts trailing bytes, bad numbers, control
   characters and bad UTF-8. */
#ifndef CODEC_JSON_SCAN_H
#define CODEC_JSON_SCAN_H

#include "base/str.h"

/* ERR_MANIFEST "name:LINE:COLUMN: ..." if the text is not one JSON value of at most JSON_DEPTH_MAX levels. */
MUST_CHECK int json_scan(struct str text, const char *name, struct err *err);

/* Length of the UTF-8 sequence at the start of s, or 0 if it is not valid. */
size_t utf8_len(struct str s);

#endif
