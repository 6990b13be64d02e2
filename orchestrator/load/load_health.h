/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "judge/health.h"

#define HEALTH_LIMITS_FILE "manifests/node-health.json"

/* path NULL: those of the data folder `root`. */
MUST_CHECK int load_health_limits(struct arena *arena, const char *root, const char *path,
                                  struct health_limits *ret_limits, struct err *err);
