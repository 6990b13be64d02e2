/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/shell_text.h"

#define DISTANCE_BYTES_MAX 64

static bool is_break(char c)
{
    return c == ';' || c == '&' || c == '|' || c == '\n' || c == '(' || c == ')';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct str unquote(struct str s)
{
    while (s.len >= 2 && (s.ptr[0] == '"' || s.ptr[0] == '\'') && s.ptr[s.len - 1] == s.ptr[0]) {
        s = str_sub(s, 1, s.len - 2);
    }
    return s;
}

/* Behind the word that starts at `at`: quotes hold blanks and breaks, ${...} and $(...) hold breaks. */
static size_t word_end(struct str text, size_t at)
{
    char quote = '\0';
    int depth = 0;
    for (; at < text.len; at++) {
        char c = text.ptr[at];
        if (quote) {
            if (c == quote) {
                quote = '\0';
            }
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '$' && at + 1 < text.len &&
                   (text.ptr[at + 1] == '(' || text.ptr[at + 1] == '{')) {
            depth++;
            at++;
        } else if (depth && (c == ')' || c == '}')) {
            depth--;
        } else if (!depth && (is_blank(c) || is_break(c))) {
            break;
        }
    }
    return at;
}

static bool is_opener(struct str word)
{
    static const char *const WORDS[] = {"do",   "then", "else",  "time",   "sudo", "nohup",
                                        "exec", "if",   "while", "export", "env",  NULL};
    struct str name;
    struct str value;
    for (const char *const *w = WORDS; *w; w++) {
        if (str_eq_z(word, *w)) {
            return true;
        }
    }
    return shell_assignment(word, &name, &value);
}

void shell_split(struct arena *arena, struct str text, struct shell_words *ret_words)
{
    size_t n_max = text.len + 1;
    struct shell_word *items = arena_array(arena, struct shell_word, n_max);
    size_t n = 0;
    size_t at = 0;
    bool starts = true;
    while (at < text.len && n < n_max) {
        char c = text.ptr[at];
        if (is_break(c)) {
            starts = true;
            at++;
        } else if (is_blank(c) || (c == '\\' && at + 1 < text.len && text.ptr[at + 1] == '\n')) {
            at += c == '\\' ? 2 : 1;
        } else if (c == '#' &&
                   (at == 0 || is_blank(text.ptr[at - 1]) || text.ptr[at - 1] == '\n')) {
            while (at < text.len && text.ptr[at] != '\n') {
                at++;
            }
        } else {
            size_t end = word_end(text, at);
            end = end > at ? end : at + 1;
            items[n] = (struct shell_word){unquote(str_sub(text, at, end - at)), starts, at};
            starts = starts && is_opener(items[n].text);
            n++;
            at = end;
        }
    }
    *ret_words = (struct shell_words){items, n};
}

static bool is_name_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!is_first && c >= '0' && c <= '9');
}

bool is_identifier(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        if (!is_name_char(s.ptr[idx], idx == 0)) {
            return false;
        }
    }
    return s.len > 0;
}

bool shell_assignment(struct str word, struct str *ret_name, struct str *ret_value)
{
    int64_t equals = str_find(word, STR_LIT("="));
    struct str name = equals > 0 ? str_sub(word, 0, (size_t)equals) : STR_EMPTY;
    if (!is_identifier(name)) {
        return false;
    }
    *ret_name = name;
    *ret_value = unquote(str_sub(word, (size_t)equals + 1, SIZE_MAX));
    return true;
}

bool shell_next_use(struct str text, size_t *at, struct str *ret_name, bool *ret_has_default)
{
    for (size_t idx = *at; idx + 1 < text.len; idx++) {
        size_t from = idx + 1;
        bool is_braced = text.ptr[idx] == '$' && text.ptr[from] == '{';
        size_t to;
        if (text.ptr[idx] != '$') {
            continue;
        }
        from += is_braced;
        for (to = from; to < text.len && is_name_char(text.ptr[to], to == from); to++) {
        }
        if (to > from) {
            *ret_name = str_sub(text, from, to - from);
            *ret_has_default = is_braced && to < text.len && text.ptr[to] != '}';
            *at = to;
            return true;
        }
    }
    *at = text.len;
    return false;
}

bool shell_option(const struct shell_words *words, const char *flag, struct str *ret_value)
{
    size_t len = strlen(flag);
    for (size_t idx = 0; idx < words->n; idx++) {
        struct str word = words->items[idx].text;
        if (str_eq_z(word, flag) && idx + 1 < words->n) {
            *ret_value = words->items[idx + 1].text;
            return true;
        }
        if (str_starts(word, str_of(flag)) && word.len > len && word.ptr[len] == '=') {
            *ret_value = unquote(str_sub(word, len + 1, SIZE_MAX));
            return true;
        }
    }
    return false;
}

struct str path_base(struct str path)
{
    for (size_t idx = path.len; idx > 0; idx--) {
        if (path.ptr[idx - 1] == '/') {
            return str_sub(path, idx, SIZE_MAX);
        }
    }
    return path;
}

size_t edit_distance(struct str a, struct str b)
{
    size_t row[DISTANCE_BYTES_MAX + 1];
    if (a.len > DISTANCE_BYTES_MAX || b.len > DISTANCE_BYTES_MAX) {
        return DISTANCE_BYTES_MAX;
    }
    for (size_t idx = 0; idx <= b.len; idx++) {
        row[idx] = idx;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t before = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replace = before + (a.ptr[i - 1] != b.ptr[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            before = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[b.len];
}
