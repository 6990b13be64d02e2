/* SPDX-License-Identifier: Apache-2.0 */
/* Text as a view (pointer and length, not NUL-terminated), and strict number parsing. Views own nothing. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct str {
    const char *ptr;
    size_t len;
};

#define STR_EMPTY    ((struct str){NULL, 0})
#define STR_LIT(lit) ((struct str){(lit), sizeof(lit) - 1})
#define STR_ARG(s)   (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct str str_of(const char *z)
{
    return (struct str){z, z ? strlen(z) : 0};
}

/* "1 case", "2 cases": what follows the noun. */
static inline const char *plural_s(size_t n)
{
    return n == 1 ? "" : "s";
}

bool str_eq(struct str a, struct str b);
static inline bool str_eq_z(struct str a, const char *z)
{
    bool may_be = !z || a.len == 0 || a.ptr[0] == z[0]; /* most differ at once */
    return may_be && str_eq(a, str_of(z));
}
/* In place, same length: replaces with "?" whatever would control a terminal or reorder its text (control characters except tab
   and line end, C1 also as UTF-8, bidirectional marks, bytes that are not UTF-8). */
void text_plain(char *text, size_t len);
/* The same for coloured text: sequences that set or end a colour or bold face ("ESC[31m") stay. */
void text_plain_painted(char *text, size_t len);
/* The same for text that must stay on one line: line ends and tabs become "?", too. */
void text_plain_line(char *text, size_t len);
/* Likewise each byte of the password in "scheme://user:password@host" becomes "*". */
void text_hide_logins(char *text, size_t len);
/* The first of n items whose `member`, a struct str (Z_NAMED: a const char *), is that name; NULL: none. */
#define STR_NAMED(items, n, member, name)                                                          \
    ((typeof(&(items)[0]))(uintptr_t)str_named((items), (n), sizeof((items)[0]),                   \
                                               offsetof(typeof((items)[0]), member), (name)))
#define Z_NAMED(items, n, member, name)                                                            \
    ((typeof(&(items)[0]))(uintptr_t)z_named((items), (n), sizeof((items)[0]),                     \
                                             offsetof(typeof((items)[0]), member), (name)))
const void *str_named(const void *items, size_t n, size_t size, size_t at, struct str name);
const void *z_named(const void *items, size_t n, size_t size, size_t at, struct str name);
bool str_eq_any(struct str a, const char *const *list); /* ended by NULL */
bool str_is_in(struct str s, const struct str *list, size_t n);
static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
int str_cmp(struct str a, struct str b); /* bytewise; <0, 0, >0 */
/* For qsort, of struct str and of structs that begin with one; of char *. */
int str_cmp_first(const void *a, const void *b);
int str_cmp_z(const void *a, const void *b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
/* From `at` on, where the first byte is that is not in the set, or (str_cspan) is; the end, if there is none. */
#define DIGITS "0123456789"
size_t str_span(struct str s, size_t at, const char *set);
size_t str_cspan(struct str s, size_t at, const char *set);
/* Without the last bytes that are in the set, or (str_rcut) are not, but for the first n_min. */
struct str str_rtrim(struct str s, size_t n_min, const char *set);
struct str str_rcut(struct str s, size_t n_min, const char *set);
struct str str_trim(struct str s);                         /* blanks, tabs, CR, LF at both ends */
struct str str_sub(struct str s, size_t from, size_t len); /* clipped to s */

/* Position of the first occurrence, or -1. */
int64_t str_find(struct str haystack, struct str needle);

/* Cuts the part before the first `sep` off *rest. False when *rest is used up (ptr NULL). */
bool str_next(struct str *rest, char sep, struct str *ret_part);

/* A NUL-terminated copy, for a system or library border. */
char *str_z(struct arena *arena, struct str s);
struct str str_dup(struct arena *arena, struct str s);

/* Whole input or an error, range checked, no locale, no leading blank or plus sign. Infinity and NaN are errors. */
MUST_CHECK int str_to_i64(struct str s, int64_t min, int64_t max, int64_t *ret_value,
                          struct err *err);
MUST_CHECK int str_to_f64(struct str s, double *ret_value, struct err *err);

/* Length of the UTF-8 sequence at the start of s, and its code point; 0: it is not valid. */
size_t utf8_at(struct str s, uint32_t *ret_code);
static inline size_t utf8_len(struct str s)
{
    uint32_t code;
    return utf8_at(s, &code);
}

/* Decimal places as printed: "117.205" 3, "428" 0, "1.2e3" 1. */
int str_decimals(struct str s);

/* Printed into the arena. */
struct str str_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct str str_vprintf(struct arena *arena, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

/* Whether it has a byte, and each of its bytes is in the set: "a-z0-9._-", with ranges, and a dash at the end for itself. */
bool str_is_made_of(struct str s, const char *set);

/* The place of a word in a list of words with one blank between, from 0; -1: it is not there. */
int word_at(struct str word, const char *words);
static inline bool is_word_of(struct str word, const char *words)
{
    return word_at(word, words) >= 0;
}
/* The length of the one of them with which the text ends; 0: none. */
size_t ends_with_any(struct str text, const char *words);

/* What another program said before it failed: its last line that is not blank, without blanks around it; ptr NULL: there is
   none. */
#define QUOTE_SHOWN_MAX 300

struct str quote_last_line(struct str text);
/* Its first QUOTE_SHOWN_MAX bytes, and nothing that could steer a terminal. */
char *quote_shown(struct arena *arena, struct str line);
