/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/json_scan.h"

#include "codec/json.h"

struct scan {
    const char *name;
    const char *start;
    const char *at;
    const char *end;
};

static int scan_fail(const struct scan *s, struct err *err, const char *what)
{
    size_t line = 1;
    const char *line_start = s->start;
    for (const char *c = s->start; c < s->at; c++) {
        if (*c == '\n') {
            line++;
            line_start = c + 1;
        }
    }
    return err_set(err, ERR_MANIFEST, "%s:%zu:%zu: %s", s->name, line,
                   (size_t)(s->at - line_start) + 1, what);
}

static void skip_blank(struct scan *s)
{
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r')) {
        s->at++;
    }
}

size_t utf8_len(struct str s)
{
    const unsigned char *b = (const unsigned char *)s.ptr;
    size_t len;
    if (s.len == 0) {
        return 0;
    }
    if (b[0] < 0x80) {
        return 1;
    }
    len = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4 || len > s.len) {
        return 0;
    }
    uint32_t code = b[0] & (0xffu >> (len + 1));
    for (size_t idx = 1; idx < len; idx++) {
        if ((b[idx] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (b[idx] & 0x3fu);
    }
    if ((len == 3 && code < 0x800) || (len == 4 && (code < 0x10000 || code > 0x10ffff)) ||
        (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    return len;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int scan_escape(struct scan *s, struct err *err)
{
    char c = s->at + 1 < s->end ? s->at[1] : '\0';
    if (c == 'u') {
        for (int idx = 2; idx < 6; idx++) {
            if (s->at + idx >= s->end || !is_hex(s->at[idx])) {
                return scan_fail(s, err, "expected four hexadecimal digits after \\u");
            }
        }
        if (memcmp(s->at + 2, "0000", 4) == 0) {
            return scan_fail(s, err, "a string holds U+0000");
        }
        s->at += 6;
        return 0;
    }
    if (c == '\0' || !strchr("\"\\/bfnrt", c)) {
        return scan_fail(s, err, "unknown escape in a string");
    }
    s->at += 2;
    return 0;
}

/* A character of ASCII that stands for itself. */
static bool is_plain(char c)
{
    return (unsigned char)c < 0x80 && c >= 0x20 && c != '"' && c != '\\';
}

static int scan_string(struct scan *s, struct err *err)
{
    s->at++;
    while (s->at < s->end && *s->at != '"') {
        if (is_plain(*s->at)) {
            s->at++;
            continue;
        }
        if (*s->at == '\\') {
            if (scan_escape(s, err) < 0) {
                return -1;
            }
            continue;
        }
        size_t len = utf8_len((struct str){s->at, (size_t)(s->end - s->at)});
        if (len == 0 || (unsigned char)*s->at < 0x20) {
            return scan_fail(s, err, "bad UTF-8 or a control character in a string");
        }
        s->at += len;
    }
    if (s->at == s->end) {
        return scan_fail(s, err, "unterminated string");
    }
    s->at++;
    return 0;
}

static size_t scan_digits(struct scan *s)
{
    const char *from = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9') {
        s->at++;
    }
    return (size_t)(s->at - from);
}

static int scan_number(struct scan *s, struct err *err)
{
    if (*s->at == '-') {
        s->at++;
    }
    const char *from = s->at;
    size_t n_digits = scan_digits(s);
    if (n_digits == 0 || (n_digits > 1 && *from == '0') || n_digits > 40) {
        return scan_fail(s, err, "bad number");
    }
    if (s->at < s->end && *s->at == '.') {
        s->at++;
        n_digits = scan_digits(s);
        if (n_digits == 0 || n_digits > 40) {
            return scan_fail(s, err, "bad number");
        }
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-')) {
            s->at++;
        }
        n_digits = scan_digits(s);
        if (n_digits == 0 || n_digits > 3) {
            return scan_fail(s, err, "bad number");
        }
    }
    return 0;
}

static int scan_scalar(struct scan *s, struct err *err)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    if (*s->at == '"') {
        return scan_string(s, err);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        size_t len = strlen(WORDS[idx]);
        if ((size_t)(s->end - s->at) >= len && memcmp(s->at, WORDS[idx], len) == 0) {
            s->at += len;
            return 0;
        }
    }
    if (*s->at == '-' || (*s->at >= '0' && *s->at <= '9')) {
        return scan_number(s, err);
    }
    return scan_fail(s, err, "expected a JSON value");
}

/* "key" : of a member. */
static int scan_key(struct scan *s, struct err *err)
{
    skip_blank(s);
    if (s->at == s->end || *s->at != '"') {
        return scan_fail(s, err, "expected a key in double quotes");
    }
    if (scan_string(s, err) < 0) {
        return -1;
    }
    skip_blank(s);
    if (s->at == s->end || *s->at != ':') {
        return scan_fail(s, err, "expected a colon after the key");
    }
    s->at++;
    return 0;
}

/* Opens containers as long as the next token is one; stops after a scalar or an empty container, before closing
   brackets. */
static int scan_value(struct scan *s, char *closers, int *depth, struct err *err)
{
    for (;;) {
        skip_blank(s);
        if (s->at == s->end) {
            return scan_fail(s, err, "expected a JSON value, found the end");
        }
        if (*s->at != '{' && *s->at != '[') {
            return scan_scalar(s, err);
        }
        if (*depth == JSON_DEPTH_MAX - 1) {
            return scan_fail(s, err, "nested too deeply");
        }
        closers[(*depth)++] = *s->at == '{' ? '}' : ']';
        s->at++;
        skip_blank(s);
        if (s->at < s->end && *s->at == closers[*depth - 1]) {
            return 0;
        }
        if (closers[*depth - 1] == '}' && scan_key(s, err) < 0) {
            return -1;
        }
    }
}

int json_scan(struct str text, const char *name, struct err *err)
{
    struct scan s = {name, text.ptr, text.ptr, text.ptr + text.len};
    char closers[JSON_DEPTH_MAX];
    int depth = 0;
    if (scan_value(&s, closers, &depth, err) < 0) {
        return -1;
    }
    while (depth > 0) {
        skip_blank(&s);
        if (s.at == s.end) {
            return scan_fail(&s, err, "expected a comma or a closing bracket, found the end");
        }
        if (*s.at == closers[depth - 1]) {
            s.at++;
            depth--;
            continue;
        }
        if (*s.at != ',') {
            return scan_fail(&s, err, "expected a comma or a closing bracket");
        }
        s.at++;
        if (closers[depth - 1] == '}' && scan_key(&s, err) < 0) {
            return -1;
        }
        if (scan_value(&s, closers, &depth, err) < 0) {
            return -1;
        }
    }
    skip_blank(&s);
    return s.at == s.end ? 0 : scan_fail(&s, err, "expected nothing after the document");
}
