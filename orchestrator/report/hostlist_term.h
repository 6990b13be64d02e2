/* SPDX-License-Identifier: Apache-2.0 */
/* One term of a node set, without operators: "rack[1-2]node[01-04]" (report/hostlist.c). */
#ifndef REPORT_HOSTLIST_TERM_H
#define REPORT_HOSTLIST_TERM_H

#include "report/hostlist.h"

#define TERM_PIECES_MAX (2 * HOSTLIST_BRACKETS_MAX + 1)

struct term_number {
    int64_t value;
    int width; /* digits, at least */
};

struct term_piece { /* literal text, or the numbers of a bracket */
    struct str text;
    struct term_number *numbers;
    size_t n_numbers; /* 0: it is text */
};

struct term {
    struct term_piece pieces[TERM_PIECES_MAX];
    size_t n_pieces;
    size_t n_names; /* product of the brackets' numbers, 1 to HOSTLIST_NAMES_MAX */
};

/* text is part of `whole`; positions in messages count from the start of `whole`. */
MUST_CHECK int term_parse(struct arena *arena, struct str text, struct str whole,
                          enum hostlist_syntax syntax, struct term *ret_term, struct err *err);

/* The idx-th of its names, in buf (NUL-terminated). False if it is longer than HOSTLIST_NAME_MAX. */
bool term_name(const struct term *term, size_t idx, char buf[HOSTLIST_NAME_MAX + 1],
               struct str *ret_name);

/* ERR_USAGE: 'node set "TEXT", byte N: ...' */
MUST_CHECK int hostlist_fail(struct str whole, const char *at, struct err *err, const char *fmt,
                             ...) PRINTF_LIKE(4, 5);

#endif
