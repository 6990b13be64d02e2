/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/logtime.h"

#include "base/str.h"

#include <math.h>

enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, PARTS };
#define PART_LETTERS "YMDhms" /* in a shape */

#define FIGURE_MAX 1e30 /* far above any rate, time or count that a machine reaches */

/* Days since 1970-01-01 in the Gregorian calendar. Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms",
   days_from_civil (read 2026-11). */
static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400; /* years here are 1000 to 9999 */
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

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

/* The text behind a shape: a letter of it is a digit of its part, "-" is "-" or "/", "T" is a blank or T; ptr NULL: it does not fit. */
static struct str behind(const char *shape, struct str text, int64_t parts[PARTS])
{
    for (; *shape; shape++, text = str_sub(text, 1, SIZE_MAX)) {
        const char *part = strchr(PART_LETTERS, *shape);
        char c = text.len ? text.ptr[0] : '\0';
        if (part ? !is_digit(c)
                 : c != *shape && !(*shape == '-' && c == '/') && !(*shape == 'T' && c == ' ')) {
            return (struct str){NULL, 0};
        }
        if (part) {
            parts[part - PART_LETTERS] = 10 * parts[part - PART_LETTERS] + (c - '0');
        }
    }
    return text;
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

bool logtime_parse(struct str text, double *ret_s)
{
    static const char *const SHAPES[] = {"YYYY-MM-DDThh:mm:ss", "MM/DD hh:mm:ss", "MMDD hh:mm:ss"};
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
                *ret_s = (double)(days_of_date(p[YEAR], p[MONTH], p[DAY]) * 86400 + p[HOUR] * 3600 +
                                  p[MINUTE] * 60 + p[SECOND]) +
                         fraction;
            }
            return is_moment;
        }
    }
    return parse_unix(text, ret_s);
}

static bool is_word(struct str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t idx = 0; idx < len; idx++) {
        if (idx >= text.len || (text.ptr[idx] | 0x20) != word[idx]) {
            return false;
        }
    }
    return text.len == len;
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

/* Anything but a plain short decimal: signs, exponents, long mantissas, words. */
static enum number_kind parse_rare(struct str text, double *ret_value)
{
    static const char *const WORDS[] = {"nan", "inf", "infinity"};
    struct str bare = text;
    if (bare.len && (bare.ptr[0] == '-' || bare.ptr[0] == '+')) {
        bare = str_sub(bare, 1, bare.len);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        if (is_word(bare, WORDS[idx])) {
            return NUMBER_NOT_FINITE;
        }
    }
    if (str_to_f64(text, ret_value, ERR_IGNORED) == 0) {
        return NUMBER_OK;
    }
    /* "1e999" is a number, although no double can hold it. */
    for (size_t idx = 0; idx < text.len; idx++) {
        if (!strchr("0123456789.eE+-", text.ptr[idx])) {
            return NUMBER_NONE;
        }
    }
    return str_find(text, STR_LIT("e")) > 0 || str_find(text, STR_LIT("E")) > 0 || text.len > 64
               ? NUMBER_NOT_FINITE
               : NUMBER_NONE;
}

enum number_kind lognumber_parse(struct str text, double *ret_value)
{
    enum number_kind kind = parse_short(text, ret_value) ? NUMBER_OK : parse_rare(text, ret_value);
    bool is_far = kind == NUMBER_OK && fabs(*ret_value) > FIGURE_MAX;
    return is_far ? NUMBER_NOT_FINITE : kind;
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

/* Position of the next "ss" at or after `from`, or the text's length: 16 places at a time, of which the last ones may have been seen. */
static size_t next_double_s(struct str text, size_t from)
{
    typedef int8_t lanes __attribute__((vector_size(16)));
    typedef uint64_t halves __attribute__((vector_size(16)));
    size_t at = from;
    for (bool is_last = text.len < 17; !is_last; at += 16) {
        lanes one;
        lanes other;
        is_last = at + 17 >= text.len;
        at = is_last ? text.len - 17 : at;
        memcpy(&one, text.ptr + at, 16);
        memcpy(&other, text.ptr + at + 1, 16);
        halves both = (halves)((one == 's') & (other == 's'));
        if (both[0] | both[1]) {
            at += both[0] ? 0 : 8;
            break;
        }
        if (is_last) {
            return text.len;
        }
    }
    for (at = at > from ? at : from; at + 2 <= text.len; at++) {
        if (text.ptr[at] == 's' && text.ptr[at + 1] == 's') {
            return at;
        }
    }
    return text.len;
}

static bool is_between(char c)
{
    return c == ' ' || c == ':' || c == '"' || c == '\'' || c == '=' || c == '+' || c == '-';
}

/* "val_loss", "eval/loss": whether the loss whose name ends before `at` is an evaluation's. */
static bool is_eval_loss(struct str text, size_t at)
{
    struct str before = str_sub(text, 0, at);
    size_t from = before.len - (before.len > 0);
    return before.len > 0 && strchr("_/.", before.ptr[from]) &&
           ends_with_any(str_sub(before, 0, from), "val eval test dev valid validation");
}

/* Whether the word at the beginning of `text` is "nan", "inf" or "infinity" by itself. */
static bool is_no_number(struct str text)
{
    size_t end =
        str_span(text, 0, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    double ignored;
    return lognumber_parse(str_sub(text, 0, end), &ignored) == NUMBER_NOT_FINITE;
}

bool lognumber_lacks_loss(struct str text, bool *ret_is_word)
{
    *ret_is_word = false;
    for (size_t at = 0; (at = next_double_s(text, at)) < text.len; at += 2) {
        size_t end = at + 2;
        if (at < 2 || (text.ptr[at - 2] | 0x20) != 'l' || text.ptr[at - 1] != 'o') {
            continue;
        }
        while (end < text.len && is_between(text.ptr[end])) {
            end++;
        }
        if (end < text.len && ((text.ptr[end] | 0x20) == 'n' || (text.ptr[end] | 0x20) == 'i')) {
            *ret_is_word =
                is_no_number(str_sub(text, end, text.len)) && !is_eval_loss(text, at - 2);
            return true;
        }
    }
    return false;
}

/* As a separate word, as a shell prints it. */
bool logline_says_killed(struct str text)
{
    const struct str word = STR_LIT("Killed");
    bool is_there = false;
    for (size_t at = 0; at + word.len <= text.len; at++) {
        is_there = is_there || ((at == 0 || text.ptr[at - 1] == ' ') &&
                                str_eq(str_sub(text, at, word.len), word) &&
                                (at + word.len == text.len || text.ptr[at + word.len] == ' '));
    }
    return is_there;
}

/* "[ FAIL ]", "[  FAILED  ]", "failed to meet": not "0 FAILED" nor "FAILED: 0". */
bool logline_says_failed(struct str text)
{
    int64_t at = str_find(text, STR_LIT("FAILED"));
    if (str_find(text, STR_LIT("FAIL ]")) >= 0 || str_find(text, STR_LIT("failed to meet")) >= 0) {
        return true;
    }
    struct str before = str_trim(str_sub(text, 0, at > 0 ? (size_t)at : 0));
    struct str after = at >= 0 ? str_sub(text, (size_t)at + 6, text.len) : STR_EMPTY;
    bool is_bare =
        !before.len || !is_digit(before.ptr[before.len - 1]) || (before.ptr[before.len - 1] != '0');
    size_t skip = 0;
    while (skip < after.len && strchr(" :=", after.ptr[skip])) {
        skip++;
    }
    return at >= 0 && is_bare && !(skip < after.len && after.ptr[skip] == '0') &&
           !(after.len && (after.ptr[0] == '_' || is_digit(after.ptr[0]))) &&
           !(at > 0 && text.ptr[at - 1] == '_');
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
