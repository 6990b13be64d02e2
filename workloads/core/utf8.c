/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/utf8.h"

static bool is_between(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

size_t utf8_char_bytes(const char *ptr, size_t len)
{
    const unsigned char *c = (const unsigned char *)ptr;
    if (len == 0) {
        return 0;
    }
    if (c[0] < 0x80) {
        return 1;
    }
    /* Row of table 3-7: the range of the second byte depends on the first. */
    size_t n = is_between(c[0], 0xC2, 0xDF)   ? 2
               : is_between(c[0], 0xE0, 0xEF) ? 3
               : is_between(c[0], 0xF0, 0xF4) ? 4
                                              : 0;
    if (n == 0 || len < n) {
        return 0;
    }
    unsigned char low = c[0] == 0xE0 ? 0xA0 : c[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = c[0] == 0xED ? 0x9F : c[0] == 0xF4 ? 0x8F : 0xBF;
    if (!is_between(c[1], low, high)) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if (!is_between(c[i], 0x80, 0xBF)) {
            return 0;
        }
    }
    return n;
}

size_t utf8_encode(uint32_t code, char text[4])
{
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--) {
        text[i] = (char)(0x80U | (code & 0x3FU));
        code >>= 6;
    }
    text[0] = (char)(lead[n] | code);
    return n;
}
