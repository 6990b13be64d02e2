/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <math.h>

#define NUMBER_LEN_MAX 64

bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

const void *str_named(const void *items, size_t n, size_t size, size_t at, struct str name)
{
    const char *item = items;
    while (n && !str_eq(*(const struct str *)(const void *)(item + at), name)) {
        item += size;
        n--;
    }
    return n ? item : NULL;
}

const void *z_named(const void *items, size_t n, size_t size, size_t at, struct str name)
{
    const char *item = items;
    while (n && !str_eq_z(name, *(const char *const *)(const void *)(item + at))) {
        item += size;
        n--;
    }
    return n ? item : NULL;
}

bool str_eq_any(struct str a, const char *const *list)
{
    for (; *list; list++) {
        if (str_eq_z(a, *list)) {
            return true;
        }
    }
    return false;
}

bool str_is_in(struct str s, const struct str *list, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq(s, list[idx])) {
            return true;
        }
    }
    return false;
}

int str_cmp(struct str a, struct str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    if (order != 0) {
        return order;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

int str_cmp_first(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

int str_cmp_z(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_in(char c, const char *set)
{
    return c && strchr(set, c);
}

size_t str_span(struct str s, size_t at, const char *set)
{
    while (at < s.len && is_in(s.ptr[at], set)) {
        at++;
    }
    return at;
}

size_t str_cspan(struct str s, size_t at, const char *set)
{
    while (at < s.len && !is_in(s.ptr[at], set)) {
        at++;
    }
    return at;
}

struct str str_rtrim(struct str s, size_t n_min, const char *set)
{
    while (s.len > n_min && is_in(s.ptr[s.len - 1], set)) {
        s.len--;
    }
    return s;
}

struct str str_rcut(struct str s, size_t n_min, const char *set)
{
    while (s.len > n_min && !is_in(s.ptr[s.len - 1], set)) {
        s.len--;
    }
    return s;
}

struct str str_trim(struct str s)
{
    while (s.len && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_blank(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

struct str str_sub(struct str s, size_t from, size_t len)
{
    if (from > s.len) {
        from = s.len;
    }
    if (len > s.len - from) {
        len = s.len - from;
    }
    return (struct str){s.ptr ? s.ptr + from : NULL, len};
}

/* Bytes. memmem, which is never quadratic, reads text several times slower than memchr. */
#define FIND_SHORT_MAX 8

int64_t str_find(struct str haystack, struct str needle)
{
    if (needle.len == 0) {
        return 0;
    }
    if (haystack.len < needle.len) {
        return -1;
    }
    if (needle.len > FIND_SHORT_MAX) {
        const char *hit = memmem(haystack.ptr, haystack.len, needle.ptr, needle.len);
        return hit ? hit - haystack.ptr : -1;
    }
    const char *end = haystack.ptr + haystack.len - needle.len + 1;
    for (const char *at = haystack.ptr; (at = memchr(at, needle.ptr[0], (size_t)(end - at)));
         at++) {
        if (memcmp(at, needle.ptr, needle.len) == 0) {
            return at - haystack.ptr;
        }
    }
    return -1;
}

bool str_next(struct str *rest, char sep, struct str *ret_part)
{
    if (!rest->ptr) {
        return false;
    }
    const char *hit = rest->len ? memchr(rest->ptr, sep, rest->len) : NULL;
    if (!hit) {
        *ret_part = *rest;
        *rest = STR_EMPTY;
        return true;
    }
    *ret_part = (struct str){rest->ptr, (size_t)(hit - rest->ptr)};
    *rest = (struct str){hit + 1, rest->len - ret_part->len - 1};
    return true;
}

char *str_z(struct arena *arena, struct str s)
{
    return arena_strndup(arena, s.ptr, s.len);
}

struct str str_dup(struct arena *arena, struct str s)
{
    return (struct str){arena_strndup(arena, s.ptr, s.len), s.len};
}

int str_to_i64(struct str s, int64_t min, int64_t max, int64_t *ret_value, struct err *err)
{
    int64_t value = 0;
    bool is_negative = s.len && s.ptr[0] == '-';
    size_t idx = is_negative ? 1 : 0;
    if (idx == s.len) {
        return err_set(err, ERR_PARSE, "expected a whole number, found \"%.*s\"", STR_ARG(s));
    }
    for (; idx < s.len; idx++) {
        int digit = s.ptr[idx] - '0';
        if (digit < 0 || digit > 9) {
            return err_set(err, ERR_PARSE, "expected a whole number, found \"%.*s\"", STR_ARG(s));
        }
        if (__builtin_mul_overflow(value, 10, &value) ||
            (is_negative ? __builtin_sub_overflow(value, digit, &value)
                         : __builtin_add_overflow(value, digit, &value))) {
            return err_set(err, ERR_PARSE, "number out of range: \"%.*s\"", STR_ARG(s));
        }
    }
    if (value < min || value > max) {
        return err_set(err, ERR_PARSE, "expected %" PRId64 " to %" PRId64 ", found %" PRId64, min,
                       max, value);
    }
    *ret_value = value;
    return 0;
}

/* Only digits, sign, point and exponent may occur: keeps "nan", "inf", "0x1p3" and blanks out of strtod. */
static bool is_plain_decimal(struct str s)
{
    bool has_digit = false;
    for (size_t idx = 0; idx < s.len; idx++) {
        char c = s.ptr[idx];
        if (c >= '0' && c <= '9') {
            has_digit = true;
        } else if (c == '+') {
            if (idx == 0 || (s.ptr[idx - 1] != 'e' && s.ptr[idx - 1] != 'E')) {
                return false;
            }
        } else if (c != '-' && c != '.' && c != 'e' && c != 'E') {
            return false;
        }
    }
    return has_digit;
}

int str_to_f64(struct str s, double *ret_value, struct err *err)
{
    char buf[NUMBER_LEN_MAX + 1];
    char *end;
    if (s.len > NUMBER_LEN_MAX || !is_plain_decimal(s)) {
        return err_set(err, ERR_PARSE, "expected a finite decimal number, found \"%.*s\"",
                       STR_ARG(str_sub(s, 0, NUMBER_LEN_MAX)));
    }
    memcpy(buf, s.ptr, s.len);
    buf[s.len] = '\0';
    double value = strtod(buf, &end);
    if (end != buf + s.len || !isfinite(value)) {
        return err_set(err, ERR_PARSE, "expected a finite decimal number, found \"%.*s\"",
                       STR_ARG(s));
    }
    *ret_value = value;
    return 0;
}

int str_decimals(struct str s)
{
    int64_t point = str_find(s, STR_LIT("."));
    int count = 0;
    if (point < 0) {
        return 0;
    }
    for (size_t idx = (size_t)point + 1; idx < s.len && s.ptr[idx] >= '0' && s.ptr[idx] <= '9';
         idx++) {
        count++;
    }
    return count;
}

/* Source: RFC 3629, section 4. */
size_t utf8_at(struct str s, uint32_t *ret_code)
{
    const unsigned char *text = (const unsigned char *)s.ptr;
    if (s.len == 0 || (text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4) {
        return 0;
    }
    size_t n = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? text[0] : text[0] & (0xffu >> (n + 1));
    for (size_t idx = 1; idx < n; idx++) {
        if (idx == s.len || (text[idx] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[idx] & 0x3f);
    }
    *ret_code = code;
    return (n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
                   (n == 4 && (code < 0x10000 || code > 0x10ffff))
               ? 0
               : n;
}

/* Source: Unicode 15, Bidi_Control; U+2028 and U+2029 end a line; U+FEFF is invisible. */
static bool steers(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ||
           code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

void text_plain(char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint32_t code = 0;
        if (text[at] >= 0x20 && text[at] < 0x7f) {
            at++;
            continue;
        }
        size_t n = utf8_at((struct str){text + at, len - at}, &code);
        if (n == 0 || steers(code)) {
            n = n ? n : 1;
            memset(text + at, '?', n);
        }
        at += n;
    }
}

/* Length of the colour sequence at `text`, or 0. */
static size_t paint_len(const char *text, size_t len)
{
    static const char *const PAINTS[] = {"\033[0m",  "\033[1m",  "\033[31m",
                                         "\033[32m", "\033[33m", "\033[90m"};
    for (size_t idx = 0; idx < ARRAY_LEN(PAINTS); idx++) {
        size_t n = strlen(PAINTS[idx]);
        if (n <= len && memcmp(text, PAINTS[idx], n) == 0) {
            return n;
        }
    }
    return 0;
}

void text_plain_painted(char *text, size_t len)
{
    size_t from = 0;
    const char *escape = len ? memchr(text, '\033', len) : NULL;
    while (escape) {
        size_t at = (size_t)(escape - text);
        size_t paint = paint_len(text + at, len - at);
        if (paint) {
            text_plain(text + from, at - from);
            from = at + paint;
        }
        at += paint ? paint : 1;
        escape = memchr(text + at, '\033', len - at);
    }
    text_plain(text + from, len - from);
}

void text_plain_line(char *text, size_t len)
{
    text_plain(text, len);
    for (size_t at = 0; at < len; at++) {
        text[at] = text[at] == '\n' || text[at] == '\t' ? '?' : text[at];
    }
}

void text_hide_logins(char *text, size_t len)
{
    for (size_t at = 0; at + 3 < len; at++) {
        size_t colon = 0;
        if (memcmp(text + at, "://", 3) != 0) {
            continue;
        }
        at += 3;
        for (size_t idx = at; idx < len && !strchr("/ \t\n\"'?#", text[idx]); idx++) {
            if (text[idx] == ':' && !colon) {
                colon = idx;
            }
            if (text[idx] == '@' && colon) {
                memset(text + colon + 1, '*', idx - colon - 1);
            }
        }
    }
}

struct str str_vprintf(struct arena *arena, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    ASSERT(len >= 0);
    char *text = arena_alloc(arena, (size_t)len + 1, 1);
    vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return (struct str){text, (size_t)len};
}

struct str str_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct str text = str_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}

static bool is_in_set(char c, const char *set)
{
    for (; *set; set++) {
        bool is_range = set[1] == '-' && set[2];
        if (is_range ? c >= set[0] && c <= set[2] : c == set[0]) {
            return true;
        }
        set += is_range ? 2 : 0;
    }
    return false;
}

bool str_is_made_of(struct str s, const char *set)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        if (!is_in_set(s.ptr[idx], set)) {
            return false;
        }
    }
    return s.len > 0;
}

int word_at(struct str word, const char *words)
{
    for (int n = 0;; n++) {
        size_t len = strcspn(words, " ");
        if (len == word.len && memcmp(words, word.ptr, len) == 0) {
            return n;
        }
        if (!words[len]) {
            return -1;
        }
        words += len + 1;
    }
}

size_t ends_with_any(struct str text, const char *words)
{
    for (struct str rest = str_of(words), word; str_next(&rest, ' ', &word);) {
        if (str_ends(text, word)) {
            return word.len;
        }
    }
    return 0;
}

struct str quote_last_line(struct str text)
{
    struct str line, last = STR_EMPTY;
    while (str_next(&text, '\n', &line)) {
        line = str_trim(line);
        last = line.len ? line : last;
    }
    return last;
}

char *quote_shown(struct arena *arena, struct str line)
{
    struct str part = str_sub(line, 0, QUOTE_SHOWN_MAX);
    char *text = str_z(arena, part);
    text_plain_line(text, part.len);
    return text;
}
