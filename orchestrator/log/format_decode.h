/* SPDX-License-Identifier: Apache-2.0 */
/* How a format is decoded. Private to format.c and format_series.c. */
#ifndef LOG_FORMAT_DECODE_H
#define LOG_FORMAT_DECODE_H

#include "log/format_impl.h"

/* The state of decoding one format. */
struct decoder {
    struct format *format;
    struct arena *arena;
};

MUST_CHECK int format_add_literal(const struct json *at, struct format *format, struct probe *probe,
                                  struct err *err);
MUST_CHECK int format_pattern(const struct json *at, struct str source,
                              struct pattern **ret_pattern, struct err *err);
/* {"literal": S, "pattern": S} as a member that may be null. */
MUST_CHECK int format_probe(const struct decoder *d, const struct json *at, const char *key,
                            struct probe *ret_probe, struct err *err);
MUST_CHECK int format_series(const struct decoder *d, const struct json *root, struct err *err);

#endif
