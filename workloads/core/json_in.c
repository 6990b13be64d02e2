/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/json_in.h"

#include "core/utf8.h"

static int fail(const struct json_in *in, const char *expected, struct err *err)
{
    return err_set(err, ERR_PARSE, "byte %zu: expected %s", in->at, expected);
}

/* '\0' past the end. */
static char char_at(const struct json_in *in, size_t at)
{
    if (at < in->text.len) {
        return in->text.ptr[at];
    }
    return '\0';
}

char json_in_peek(struct json_in *in)
{
    while (in->at < in->text.len) {
        char c = in->text.ptr[in->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return c;
        }
        in->at++;
    }
    return '\0';
}

int json_in_expect(struct json_in *in, char c, struct err *err)
{
    if (json_in_peek(in) != c) {
        return fail(in, (char[4]){'\'', c, '\''}, err);
    }
    in->at++;
    return 0;
}

int json_in_more(struct json_in *in, char closing, int64_t *n_seen, bool *ret_more, struct err *err)
{
    if (json_in_peek(in) == closing) {
        in->at++;
        *ret_more = false;
        return 0;
    }
    if (*n_seen > 0 && json_in_expect(in, ',', err) < 0) {
        return -1;
    }
    *n_seen += 1;
    *ret_more = true;
    return 0;
}

static int hex4(struct json_in *in, uint32_t *ret_code, struct err *err)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, in->at++) {
        char c = char_at(in, in->at);
        uint32_t digit = 0;
        if (c >= '0' && c <= '9') {
            digit = (uint32_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (uint32_t)(c - 'a') + 10;
        } else if (c >= 'A' && c <= 'F') {
            digit = (uint32_t)(c - 'A') + 10;
        } else {
            return fail(in, "four hexadecimal digits", err);
        }
        code = code << 4 | digit;
    }
    *ret_code = code;
    return 0;
}

/* After "\u": a character of the first plane, or a surrogate pair. */
static int unicode_escape(struct json_in *in, char *out, size_t *ret_len, struct err *err)
{
    uint32_t code = 0;
    if (hex4(in, &code, err) < 0) {
        return -1;
    }
    if (code >= 0xD800 && code < 0xDC00) {
        uint32_t low = 0;
        bool has_next = in->at + 1 < in->text.len && in->text.ptr[in->at] == '\\' &&
                        in->text.ptr[in->at + 1] == 'u';
        if (!has_next) {
            return fail(in, "the second half of a surrogate pair", err);
        }
        in->at += 2;
        if (hex4(in, &low, err) < 0) {
            return -1;
        }
        if (low < 0xDC00 || low > 0xDFFF) {
            return fail(in, "the second half of a surrogate pair", err);
        }
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code == 0 || (code >= 0xDC00 && code <= 0xDFFF)) {
        return fail(in, "a character that is neither NUL nor half a pair", err);
    }
    *ret_len = utf8_encode(code, out);
    return 0;
}

static int escape(struct json_in *in, char *out, size_t *ret_len, struct err *err)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    char c = char_at(in, in->at);
    in->at++;
    if (c == 'u') {
        return unicode_escape(in, out, ret_len, err);
    }
    const char *hit = c ? strchr(from, c) : NULL;
    if (!hit) {
        return fail(in, "an escape of JSON", err);
    }
    out[0] = to[hit - from];
    *ret_len = 1;
    return 0;
}

/* One character of a text, as 1 to 4 bytes. */
static int text_char(struct json_in *in, char *out, size_t *ret_len, struct err *err)
{
    const char *ptr = in->text.ptr + in->at;
    if (*ptr == '\\') {
        in->at++;
        return escape(in, out, ret_len, err);
    }
    size_t n = utf8_char_bytes(ptr, in->text.len - in->at);
    if (n == 0 || (unsigned char)*ptr < 0x20) {
        return fail(in, "UTF-8 without control characters", err);
    }
    memcpy(out, ptr, n);
    in->at += n;
    *ret_len = n;
    return 0;
}

/* Bytes up to the closing quote as written: an escape is never shorter than what it stands for. */
static size_t raw_text_bytes(const struct json_in *in)
{
    size_t at = in->at;
    while (at < in->text.len && in->text.ptr[at] != '"') {
        at += in->text.ptr[at] == '\\' ? 2 : 1;
    }
    return (at < in->text.len ? at : in->text.len) - in->at;
}

int json_in_text(struct json_in *in, struct arena *arena, size_t max_bytes, struct str *ret_text,
                 struct err *err)
{
    if (json_in_expect(in, '"', err) < 0) {
        return -1;
    }
    char *out = arena_alloc(arena, raw_text_bytes(in) + 4, 1);
    size_t len = 0;
    while (in->at < in->text.len && in->text.ptr[in->at] != '"') {
        char bytes[4];
        size_t n = 0;
        if (text_char(in, bytes, &n, err) < 0) {
            return -1;
        }
        if (len + n > max_bytes) {
            return err_set(err, ERR_PARSE, "byte %zu: text of more than %zu bytes", in->at,
                           max_bytes);
        }
        memcpy(out + len, bytes, n);
        len += n;
    }
    if (json_in_expect(in, '"', err) < 0) {
        return -1;
    }
    out[len] = '\0';
    *ret_text = (struct str){out, len};
    return 0;
}

int json_in_whole(struct json_in *in, int64_t max, int64_t *ret_value, struct err *err)
{
    char first = json_in_peek(in);
    size_t start = in->at;
    while (in->at < in->text.len && in->text.ptr[in->at] >= '0' && in->text.ptr[in->at] <= '9') {
        in->at++;
    }
    struct str digits = {in->text.ptr + start, in->at - start};
    char next = char_at(in, in->at);
    if (digits.len == 0 || (digits.len > 1 && first == '0') || next == '.' || next == 'e' ||
        next == 'E') {
        in->at = start;
        return fail(in, "a whole number", err);
    }
    if (str_to_i64(digits, 0, max, ret_value, err) < 0) {
        return err_wrap(err, "byte %zu", start);
    }
    return 0;
}

/* "true", "false" or "null", not followed by more of a word. */
static bool word(struct json_in *in, const char *text)
{
    (void)json_in_peek(in);
    size_t len = strlen(text);
    char next = char_at(in, in->at + len);
    bool is_longer = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                     (next >= '0' && next <= '9');
    if (is_longer || !str_eq_z(str_sub(in->text, in->at, len), text)) {
        return false;
    }
    in->at += len;
    return true;
}

int json_in_bool(struct json_in *in, bool *ret_value, struct err *err)
{
    bool is_true = word(in, "true");
    if (!is_true && !word(in, "false")) {
        return fail(in, "true or false", err);
    }
    *ret_value = is_true;
    return 0;
}

bool json_in_null(struct json_in *in)
{
    return word(in, "null");
}

static size_t skip_digits(struct json_in *in)
{
    size_t start = in->at;
    while (char_at(in, in->at) >= '0' && char_at(in, in->at) <= '9') {
        in->at++;
    }
    return in->at - start;
}

/* A number of any form that JSON has: RFC 8259, section 6. */
static int skip_number(struct json_in *in, struct err *err)
{
    size_t start = in->at;
    in->at += char_at(in, in->at) == '-' ? 1 : 0;
    bool has_zero = char_at(in, in->at) == '0';
    size_t n_whole = skip_digits(in);
    bool is_good = n_whole == 1 || (n_whole > 1 && !has_zero);
    if (char_at(in, in->at) == '.') {
        in->at++;
        is_good = skip_digits(in) > 0 && is_good;
    }
    if (char_at(in, in->at) == 'e' || char_at(in, in->at) == 'E') {
        in->at++;
        in->at += char_at(in, in->at) == '-' || char_at(in, in->at) == '+' ? 1 : 0;
        is_good = skip_digits(in) > 0 && is_good;
    }
    if (!is_good) {
        in->at = start;
        return fail(in, "a value", err);
    }
    return 0;
}

static int skip_key(struct json_in *in, struct arena *arena, struct err *err)
{
    struct str key;
    return json_in_text(in, arena, in->text.len, &key, err) < 0 ? -1 : json_in_expect(in, ':', err);
}

static int skip_scalar(struct json_in *in, struct arena *arena, struct err *err)
{
    struct str text;
    bool flag = false;
    char c = json_in_peek(in);
    if (c == '"') {
        return json_in_text(in, arena, in->text.len, &text, err);
    }
    if (c == 't' || c == 'f') {
        return json_in_bool(in, &flag, err);
    }
    return json_in_null(in) ? 0 : skip_number(in, err);
}

/* The lists and objects that are open; their keys are not compared. */
struct nest {
    int depth;
    char closing[JSON_IN_DEPTH_MAX];
    int64_t n_seen[JSON_IN_DEPTH_MAX];
};

static int skip_value(struct json_in *in, struct arena *arena, struct nest *nest, struct err *err)
{
    char c = json_in_peek(in);
    if (c != '[' && c != '{') {
        return skip_scalar(in, arena, err);
    }
    if (nest->depth == JSON_IN_DEPTH_MAX) {
        return err_set(err, ERR_PARSE, "byte %zu: more than %d nested lists and objects", in->at,
                       JSON_IN_DEPTH_MAX);
    }
    nest->closing[nest->depth] = c == '[' ? ']' : '}';
    nest->n_seen[nest->depth++] = 0;
    in->at++;
    return 0;
}

int json_in_skip(struct json_in *in, struct arena *arena, struct err *err)
{
    struct nest nest = {0};
    if (skip_value(in, arena, &nest, err) < 0) {
        return -1;
    }
    while (nest.depth > 0) {
        char closing = nest.closing[nest.depth - 1];
        bool has_more = false;
        if (json_in_more(in, closing, &nest.n_seen[nest.depth - 1], &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            nest.depth--;
            continue;
        }
        if ((closing == '}' && skip_key(in, arena, err) < 0) ||
            skip_value(in, arena, &nest, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int json_in_end(struct json_in *in, struct err *err)
{
    if (json_in_peek(in) != '\0' || in->at != in->text.len) {
        return fail(in, "the end", err);
    }
    return 0;
}
