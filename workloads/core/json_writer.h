/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one JSON document into a strbuf, keys in the order of the calls: equal data, equal bytes. Numbers must be finite.
   The caller follows the grammar (a key before each value of an object); commas are added here. */
#pragma once

#include "base/strbuf.h"

struct json_out {
    struct strbuf *buf; /* borrowed; is_full is set if it was too small */
    bool needs_comma;
};

void json_out_open(struct json_out *out, char bracket);  /* '{' or '[' */
void json_out_close(struct json_out *out, char bracket); /* '}' or ']' */
void json_out_key(struct json_out *out, const char *key);
void json_out_text(struct json_out *out,
                   struct str text); /* bytes that are not UTF-8 become U+FFFD */
void json_out_i64(struct json_out *out,
                  int64_t value); /* above 2^53: as a string (STYLE.md section 4) */
void json_out_bool(struct json_out *out, bool value);
void json_out_f64(struct json_out *out, double value);

/* "key": value in one call. */
void json_out_put_text(struct json_out *out, const char *key, const char *text);
void json_out_put_i64(struct json_out *out, const char *key, int64_t value);
void json_out_put_f64(struct json_out *out, const char *key, double value);
