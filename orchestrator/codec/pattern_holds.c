/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a pattern's source for the texts that no match can be without: plain characters outside of groups, and those that it looks ahead
   for. Whatever is not understood here yields none. Source: pcre2pattern(3). */
#include "base/base.h"

#include "codec/pattern.h"

#include <ctype.h>

struct holds_reader {
    struct str rest; /* of the source */
    char *out;       /* texts, one after the other */
    size_t len;
    size_t began; /* of the text that is being read */
    struct str *texts;
    size_t n, max;
    bool is_ahead; /* within "(?=", outside of other groups */
};

static int peek(const struct holds_reader *r, size_t at)
{
    return at < r->rest.len ? (unsigned char)r->rest.ptr[at] : -1;
}

static void skip(struct holds_reader *r, size_t n)
{
    r->rest = str_sub(r->rest, n, SIZE_MAX);
}

static void end_text(struct holds_reader *r)
{
    if (r->len - r->began >= PATTERN_HOLDS_MIN && r->n < r->max) {
        r->texts[r->n++] = (struct str){r->out + r->began, r->len - r->began};
    } else {
        r->len = r->began;
    }
    r->began = r->len;
}

/* "[...]" from its bracket on. */
static bool skip_class(struct holds_reader *r)
{
    size_t at = peek(r, 1) == '^' ? 2 : 1;
    for (size_t first = at; peek(r, at) >= 0; at++) {
        int c = peek(r, at);
        int next = peek(r, at + 1);
        if (c == ']' && at > first) {
            skip(r, at + 1);
            return true;
        }
        if (c == '[' && (next == ':' || next == '.' || next == '=')) {
            return false;
        }
        if (c == '\\') {
            if (next == 'Q' || next == 'E') {
                return false;
            }
            at++;
        }
    }
    return false;
}

/* What opens a group that does not change how the text around it is read. */
static bool is_plain_group(const struct holds_reader *r)
{
    static const char *const KINDS[] = {"(?:", "(?=", "(?!", "(?>", "(?<", "(*COMMIT)", NULL};
    for (size_t idx = 0; KINDS[idx]; idx++) {
        if (str_starts(r->rest, str_of(KINDS[idx]))) {
            return true;
        }
    }
    return peek(r, 1) != '?' && peek(r, 1) != '*';
}

/* A backslash and what it stands for; *ret_c: the character itself, or -1: a class, an assertion or a reference. */
static bool take_escape(struct holds_reader *r, int *ret_c)
{
    int c = peek(r, 1);
    *ret_c = -1;
    if (c < 0 || (isalnum(c) && !strchr("dDwWsShHvVbBAZzKRtnrfgk", c))) {
        return false;
    }
    skip(r, 2);
    if (c == 'g' || c == 'k') { /* "\g{-1}", "\k<name>" */
        static const char *const ENDS[] = {"}", ">"};
        int64_t end = str_find(r->rest, str_of(ENDS[c == 'k']));
        if (peek(r, 0) != (c == 'k' ? '<' : '{') || end < 0) {
            return false;
        }
        skip(r, (size_t)end + 1);
    } else if (!isalnum(c)) {
        *ret_c = c;
    }
    return true;
}

/* A group to its end, with all that is in it. */
static bool skip_group(struct holds_reader *r)
{
    size_t depth = 0;
    do {
        int c = peek(r, 0);
        int escaped;
        if (c == '\\') {
            if (!take_escape(r, &escaped)) {
                return false;
            }
        } else if (c == '[') {
            if (!skip_class(r)) {
                return false;
            }
        } else {
            if (c < 0 || (c == '(' && !is_plain_group(r))) {
                return false;
            }
            depth += c == '(';
            depth -= c == ')';
            skip(r, 1);
        }
    } while (depth > 0);
    return true;
}

/* "{2}", "{2,}", "{2,5}"; *ret_len 0: a brace that is a character. */
static bool read_counts(const struct holds_reader *r, size_t *ret_len, bool *ret_may_lack)
{
    size_t at = 1;
    bool is_number = isdigit(peek(r, 1));
    *ret_len = 0;
    *ret_may_lack = true;
    if (!is_number) {
        return peek(r, 1) != ',' && peek(r, 1) != ' '; /* a quantifier for newer versions */
    }
    for (; isdigit(peek(r, at)); at++) {
        *ret_may_lack = *ret_may_lack && peek(r, at) == '0';
    }
    for (at += peek(r, at) == ','; isdigit(peek(r, at)); at++) {
    }
    *ret_len = at + 1;
    return peek(r, at) == '}';
}

/* After an item: how often. A character that may lack is in no text, and one that may be repeated is the last of its own. */
static bool take_count(struct holds_reader *r, bool is_char)
{
    int c = peek(r, 0);
    size_t len = 1;
    bool may_lack = c != '+';
    if (c == '{' && !read_counts(r, &len, &may_lack)) {
        return false;
    }
    if ((c != '{' && c != '*' && c != '+' && c != '?') || len == 0) {
        return true;
    }
    skip(r, len);
    if (peek(r, 0) == '?' || peek(r, 0) == '+') { /* lazy, possessive */
        skip(r, 1);
    }
    r->len -= is_char && may_lack;
    end_text(r);
    return peek(r, 0) != '{'; /* counted twice */
}

/* "(?=", whose texts every match has, too; and its end, which may not be counted. */
static bool take_ahead(struct holds_reader *r)
{
    r->is_ahead = !r->is_ahead;
    end_text(r);
    skip(r, r->is_ahead ? 3 : 1);
    return r->is_ahead || peek(r, 0) < 0 || !strchr("*+?{", peek(r, 0));
}

static bool take_item(struct holds_reader *r)
{
    int c = peek(r, 0);
    if (r->is_ahead ? c == ')' : str_starts(r->rest, STR_LIT("(?="))) {
        return take_ahead(r);
    }
    if (c == '\\') {
        if (!take_escape(r, &c)) {
            return false;
        }
    } else if (c == '(' || c == '[') {
        if (!(c == '[' ? skip_class(r) : is_plain_group(r) && skip_group(r))) {
            return false;
        }
        c = -1;
    } else if (c == '|' || c == ')' || c == '*' || c == '+' || c == '?') {
        return false;
    } else {
        skip(r, 1);
        c = c == '.' || c == '^' || c == '$' ? -1 : c;
    }
    if (c < 0) {
        end_text(r);
    } else {
        r->out[r->len++] = (char)c;
    }
    return take_count(r, c >= 0);
}

size_t pattern_holds(struct str source, char *buf, struct str *ret_texts, size_t max)
{
    struct holds_reader r = {.rest = source, .out = buf, .texts = ret_texts, .max = max};
    while (r.rest.len > 0) {
        if (!take_item(&r)) {
            return 0;
        }
    }
    end_text(&r);
    return r.is_ahead ? 0 : r.n;
}
