/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "codec/json.h"
#include "codec/json_document.h"

#define I64_EXACT_MAX 9007199254740992LL /* 2^53 */
#define QUOTED_MAX    256

void jw_begin(struct json_out *out, struct strbuf *buf, bool is_compact)
{
    *out = (struct json_out){.buf = buf, .is_compact = is_compact};
}

void jw_document(struct json_out *out, struct strbuf *buf)
{
    jw_begin(out, buf, false);
    jw_object(out, NULL);
    jw_i64(out, "schema_version", 1);
}

/* Bytes at the beginning that stand for themselves. */
static size_t plain_len(struct str s)
{
    size_t len = 0;
    while (len < s.len && s.ptr[len] >= 0x20 && s.ptr[len] < 0x7f && s.ptr[len] != '"' &&
           s.ptr[len] != '\\') {
        len++;
    }
    return len;
}

static void add_string(struct strbuf *buf, struct str s)
{
    strbuf_add_char(buf, '"');
    while (s.len) {
        unsigned char c = (unsigned char)s.ptr[0];
        size_t plain = plain_len(s);
        size_t len = plain ? plain : utf8_len(s);
        if (plain) {
            strbuf_add(buf, s.ptr, plain);
        } else if (len == 0) {
            strbuf_add_z(buf, "\\ufffd");
            len = 1;
        } else if (c == '"' || c == '\\') {
            strbuf_add_char(buf, '\\');
            strbuf_add_char(buf, (char)c);
        } else if (c == '\n') {
            strbuf_add_z(buf, "\\n");
        } else if (c == '\t') {
            strbuf_add_z(buf, "\\t");
        } else if (c < 0x20 || c == 0x7f) {
            strbuf_printf(buf, "\\u%04x", c);
        } else {
            strbuf_add(buf, s.ptr, len);
        }
        s = str_sub(s, len, s.len);
    }
    strbuf_add_char(buf, '"');
}

static void new_line(struct json_out *out)
{
    if (!out->is_compact) {
        strbuf_add_char(out->buf, '\n');
        for (int level = 0; level < out->depth; level++) {
            strbuf_add(out->buf, "  ", 2);
        }
    }
}

/* Comma, line and key before a value. */
static void lead(struct json_out *out, const char *key)
{
    if (out->has_item[out->depth]) {
        strbuf_add_char(out->buf, ',');
    }
    out->has_item[out->depth] = true;
    if (out->depth > 0) {
        new_line(out);
    }
    if (key) {
        add_string(out->buf, str_of(key));
        strbuf_add_z(out->buf, out->is_compact ? ":" : ": ");
    }
}

static void open_with(struct json_out *out, const char *key, char bracket)
{
    lead(out, key);
    strbuf_add_char(out->buf, bracket);
    out->depth++;
    ASSERT(out->depth < (int)ARRAY_LEN(out->has_item));
    out->has_item[out->depth] = false;
}

static void close_with(struct json_out *out, char bracket)
{
    bool has_item = out->has_item[out->depth];
    ASSERT(out->depth > 0);
    out->depth--;
    if (has_item) {
        new_line(out);
    }
    strbuf_add_char(out->buf, bracket);
    if (out->depth == 0 && !out->is_compact) {
        strbuf_add_char(out->buf, '\n');
    }
}

void jw_object(struct json_out *out, const char *key)
{
    open_with(out, key, '{');
}

void jw_array(struct json_out *out, const char *key)
{
    open_with(out, key, '[');
}

void jw_end_object(struct json_out *out)
{
    close_with(out, '}');
}

void jw_end_array(struct json_out *out)
{
    close_with(out, ']');
}

void jw_str(struct json_out *out, const char *key, struct str value)
{
    if (!value.ptr) {
        jw_null(out, key);
        return;
    }
    lead(out, key);
    add_string(out->buf, value);
}

void jw_z(struct json_out *out, const char *key, const char *value)
{
    jw_str(out, key, str_of(value));
}

void jw_i64(struct json_out *out, const char *key, int64_t value)
{
    bool is_exact = value <= I64_EXACT_MAX && value >= -I64_EXACT_MAX;
    lead(out, key);
    if (is_exact) {
        strbuf_add_i64(out->buf, value);
    } else {
        strbuf_printf(out->buf, "\"%" PRId64 "\"", value);
    }
}

void jw_f64(struct json_out *out, const char *key, double value)
{
    if (!isfinite(value)) {
        jw_null(out, key);
        return;
    }
    lead(out, key);
    strbuf_add_f64(out->buf, value);
}

void jw_bool(struct json_out *out, const char *key, bool value)
{
    lead(out, key);
    strbuf_add_z(out->buf, value ? "true" : "false");
}

void jw_null(struct json_out *out, const char *key)
{
    lead(out, key);
    strbuf_add_z(out->buf, "null");
}

void jw_i64_if(struct json_out *out, const char *key, bool is_there, int64_t value)
{
    (is_there ? jw_i64(out, key, value) : jw_null(out, key));
}

void jw_bool_if(struct json_out *out, const char *key, bool is_there, bool value)
{
    (is_there ? jw_bool(out, key, value) : jw_null(out, key));
}

void jw_known(struct json_out *out, const char *key, int64_t value)
{
    jw_i64_if(out, key, value >= 0, value);
}

void jw_err(struct json_out *out, const char *key, const struct err *err)
{
    if (err->code == ERR_NONE) {
        jw_null(out, key);
        return;
    }
    jw_object(out, key);
    jw_z(out, "code", err_code_name(err->code));
    jw_z(out, "message", err->msg);
    jw_end_object(out);
}

void jw_words(struct json_out *out, const char *key, const char *const *words, size_t n)
{
    jw_array(out, key);
    for (size_t idx = 0; idx < n; idx++) {
        jw_z(out, NULL, words[idx]);
    }
    jw_end_array(out);
}

void jw_raw(struct json_out *out, const char *key, struct str json)
{
    lead(out, key);
    strbuf_add_str(out->buf, json);
}

/* What stands between two ' at *text, which goes behind them. */
static const char *take_quoted(const char **text, char *ret, size_t size)
{
    const char *end = strchr(*text + 1, '\'');
    ASSERT(end);
    ASSERT((size_t)(end - *text) <= size);
    size_t len = (size_t)(end - *text) - 1;
    memcpy(ret, *text + 1, len);
    ret[len] = '\0';
    *text = end + 1;
    return ret;
}

void jw_fill(struct json_out *out, const char *text, const struct str *args)
{
    char name[QUOTED_MAX], value[QUOTED_MAX];
    const char *key = NULL;
    for (text += strspn(text, ", "); *text; text += strspn(text, ", ")) {
        bool is_quoted = *text == '\'';
        char sign = *text;
        const char *quoted = is_quoted ? take_quoted(&text, key ? value : name, QUOTED_MAX) : NULL;
        if (is_quoted && *text == ':') {
            key = quoted;
            text++;
            continue;
        }
        text += !is_quoted;
        if (is_quoted) {
            jw_z(out, key, quoted);
        } else if (sign == '?') {
            jw_str(out, key, *args++);
        } else if (sign == '#') {
            jw_raw(out, key, *args++);
        } else if (sign == '{' || sign == '[') {
            open_with(out, key, sign);
        } else {
            ASSERT(sign == '}' || sign == ']');
            close_with(out, sign);
        }
        key = NULL;
    }
}
