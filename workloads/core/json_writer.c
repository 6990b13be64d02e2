/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/json_writer.h"

#include "core/utf8.h"

#include <math.h>

#define EXACT_MAX (INT64_C(1) << 53)

static void begin_value(struct json_out *out)
{
    if (out->needs_comma) {
        strbuf_add_char(out->buf, ',');
    }
    out->needs_comma = true;
}

void json_out_open(struct json_out *out, char bracket)
{
    begin_value(out);
    strbuf_add_char(out->buf, bracket);
    out->needs_comma = false;
}

void json_out_close(struct json_out *out, char bracket)
{
    strbuf_add_char(out->buf, bracket);
    out->needs_comma = true;
}

static void quoted(struct json_out *out, struct str text)
{
    struct strbuf *buf = out->buf;
    strbuf_add_char(buf, '"');
    for (size_t i = 0; i < text.len;) {
        size_t n = utf8_char_bytes(text.ptr + i, text.len - i);
        unsigned char c = (unsigned char)text.ptr[i];
        if (n == 0) {
            strbuf_add_z(buf, "\xEF\xBF\xBD");
            n = 1;
        } else if (c == '"' || c == '\\') {
            strbuf_add_char(buf, '\\');
            strbuf_add_char(buf, (char)c);
        } else if (c < 0x20 || c == 0x7F) {
            strbuf_printf(buf, "\\u%04x", c);
        } else {
            strbuf_add(buf, text.ptr + i, n);
        }
        i += n;
    }
    strbuf_add_char(buf, '"');
}

void json_out_key(struct json_out *out, const char *key)
{
    begin_value(out);
    quoted(out, str_of(key));
    strbuf_add_char(out->buf, ':');
    out->needs_comma = false;
}

void json_out_text(struct json_out *out, struct str text)
{
    begin_value(out);
    quoted(out, text);
}

void json_out_i64(struct json_out *out, int64_t value)
{
    begin_value(out);
    bool is_exact = value <= EXACT_MAX && value >= -EXACT_MAX;
    strbuf_printf(out->buf, is_exact ? "%" PRId64 : "\"%" PRId64 "\"", value);
}

void json_out_bool(struct json_out *out, bool value)
{
    begin_value(out);
    strbuf_add_z(out->buf, value ? "true" : "false");
}

void json_out_f64(struct json_out *out, double value)
{
    ASSERT(isfinite(value));
    begin_value(out);
    strbuf_add_f64(out->buf, value);
}

void json_out_put_text(struct json_out *out, const char *key, const char *text)
{
    json_out_key(out, key);
    json_out_text(out, str_of(text));
}

void json_out_put_i64(struct json_out *out, const char *key, int64_t value)
{
    json_out_key(out, key);
    json_out_i64(out, value);
}

void json_out_put_f64(struct json_out *out, const char *key, double value)
{
    json_out_key(out, key);
    json_out_f64(out, value);
}
