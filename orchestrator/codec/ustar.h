/* SPDX-License-Identifier: Apache-2.0 */
/* The members that the tar of an evidence archive may have: regular files whose names are in a fixed order, and how many. */
#pragma once

#include "codec/unpack_names.h"

#define USTAR_NAME_MAX  255
#define USTAR_FILES_MAX 50000
#define USTAR_TOTAL_MAX (1LL << 36) /* of all files together: a bound for decompression bombs */

/* Members that cover the others are made last and also come last, in this order. */
#define USTAR_SUMS       "SHA256SUMS"
#define USTAR_PROVENANCE "provenance.dsse.json"
#define USTAR_STATEMENT  "statement.dsse.json"
/* 0 for every other name. */
int ustar_closing_rank(struct str name);
/* <0, 0, >0: bytewise, closing members last. */
int ustar_order(struct str a, struct str b);

/* The names seen so far, and what they add up to. */
struct ustar_names {
    struct unpack_names names;
    struct str last;
    size_t n_files;
    uint64_t total_bytes;
};
void ustar_names_release(struct ustar_names *names);
CLEANUP_BY(ustar_names, struct ustar_names, ustar_names_release);
/* Refuses names that are out of order, duplicate, both file and folder, different only in case, or over a *_MAX. */
MUST_CHECK int ustar_names_add(struct ustar_names *names, struct str name, uint64_t size_bytes,
                               struct err *err);
