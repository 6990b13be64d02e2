/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing log files: reads in windows, so a log of any length needs the same memory beside its samples. */
#ifndef ENGINE_MEASURE_H
#define ENGINE_MEASURE_H

#include "domain/format.h"

/* The measurement lives in the arena. ret_sha256 (hex, in the arena) may be NULL; it is computed in the same pass. */
MUST_CHECK int measure_file(struct arena *arena, const struct format *format, const char *path,
                            struct measurement *ret_measurement, struct str *ret_sha256,
                            struct err *err);

/* The same without the series of quantity score, but for the named one (ptr NULL: none): faster. */
MUST_CHECK int measure_file_rates(struct arena *arena, const struct format *format,
                                  const char *path, struct str named,
                                  struct measurement *ret_measurement, struct err *err);

/* --format auto: which formats read something of the log. Its first GUESS_BYTES_MIN bytes are read, and more until one does. */
#define GUESS_BYTES_MIN (64u << 20)
struct guess {
    const struct format *formats[FORMATS_MAX]; /* that fit, in the order of the set */
    size_t n;                                  /* 1: found; else ambiguous, or unknown */
};
MUST_CHECK int measure_guess(const struct format_set *set, const char *path,
                             struct guess *ret_guess, struct err *err);

#endif
