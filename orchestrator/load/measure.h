/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing log files: reads in windows, so a log of any length needs the same memory besides its samples. */
#pragma once

#include "log/parser.h"

/* How a log is read. */
struct reading {
    const struct format *format;
    const char *path;
    /* Series of quantity score are left out, but for `named` (ptr NULL: none), which is faster. */
    bool is_of_rates;
    struct str named;
    bool keeps_lines; /* of samples (log/format.h) */
};
/* The measurement lives in the arena. ret_sha256 (hex, in the arena) may be NULL; it is computed in the same pass. */
MUST_CHECK int measure_file(struct arena *arena, const struct reading *how,
                            struct measurement *ret_measurement, struct str *ret_sha256,
                            struct err *err);

/* --format auto: which formats read something of the log. Its first GUESS_BYTES_MIN bytes are read, and more until one does. */
#define GUESS_BYTES_MIN (64u << 20)
struct guess {
    const struct format *formats[FORMATS_MAX]; /* that fit, in the order of the set */
    size_t n;                                  /* 1: found; else ambiguous, or unknown */
    /* Protocols next to the one that measure_choose found. */
    const struct format *beside[FORMATS_MAX];
    size_t n_beside;
};
MUST_CHECK int measure_guess(struct guesser *guesser, const char *path, struct guess *ret_guess,
                             struct err *err);

/* The same, and of those that fit the program's own if there is one, generic ones only if no other fits; tables of any program
   have no characteristic lines, and are read. set: the guesser's. */
MUST_CHECK int measure_choose(struct guesser *guesser, const struct format_set *set,
                              const char *path, struct guess *ret_guess, struct err *err);

/* The log's first MEASURE_BYTES_MAX bytes into a survey, which is finished. */
#define MEASURE_BYTES_MAX (16u << 20)
struct survey;
MUST_CHECK int measure_survey(struct survey *survey, const char *path, struct err *err);
