/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include <math.h>

static char EMPTY_TEXT[1];

void strbuf_init(struct strbuf *buf, size_t cap_bytes)
{
    *buf = (struct strbuf){.ptr = EMPTY_TEXT, .cap_bytes = cap_bytes};
}

void strbuf_release(struct strbuf *buf)
{
    if (buf->size_bytes) {
        free(buf->ptr);
    }
    *buf = (struct strbuf){.ptr = EMPTY_TEXT};
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
    strbuf_add(buf, &c, 1);
}

void strbuf_printf(struct strbuf *buf, const char *fmt, ...)
{
    va_list args;
    va_list again;
    int len;
    va_start(args, fmt);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len > 0 && reserve(buf, (size_t)len)) {
        vsnprintf(buf->ptr + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

/* Most values are decimals of few digits: the smallest number of decimals for which whole / 10^decimals is the value gives
   its shortest text. Both are exact doubles, so the quotient is the double nearest to that decimal (Clinger 1990). */
static bool add_short_f64(struct strbuf *buf, double value)
{
    char text[40];
    double power = 1;
    double size = fabs(value);
    if (size < 1e-4 || size >= 1e9) { /* %g changes to exponents below; above, digits run out */
        return false;
    }
    for (int decimals = 1; decimals <= 9; decimals++) {
        double whole;
        power *= 10;
        whole = nearbyint(size * power);
        if (whole >= 1e15) {
            return false;
        }
        if (whole / power == size) {
            int64_t digits = (int64_t)whole;
            int64_t unit = (int64_t)power;
            snprintf(text, sizeof(text), "%s%" PRId64 ".%0*" PRId64, value < 0 ? "-" : "",
                     digits / unit, decimals, digits % unit);
            strbuf_add_z(buf, text);
            return true;
        }
    }
    return false;
}

void strbuf_add_f64(struct strbuf *buf, double value)
{
    char text[40];
    ASSERT(isfinite(value));
    if (value == floor(value) && fabs(value) < 1e15) {
        strbuf_printf(buf, "%.0f", value == 0.0 ? 0.0 : value);
        return;
    }
    if (add_short_f64(buf, value)) {
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    strbuf_add_z(buf, text);
}

void shq_append(struct strbuf *buf, struct str word)
{
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
