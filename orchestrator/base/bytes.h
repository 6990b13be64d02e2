/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as bytes of a stated order. */
#pragma once

#include <endian.h>

#include "base/base.h"

static inline void put_le32(void *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
}
static inline uint32_t get_le32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return le32toh(value);
}
static inline uint32_t get_be32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}
