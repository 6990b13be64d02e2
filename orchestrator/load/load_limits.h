/* SPDX-License-Identifier: Apache-2.0 */
/* The limits by which nodes are compared. */
#ifndef LOAD_LOAD_LIMITS_H
#define LOAD_LOAD_LIMITS_H

#include "judge/node_bench.h"

#define BENCH_LIMITS_FILE "manifests/node-bench.json"
/* path NULL: BENCH_LIMITS_FILE below the data folder. */
MUST_CHECK int load_bench_limits(struct arena *arena, const char *root, const char *path,
                                 struct bench_limits *ret_limits, struct err *err);

#endif
