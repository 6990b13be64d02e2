/* SPDX-License-Identifier: Apache-2.0 */
/* Moments and numbers as logs print them. Pure. */
#pragma once

#include "base/str.h"

/* Seconds since 1970, the text taken as UTC: "2020-12-16 18:32:38", with "," or "." and digits, with T, with Z; "0826
   17:46:24.366020" (glog; no year: 2000); "1558631910.424" (seconds); whole numbers of 13, 16 and 19 digits are milli-,
   micro- and nanoseconds. False if it is none of these. */
bool logtime_parse(struct str text, double *ret_s);

/* Seconds of "1:02:03", "35.5". */
bool logspan_parse(struct str text, double *ret_s);

enum number_kind { NUMBER_OK, NUMBER_NOT_FINITE, NUMBER_NONE };

/* A decimal number; "nan", "inf" and the like in any case are NUMBER_NOT_FINITE, as is what no double can hold and what no
   machine reaches (over 1e30). The result is the double nearest to the text. */
enum number_kind lognumber_parse(struct str text, double *ret_value);

/* "1,281,167.5" is 1281167.5, in buf; text that is not grouped in threes, or does not fit, stays as it is. */
struct str lognumber_ungroup(struct str text, char *buf, size_t size);

/* Only digits, at most max. */
bool logwhole_parse(struct str text, int64_t max, int64_t *ret_value);
