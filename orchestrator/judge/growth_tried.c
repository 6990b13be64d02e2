/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing was tried before: for what is linked without build/MODE/growth_tried.c. */
#include "base/base.h"

#include "judge/growth.h"

const struct growth_tried GROWTH_TRIED = {NULL, NULL, 0};
