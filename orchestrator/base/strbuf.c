/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"
#include "base/bytes.h"

#include <math.h>

char STRBUF_NONE[1];

void strbuf_init(struct strbuf *buf, size_t cap_bytes)
{
    *buf = STRBUF(cap_bytes);
}

void strbuf_release(struct strbuf *buf)
{
    if (buf->size_bytes) {
        free(buf->ptr);
    }
    *buf = (struct strbuf){.ptr = STRBUF_NONE};
}

void strbuf_clear(struct strbuf *buf)
{
    buf->len = 0;
    buf->is_full = false;
    if (buf->size_bytes) {
        buf->ptr[0] = '\0';
    }
}

/* True when `extra` more bytes fit under the cap; grows by doubling. */
static bool reserve(struct strbuf *buf, size_t extra)
{
    size_t need;
    size_t grown = buf->size_bytes ? buf->size_bytes : 64;
    if (buf->is_full || __builtin_add_overflow(buf->len, extra, &need) || need > buf->cap_bytes) {
        buf->is_full = true;
        return false;
    }
    if (need < buf->size_bytes) {
        return true;
    }
    while (grown <= need) {
        grown *= 2;
    }
    buf->ptr = xrealloc(buf->size_bytes ? buf->ptr : NULL, grown);
    buf->size_bytes = grown;
    buf->ptr[buf->len] = '\0';
    return true;
}

void strbuf_add(struct strbuf *buf, const void *ptr, size_t len)
{
    if (len == 0 || !reserve(buf, len)) {
        return;
    }
    memcpy(buf->ptr + buf->len, ptr, len);
    buf->len += len;
    buf->ptr[buf->len] = '\0';
}

void strbuf_add_z(struct strbuf *buf, const char *z)
{
    strbuf_add(buf, z, strlen(z));
}

void strbuf_add_str(struct strbuf *buf, struct str s)
{
    strbuf_add(buf, s.ptr, s.len);
}

void strbuf_add_plain(struct strbuf *buf, struct str s)
{
    size_t from = buf->len;
    strbuf_add_str(buf, s);
    if (buf->len > from) {
        text_plain_line(buf->ptr + from, buf->len - from);
    }
}

void strbuf_add_char(struct strbuf *buf, char c)
{
    if (reserve(buf, 1)) {
        buf->ptr[buf->len++] = c;
        buf->ptr[buf->len] = '\0';
    }
}

void strbuf_printf(struct strbuf *buf, const char *fmt, ...)
{
    va_list args;
    va_list again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len > 0 && reserve(buf, (size_t)len)) {
        vsnprintf(buf->ptr + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

/* Decimal digits that end at `end`: where they begin. */
static char *digits_before(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return end;
}

void strbuf_add_le32(struct strbuf *buf, uint32_t value)
{
    put_le32(&value, value);
    strbuf_add(buf, &value, sizeof(value));
}

void strbuf_add_i64(struct strbuf *buf, int64_t value)
{
    char text[24];
    char *end = text + sizeof(text);
    char *at = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0) {
        *--at = '-';
    }
    strbuf_add(buf, at, (size_t)(end - at));
}

/* digits / 10^decimals, less than 10^15 digits and at least one decimal. */
static void add_decimal(struct strbuf *buf, bool is_negative, uint64_t digits, int decimals)
{
    char text[24];
    char *end = text + sizeof(text);
    char *point = end - decimals;
    char *at = digits_before(end, digits);
    while (at >= point) {
        *--at = '0';
    }
    memmove(at - 1, at, (size_t)(point - at));
    point[-1] = '.';
    at--;
    if (is_negative) {
        *--at = '-';
    }
    strbuf_add(buf, at, (size_t)(end - at));
}

/* Most values are decimals of few digits: the least number of decimals at which whole / 10^decimals is the value gives its
   shortest text. Both are exact doubles, so the quotient is the double nearest to that decimal (Clinger 1990). */
static bool add_short_f64(struct strbuf *buf, double value)
{
    double power = 1;
    double size = fabs(value);
    if (size < 1e-4 || size >= 1e9) { /* %g changes to exponents below; above, digits run out */
        return false;
    }
    for (int decimals = 1; decimals <= 9; decimals++) {
        power *= 10;
        if (size * power >= 1e15) {
            return false;
        }
        double whole = (double)(uint64_t)(size * power + 0.5);
        if (whole / power == size) {
            add_decimal(buf, value < 0, (uint64_t)whole, decimals);
            return true;
        }
    }
    return false;
}

static bool reads_back(double value, int digits, char *text, size_t size)
{
    snprintf(text, size, "%.*g", digits, value);
    return strtod(text, NULL) == value;
}

void strbuf_add_f64(struct strbuf *buf, double value)
{
    char text[40];
    ASSERT(isfinite(value));
    if (value == floor(value) && fabs(value) < 1e15) {
        strbuf_add_i64(buf, (int64_t)value);
        return;
    }
    if (add_short_f64(buf, value)) {
        return;
    }
    /* What reads back with some digits does so with more: most that come here need all of 17. */
    for (int digits = reads_back(value, 15, text, sizeof(text)) ? 6 : 16; digits <= 17; digits++) {
        if (reads_back(value, digits, text, sizeof(text))) {
            break;
        }
    }
    strbuf_add_z(buf, text);
}

void shq_append(struct strbuf *buf, struct str word)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+:,./-";
    if (word.len && str_span(word, 0, PLAIN) == word.len) {
        strbuf_add(buf, word.ptr, word.len);
        return;
    }
    strbuf_add_char(buf, '\'');
    for (size_t idx = 0; idx < word.len; idx++) {
        if (word.ptr[idx] == '\'') {
            strbuf_add_z(buf, "'\\''");
        } else {
            strbuf_add_char(buf, word.ptr[idx]);
        }
    }
    strbuf_add_char(buf, '\'');
}
