/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of comma-separated values (RFC 4180): a quoted field may hold delimiters, line ends and doubled quotes. Pure. */
#pragma once

#include "base/str.h"

struct csv {
    struct str rest;
    char delimiter;
    size_t line;  /* of the next row, from 1 */
    bool is_open; /* a quote was never closed: its field is taken as it stands */
};

/* False where the text is used up. *ret_n counts the fields that do not fit, too. Fields live in the arena. */
bool csv_row(struct csv *csv, struct arena *arena, struct str *fields, size_t max, size_t *ret_n);
