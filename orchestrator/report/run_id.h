/* SPDX-License-Identifier: Apache-2.0 */
/* Names of runs: "20261121T115300.000Z-1a2b3c4d". Sorting by name is sorting by time. */
#pragma once

#include "base/str.h"

#define RUN_ID_SIZE 30 /* with the NUL */

/* From the moment and 32 random bits, both passed in. */
void run_id_make(int64_t wall_ns, uint64_t random, char ret_id[RUN_ID_SIZE]);
bool run_id_is_valid(struct str id);
/* When it began, as clock_rfc3339 writes it; ret_time: RFC3339_MAX bytes. id is valid. */
void run_id_time(struct str id, char *ret_time);
/* The same in seconds since 1970. */
int64_t run_id_wall_s(struct str id);
