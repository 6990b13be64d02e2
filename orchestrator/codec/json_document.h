/* SPDX-License-Identifier: Apache-2.0 */
/* What many documents have that are not written by a table alone. */
#pragma once

#include "codec/json.h"

/* A document of schema_version 1, whose object is open. */
void jw_document(struct json_out *out, struct strbuf *buf);
/* A number that may not be known: below 0 it is null. */
void jw_known(struct json_out *out, const char *key, int64_t value);
/* null where it is not there. */
void jw_i64_if(struct json_out *out, const char *key, bool is_there, int64_t value);
void jw_bool_if(struct json_out *out, const char *key, bool is_there, bool value);
/* {code, message}; null where there is none. */
void jw_err(struct json_out *out, const char *key, const struct err *err);
