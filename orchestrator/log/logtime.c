/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/logtime.h"

#include "base/str.h"

#include <math.h>
#include <strings.h>

enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, PARTS };

#define FIGURE_MAX 1e30 /* far above any rate, time or count that a machine reaches */

static bool parse_unix(struct str text, double *ret_s)
{
    static const struct {
        size_t digits;
        double per_s;
    } UNITS[] = {{13, 1e3}, {16, 1e6}, {19, 1e9}};
    double value;
    if (lognumber_parse(text, &value) != NUMBER_OK || value < 0) {
        return false;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(UNITS); idx++) {
        if (text.len == UNITS[idx].digits && str_find(text, STR_LIT(".")) < 0) {
            *ret_s = value / UNITS[idx].per_s;
            return true;
        }
    }
    *ret_s = value;
    return value < 1e11; /* seconds until the year 5138 */
}

/* The text behind a shape: a digit of it is a digit of the part of that number, "-" is "-" or "/", "T" is a blank or T; ptr NULL:
   it does not fit. */
static struct str behind(const char *shape, struct str text, int64_t parts[PARTS])
{
    size_t at = 0;
    for (; shape[at]; at++) {
        char c = at < text.len ? text.ptr[at] : '\0';
        if (is_digit(shape[at]) ? !is_digit(c)
                                : c != shape[at] && !(shape[at] == '-' && c == '/') &&
                                      !(shape[at] == 'T' && c == ' ')) {
            return (struct str){NULL, 0};
        }
        if (is_digit(c)) {
            parts[shape[at] - '0'] = 10 * parts[shape[at] - '0'] + (c - '0');
        }
    }
    return str_sub(text, at, SIZE_MAX);
}

/* A fraction after "." or ",", then nothing or Z: UTC is assumed anyway. */
static bool take_fraction(struct str text, double *ret)
{
    double top = 0;
    double place = 1;
    size_t at = 0;
    if (text.len && (text.ptr[0] == '.' || text.ptr[0] == ',')) {
        for (at = 1; at < text.len && is_digit(text.ptr[at]); at++) {
            top = 10 * top + (text.ptr[at] - '0');
            place *= 10;
        }
    }
    *ret = top / place;
    return at == text.len || (at + 1 == text.len && text.ptr[at] == 'Z');
}

/* Days since 1970-01-01 in the Gregorian calendar, of years from 1 on: they begin in March, so that a leap day is a year's last. timegm
   takes a tenth of the time of a log whose lines have one. */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month < 3);
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * ((month + 9) % 12) + 2) / 5 + day - 719469;
}

bool logtime_parse(struct str text, double *ret_s)
{
    static const char *const SHAPES[] = {"0000-11-22T33:44:55", "11/22 33:44:55", "1122 33:44:55"};
    for (size_t idx = 0; idx < ARRAY_LEN(SHAPES); idx++) {
        int64_t p[PARTS] = {0};
        double fraction;
        struct str rest = behind(SHAPES[idx], text, p);
        if (rest.ptr) {
            p[YEAR] = idx ? 2000 : p[YEAR];
            bool is_moment = take_fraction(rest, &fraction) && p[YEAR] >= 1000 && p[MONTH] >= 1 &&
                             p[MONTH] <= 12 && p[DAY] >= 1 && p[DAY] <= 31 && p[HOUR] <= 23 &&
                             p[MINUTE] <= 59 && p[SECOND] <= 60;
            if (is_moment) {
                *ret_s = (double)(86400 * days_of_date(p[YEAR], p[MONTH], p[DAY]) + 3600 * p[HOUR] +
                                  60 * p[MINUTE] + p[SECOND]) +
                         fraction;
            }
            return is_moment;
        }
    }
    return parse_unix(text, ret_s);
}

/* Digits with at most one point, and small enough that the quotient of two exact doubles is the nearest double:
   mantissa under 2^53, at most 22 places. Source: W. Clinger, "How to Read Floating Point Numbers Accurately", 1990. */
static bool parse_short(struct str text, double *ret_value)
{
    static const double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t mantissa = 0;
    size_t places = 0;
    size_t digits = 0;
    bool has_point = false;
    for (size_t idx = 0; idx < text.len; idx++) {
        unsigned digit = (unsigned char)text.ptr[idx] - (unsigned)'0';
        if (digit <= 9 && digits < 18) {
            mantissa = 10 * mantissa + digit;
            digits++;
            places += has_point;
        } else if (text.ptr[idx] == '.' && !has_point) {
            has_point = true;
        } else {
            return false;
        }
    }
    if (digits == 0 || mantissa >= UINT64_C(1) << 53) {
        return false;
    }
    *ret_value = (double)mantissa / POWERS[places];
    return true;
}

/* "1e999" is a number, although no double can hold it. */
enum number_kind lognumber_parse(struct str text, double *ret_value)
{
    static const char *const WORDS[] = {"nan", "inf", "infinity"};
    if (parse_short(text, ret_value) || str_to_f64(text, ret_value, ERR_IGNORED) == 0) {
        return fabs(*ret_value) > FIGURE_MAX ? NUMBER_NOT_FINITE : NUMBER_OK;
    }
    struct str bare = str_sub(text, text.len && strchr("+-", text.ptr[0]), SIZE_MAX);
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        if (bare.len == strlen(WORDS[idx]) && strncasecmp(bare.ptr, WORDS[idx], bare.len) == 0) {
            return NUMBER_NOT_FINITE;
        }
    }
    return str_is_made_of(text, "0-9.eE+-") &&
                   (str_cspan(text, 1, "eE") < text.len || text.len > 64)
               ? NUMBER_NOT_FINITE
               : NUMBER_NONE;
}

bool logwhole_parse(struct str text, int64_t max, int64_t *ret_value)
{
    int64_t value = 0;
    if (text.len == 0 || text.len > 18) { /* 18 digits fit, and no log has more */
        return false;
    }
    for (size_t idx = 0; idx < text.len; idx++) {
        unsigned digit = (unsigned char)text.ptr[idx] - (unsigned)'0';
        if (digit > 9) {
            return false;
        }
        value = 10 * value + (int64_t)digit;
    }
    *ret_value = value;
    return value <= max;
}

struct str lognumber_ungroup(struct str text, char *buf, size_t size)
{
    size_t len = 0;
    size_t whole = str_cspan(text, 0, ".");
    bool has_comma = memchr(text.ptr, ',', whole) != NULL && text.ptr[0] != '0';
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        bool is_place = has_comma && idx < whole && (whole - idx) % 4 == 0;
        bool is_comma = is_place && c == ',' && idx > 0;
        if (len == size || is_place != is_comma ||
            (idx < whole && !is_comma && !(c >= '0' && c <= '9'))) {
            return text;
        }
        buf[len] = c;
        len += !is_comma;
    }
    return (struct str){buf, len};
}

bool logspan_parse(struct str text, double *ret_s)
{
    struct str part;
    double total = 0;
    while (str_next(&text, ':', &part)) {
        double value;
        if (lognumber_parse(part, &value) != NUMBER_OK) {
            return false;
        }
        total = total * 60 + value;
    }
    *ret_s = total;
    return true;
}
