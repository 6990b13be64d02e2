/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing log files: reads in windows, so a log of any length needs the same memory beside its samples. */
#ifndef ENGINE_MEASURE_H
#define ENGINE_MEASURE_H

#include "domain/format.h"

/* The measurement lives in the arena. ret_sha256 (hex, in the arena) may be NULL; it is computed in the same pass. */
MUST_CHECK int measure_file(struct arena *arena, const struct format *format, const char *path,
                            struct measurement *ret_measurement, struct str *ret_sha256,
                            struct err *err);

/* --format auto. ERR_PARSE naming the candidates where two fit or none does. */
MUST_CHECK int measure_guess(const struct format_set *set, const char *path,
                             const struct format **ret_format, struct err *err);

#endif
