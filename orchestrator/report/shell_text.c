/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/shell_text.h"

#include "base/str.h"

struct splitter {
    struct str text;
    size_t at;
    char *
        out; /* where the text of the next quoted word goes: together they are shorter than the text */
    struct shell_word *items;
    size_t n;
    char before; /* operator since the last word; '\0': none */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_break(char c)
{
    return c == ';' || c == '&' || c == '|' || c == '\n' || c == '(' || c == ')';
}

static char peek(const struct splitter *s, size_t ahead)
{
    return s->at + ahead < s->text.len ? s->text.ptr[s->at + ahead] : '\0';
}

/* Just after the expansion that begins at `at` with ${, $( or a back quote; the text's end if it is not closed. */
static size_t expansion_end(struct str text, size_t at)
{
    bool is_back = text.ptr[at] == '`';
    char open = is_back ? '\0' : text.ptr[at + 1];
    char close = is_back ? '`' : open == '(' ? ')' : '}';
    size_t depth = 1;
    for (at += is_back ? 1 : 2; at < text.len; at++) {
        char c = text.ptr[at];
        if (c == '\\') {
            at++;
        } else if (c == '\'' && open == '(') {
            const char *end = memchr(text.ptr + at + 1, '\'', text.len - at - 1);
            at = end ? (size_t)(end - text.ptr) : text.len;
        } else if (c == close && --depth == 0) {
            return at + 1;
        } else if (c == open && open) {
            depth++;
        }
    }
    return text.len;
}

static bool is_expansion(struct str text, size_t at)
{
    return text.ptr[at] == '`' || (text.ptr[at] == '$' && at + 1 < text.len &&
                                   (text.ptr[at + 1] == '(' || text.ptr[at + 1] == '{'));
}

static void copy_expansion(struct splitter *s, char **out)
{
    size_t end = expansion_end(s->text, s->at);
    memcpy(*out, s->text.ptr + s->at, end - s->at);
    *out += end - s->at;
    s->at = end;
}

/* Inside "...": a backslash escapes only $ ` " \ and the line's end. */
static void read_double(struct splitter *s, char **out)
{
    for (s->at++; s->at < s->text.len && peek(s, 0) != '"';) {
        char c = peek(s, 0);
        char next = peek(s, 1);
        if (is_expansion(s->text, s->at)) {
            copy_expansion(s, out);
        } else if (c == '\\' && next == '\n') {
            s->at += 2;
        } else {
            s->at += c == '\\' && (next == '$' || next == '`' || next == '"' || next == '\\');
            *(*out)++ = peek(s, 0);
            s->at++;
        }
    }
    s->at += s->at < s->text.len;
}

static void read_single(struct splitter *s, char **out)
{
    for (s->at++; s->at < s->text.len && peek(s, 0) != '\''; s->at++) {
        *(*out)++ = peek(s, 0);
    }
    s->at += s->at < s->text.len;
}

/* Reads one word into *ret, its text and raw form; s->at moves past it. */
static void read_word(struct splitter *s, struct shell_word *ret)
{
    size_t from = s->at;
    char *begin = s->out;
    char *out = begin;
    bool is_quoted = false;
    while (s->at < s->text.len) {
        char c = peek(s, 0);
        char next = peek(s, 1);
        if (is_expansion(s->text, s->at)) {
            copy_expansion(s, &out);
            continue;
        }
        if (is_blank(c) || is_break(c) || c == '<' || c == '>') {
            break;
        }
        is_quoted = is_quoted || c == '"' || c == '\'' || c == '\\';
        if (c == '\'') {
            read_single(s, &out);
        } else if (c == '"') {
            read_double(s, &out);
        } else if (c == '\\' && next == '\n') {
            s->at += 2;
        } else {
            s->at += c == '\\' && s->at + 1 < s->text.len;
            *out++ = peek(s, 0);
            s->at++;
        }
    }
    *ret = (struct shell_word){.text = {begin, (size_t)(out - begin)},
                               .raw = str_sub(s->text, from, s->at - from),
                               .is_quoted = is_quoted};
    s->out = out;
}

/* > >> >& &> < and the word after it; at the operator. */
static void read_redirection(struct splitter *s)
{
    bool is_from = peek(s, 0) == '<';
    struct shell_word word;
    while (peek(s, 0) == '&' || peek(s, 0) == '<' || peek(s, 0) == '>') {
        s->at++;
    }
    bool copies = s->text.ptr[s->at - 1] == '&';
    while (is_blank(peek(s, 0))) {
        s->at++;
    }
    read_word(s, &word);
    if (word.raw.len > 0 && !(copies && str_is_made_of(word.text, "0-9"))) {
        word.role = is_from ? SHELL_FROM : SHELL_TO;
        s->items[s->n++] = word;
    }
}

static void read_operator(struct splitter *s)
{
    char c = peek(s, 0);
    s->at++;
    if (c == '\n') {
        c = ';';
    } else if ((c == '&' || c == '|') && peek(s, 0) == c) {
        s->at++;
        c = c == '&' ? 'A' : 'O';
    } else if (c == '|' && peek(s, 0) == '&') {
        s->at++;
    }
    s->before = c;
}

static void skip_comment(struct splitter *s)
{
    while (s->at < s->text.len && peek(s, 0) != '\n') {
        s->at++;
    }
}

static void add_argument(struct splitter *s)
{
    struct shell_word word;
    size_t from = s->at;
    read_word(s, &word);
    if (s->at == from) { /* a NUL or the like must not stop the reading */
        s->at++;
        return;
    }
    if ((peek(s, 0) == '<' || peek(s, 0) == '>') && str_is_made_of(word.raw, "0-9")) {
        return; /* the descriptor of a redirection */
    }
    if (word.text.len == 0 && !word.is_quoted) {
        return;
    }
    word.before = s->before;
    s->before = '\0';
    s->items[s->n++] = word;
}

void shell_split(struct arena *arena, struct str text, struct shell_words *ret_words)
{
    struct splitter s = {.text = text,
                         .out = arena_array(arena, char, text.len + 1),
                         .items = arena_array(arena, struct shell_word, text.len + 1),
                         .before = ';'};
    while (s.at < text.len) {
        char c = peek(&s, 0);
        if (is_blank(c)) {
            s.at++;
        } else if (c == '\\' && peek(&s, 1) == '\n') {
            s.at += 2;
        } else if (c == '#' &&
                   (s.at == 0 || is_blank(text.ptr[s.at - 1]) || is_break(text.ptr[s.at - 1]))) {
            skip_comment(&s);
        } else if (c == '<' || c == '>' || (c == '&' && peek(&s, 1) == '>')) {
            read_redirection(&s);
        } else if (is_break(c)) {
            read_operator(&s);
        } else {
            add_argument(&s);
        }
    }
    *ret_words = (struct shell_words){s.items, s.n};
}

bool is_identifier(struct str s)
{
    return str_is_made_of(s, "a-zA-Z0-9_") && !is_digit(s.ptr[0]);
}

bool shell_assignment(struct str word, struct str *ret_name, struct str *ret_value)
{
    int64_t equals = str_find(word, STR_LIT("="));
    struct str name = equals > 0 ? str_sub(word, 0, (size_t)equals) : STR_EMPTY;
    if (name.len > 1 && name.ptr[name.len - 1] == '+') {
        name.len--;
    }
    if (!is_identifier(name)) {
        return false;
    }
    *ret_name = name;
    *ret_value = str_sub(word, (size_t)equals + 1, SIZE_MAX);
    return true;
}

/* Skips quotes and escapes: true if the byte at the cursor was one and the cursor moved past it. */
static bool skip_quoting(struct str raw, struct shell_cursor *c)
{
    char byte = raw.ptr[c->at];
    if (c->quote == '\'') {
        c->quote = byte == '\'' ? '\0' : '\'';
    } else if (byte == '\\') {
        c->at++;
    } else if (byte == '"') {
        c->quote = c->quote ? '\0' : '"';
    } else if (byte == '\'' && !c->quote) {
        c->quote = '\'';
    } else {
        return false;
    }
    c->at++;
    return true;
}

bool shell_next_use(struct str raw, struct shell_cursor *c, struct str *ret_name,
                    bool *ret_has_default)
{
    while (c->at < raw.len) {
        struct str rest = str_sub(raw, c->at, SIZE_MAX);
        bool is_braced = str_starts(rest, STR_LIT("${"));
        size_t from = c->at + 1 + is_braced;
        if (skip_quoting(raw, c)) {
            continue;
        }
        if (rest.ptr[0] != '$') {
            c->at++;
            continue;
        }
        if (is_braced && from < raw.len && (raw.ptr[from] == '#' || raw.ptr[from] == '!')) {
            from++;
        }
        size_t to = str_span(raw, from, SHELL_NAME_CHARS);
        c->at = to > c->at ? to : c->at + 1;
        if (to > from && !is_digit(raw.ptr[from])) {
            *ret_name = str_sub(raw, from, to - from);
            *ret_has_default =
                is_braced && to < raw.len && raw.ptr[to] != '}' && raw.ptr[to] != '[';
            return true;
        }
    }
    return false;
}

struct str path_base(struct str path)
{
    const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    return slash ? str_sub(path, (size_t)(slash - path.ptr) + 1, SIZE_MAX) : path;
}

struct str path_resolve(struct arena *arena, struct str folder, struct str path)
{
    bool is_whole = str_starts(path, STR_LIT("/"));
    struct str rest =
        str_printf(arena, "%.*s/%.*s", STR_ARG(is_whole ? STR_LIT("") : folder), STR_ARG(path));
    char *out = arena_array(arena, char, rest.len + 1);
    size_t len = 0;
    for (struct str part; str_next(&rest, '/', &part);) {
        if (str_eq_z(part, "..")) {
            while (len > 0 && out[--len] != '/') {
            }
        } else if (part.len && !str_eq_z(part, ".")) {
            out[len++] = '/';
            memcpy(out + len, part.ptr, part.len);
            len += part.len;
        }
    }
    return (struct str){out, len};
}
