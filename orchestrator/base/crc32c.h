/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli): guards samples of packed shards and records of TFRecord files against bad bytes, not against
   an attacker. Uses the processor's instruction where there is one; the table gives the same.
   Source: RFC 3720, appendix B.4 (polynomial 0x1EDC6F41, reflected, initial and final value all ones). */
#pragma once

#include "base/base.h"

/* Continues from crc, which is 0 for the first bytes. */
uint32_t crc32c(uint32_t crc, const void *ptr, size_t len);
/* The same without the instruction: for tests. */
uint32_t crc32c_table(uint32_t crc, const void *ptr, size_t len);
