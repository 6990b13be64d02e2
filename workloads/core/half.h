/* SPDX-License-Identifier: Apache-2.0 */
/* IEEE 754 binary16 on a host that has no type for it: bits to float and back, rounding to nearest, ties to even. */
#pragma once

#include "base/base.h"

float half_to_float(uint16_t bits);

/* Too large becomes infinity, a NaN stays one. */
uint16_t half_from_float(float value);
