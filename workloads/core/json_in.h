/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON reader for documents whose form is known: the caller asks for what must come next, and anything else is
   an error with its byte offset. Never recurses. Keys and texts are copied into the arena. */
#pragma once

#include "base/str.h"

struct json_in {
    struct str text; /* borrowed */
    size_t at;       /* next byte */
};

/* The next byte after blanks, '\0' at the end of the text. Does not move past it. */
char json_in_peek(struct json_in *in);

/* This one byte of punctuation must come next. */
MUST_CHECK int json_in_expect(struct json_in *in, char c, struct err *err);

/* In an opened list or object: true if another element follows; consumes the comma or the closing bracket. *n_seen
   counts the elements and starts at 0. */
MUST_CHECK int json_in_more(struct json_in *in, char closing, int64_t *n_seen, bool *ret_more,
                            struct err *err);

/* A text of at most max_bytes, without NUL. */
MUST_CHECK int json_in_text(struct json_in *in, struct arena *arena, size_t max_bytes,
                            struct str *ret_text, struct err *err);

/* A whole number from 0 to max: digits only, no leading zero, no fraction, no exponent. */
MUST_CHECK int json_in_whole(struct json_in *in, int64_t max, int64_t *ret_value, struct err *err);

/* true or false. */
MUST_CHECK int json_in_bool(struct json_in *in, bool *ret_value, struct err *err);

/* If null comes next it is consumed. */
bool json_in_null(struct json_in *in);

/* Any value, checked and dropped; at most JSON_IN_DEPTH_MAX nested lists and objects. */
#define JSON_IN_DEPTH_MAX 16
MUST_CHECK int json_in_skip(struct json_in *in, struct arena *arena, struct err *err);

/* Only blanks may follow. */
MUST_CHECK int json_in_end(struct json_in *in, struct err *err);
