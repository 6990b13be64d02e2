/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for many literals in one pass over text: by vectors, where the machine has them, for places that may hold the four rarest
   bytes of one, and then by a hash of these. A search is small and made quickly. */
#pragma once

#include "base/str.h"

#define LITERALS_MAX    64 /* one bit each */
#define LITERAL_LEN_MIN 4

struct literals;

/* The texts are borrowed. n is 1 to LITERALS_MAX, each of LITERAL_LEN_MIN bytes or more. */
struct literals *literals_new(const struct str *items, size_t n);
void literals_free(struct literals *literals);

/* The next place at or after `from` that shows one or more of those whose bits are set in `live`: their bits in *ret_mask.
   SIZE_MAX if there is none. A literal is seen once for each time that the text holds it, at its four rarest bytes. */
size_t literals_next(const struct literals *literals, struct str text, size_t from, uint64_t live,
                     uint64_t *ret_mask);
