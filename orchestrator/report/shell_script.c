/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/shell_script.h"

#include "base/strbuf.h"
#include "base/vec.h"
#include "report/container.h"
#include "report/launch_options.h"

#define FRAMES_MAX         6         /* bash -c in docker run in mpirun ... */
#define EXPANDED_BYTES_MAX (1 << 20) /* of a text in all; beyond it a $NAME stays as it is */
#define VALUE_BYTES_MAX    4096
#define NAME_CHARS         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* ---- words ---- */

struct splitter {
    struct str text;
    size_t at;
    char *out; /* where the text of the next word goes: together they are shorter than the text */
    struct shell_word *items;
    size_t n;
    bool is_first; /* the next word begins a simple command */
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

static bool is_expansion(const struct splitter *s)
{
    return peek(s, 0) == '`' || (peek(s, 0) == '$' && (peek(s, 1) == '(' || peek(s, 1) == '{'));
}

/* Reads one word; s->at moves past it. Between double quotes a backslash escapes only $ ` " \ and the line's end. */
static struct shell_word read_word(struct splitter *s)
{
    struct shell_word word = {.text = {s->out, 0}};
    size_t from = s->at;
    char quote = '\0';
    for (; s->at < s->text.len; s->at++) {
        char c = peek(s, 0);
        char next = peek(s, 1);
        bool is_escape = c == '\\' && quote != '\'' && s->at + 1 < s->text.len;
        if (quote != '\'' && is_expansion(s)) {
            size_t end = expansion_end(s->text, s->at);
            memcpy(s->out, s->text.ptr + s->at, end - s->at);
            s->out += end - s->at;
            s->at = end - 1;
            word.has_use = true;
        } else if (is_escape && next == '\n') {
            s->at++;
        } else if (is_escape && (!quote || strchr("$`\"\\", next))) {
            *s->out++ = next;
            s->at++;
            word.is_quoted = true;
        } else if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? '\0' : c;
            word.is_quoted = true;
        } else if (!quote && (is_blank(c) || is_break(c) || c == '<' || c == '>')) {
            break;
        } else {
            word.has_use = word.has_use || (c == '$' && quote != '\'');
            *s->out++ = c;
        }
    }
    word.text.len = (size_t)(s->out - word.text.ptr);
    word.raw = str_sub(s->text, from, s->at - from);
    return word;
}

/* > >> >& &> < and the word after it; at the operator. */
static void read_redirection(struct splitter *s)
{
    enum shell_role role = peek(s, 0) == '<' ? SHELL_FROM : SHELL_TO;
    s->at = str_span(s->text, s->at, "&<>");
    bool copies = s->text.ptr[s->at - 1] == '&';
    s->at = str_span(s->text, s->at, " \t\r");
    struct shell_word word = read_word(s);
    if (word.raw.len > 0 && !(copies && str_is_made_of(word.text, "0-9"))) {
        word.role = role;
        s->items[s->n++] = word;
    }
}

static void read_argument(struct splitter *s)
{
    struct shell_word word = read_word(s);
    bool is_descriptor =
        (peek(s, 0) == '<' || peek(s, 0) == '>') && str_is_made_of(word.raw, "0-9");
    if (!is_descriptor && (word.text.len || word.is_quoted)) {
        word.is_first = s->is_first;
        s->is_first = false;
        s->items[s->n++] = word;
    }
}

void shell_split(struct arena *arena, struct str text, struct shell_words *ret_words)
{
    struct splitter s = {.text = text,
                         .out = arena_array(arena, char, text.len + 1),
                         .items = arena_array(arena, struct shell_word, text.len + 1),
                         .is_first = true};
    while (s.at < text.len) {
        char c = peek(&s, 0);
        if (is_blank(c)) {
            s.at++;
        } else if (c == '\\' && peek(&s, 1) == '\n') {
            s.at += 2;
        } else if (c == '#' &&
                   (s.at == 0 || is_blank(text.ptr[s.at - 1]) || is_break(text.ptr[s.at - 1]))) {
            s.at = str_cspan(text, s.at, "\n");
        } else if (c == '<' || c == '>' || (c == '&' && peek(&s, 1) == '>')) {
            read_redirection(&s);
        } else if (is_break(c)) {
            s.at++;
            s.is_first = true;
        } else {
            read_argument(&s);
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

/* ---- variables ---- */

struct variable {
    struct str name, value; /* value NULL: no single value */
};

struct frame { /* a text, or the words of a program that another one starts */
    struct shell_words words;
    size_t at;
};

struct script_reader {
    struct arena *arena;
    struct frame frames[FRAMES_MAX];
    size_t n_frames;
    VEC(struct shell_run) runs;
    VEC(struct variable) variables;
    size_t n_expanded;
};

/* A variable that is given two values may have either: a condition or a loop may stand between. */
static void set_variable(struct script_reader *r, struct str name, struct str value)
{
    struct variable *old = STR_NAMED(r->variables.items, r->variables.n, name, name);
    bool is_known =
        value.ptr && str_find(value, STR_LIT("$(")) < 0 && str_find(value, STR_LIT("`")) < 0;
    struct variable now = {name, is_known ? value : STR_EMPTY};
    if (!old) {
        VEC_PUSH(&r->variables, now);
    } else if (!str_eq(old->value, now.value)) {
        old->value = STR_EMPTY;
    }
}

/* What $NAME, ${NAME} or ${NAME:-VALUE} at the beginning of the text stands for, NULL if that is not known; *ret_len: its
   length. */
static struct str value_of(struct script_reader *r, struct str text, size_t *ret_len)
{
    bool is_braced = text.len > 1 && text.ptr[1] == '{';
    struct str rest = str_sub(text, 1 + is_braced, SIZE_MAX);
    size_t len = str_span(rest, 0, NAME_CHARS);
    const struct variable *v =
        STR_NAMED(r->variables.items, r->variables.n, name, str_sub(rest, 0, len));
    *ret_len = len ? 1 + is_braced + len : 1;
    if (!is_braced || !len) {
        return v ? v->value : STR_EMPTY;
    }
    rest = str_sub(rest, len, SIZE_MAX);
    int64_t end = str_find(rest, STR_LIT("}"));
    if (end < 0 || (end > 0 && !str_starts(rest, STR_LIT(":-")))) {
        return STR_EMPTY;
    }
    *ret_len += (size_t)end + 1;
    return v && v->value.len ? v->value : end > 0 ? str_sub(rest, 2, (size_t)end - 2) : STR_EMPTY;
}

static struct str expand_once(struct script_reader *r, struct str text)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(VALUE_BYTES_MAX);
    bool is_changed = false;
    for (size_t at = 0; at < text.len;) {
        size_t len = 1;
        struct str value =
            text.ptr[at] == '$' ? value_of(r, str_sub(text, at, SIZE_MAX), &len) : STR_EMPTY;
        is_changed = is_changed || value.ptr;
        strbuf_add_str(&out, value.ptr ? value : str_sub(text, at, len));
        at += len;
    }
    r->n_expanded += is_changed ? out.len : 0;
    return is_changed && !out.is_full ? str_dup(r->arena, strbuf_str(&out)) : text;
}

/* Twice: a default may name another variable. */
static struct str expand(struct script_reader *r, const struct shell_word *word)
{
    struct str text = word->text;
    for (int pass = 0; word->has_use && pass < 2 && text.len < VALUE_BYTES_MAX &&
                       r->n_expanded < EXPANDED_BYTES_MAX;
         pass++) {
        text = expand_once(r, text);
    }
    return text;
}

/* ---- programs ---- */

static bool is_option(struct str word)
{
    return word.len > 1 && word.ptr[0] == '-' && !is_digit(word.ptr[1]);
}

struct prefix {
    const char *name;
    const char *with_value; /* letters of options that take the next word */
    size_t n_operands;      /* words between its options and the command */
};
/* Source: the manuals of sudo 1.9, coreutils 9.1, util-linux 2.38 and numactl 2.0. */
static const struct prefix PREFIXES[] = {
    {"sudo", "ughpCrtUDRT", 0}, {"env", "uCS", 0},    {"time", "fo", 0},
    {"nohup", "", 0},           {"exec", "a", 0},     {"nice", "n", 0},
    {"setsid", "", 0},          {"timeout", "ks", 1}, {"taskset", "", 1},
    {"numactl", "NCmpix", 0},   {"stdbuf", "ioe", 0},
};

static size_t skip_options(const struct shell_word *words, size_t n, size_t at,
                           const char *with_value)
{
    while (at < n && is_option(words[at].text)) {
        struct str word = words[at++].text;
        at += word.len == 2 && strchr(with_value, word.ptr[1]) != NULL;
    }
    return at < n ? at : n;
}

/* How many words at the front are a prefix with its options: `sudo -u me`, `timeout -k 5 60`; 0 if there is none. */
static size_t prefix_words(const struct shell_word *words, size_t n)
{
    for (size_t idx = 0; n && idx < ARRAY_LEN(PREFIXES); idx++) {
        const struct prefix *prefix = &PREFIXES[idx];
        if (str_eq_z(path_base(words[0].text), prefix->name)) {
            size_t at = skip_options(words, n, 1, prefix->with_value) + prefix->n_operands;
            return at < n ? at : n;
        }
    }
    return 0;
}

static bool is_python(struct str base)
{
    return str_starts(base, STR_LIT("python"));
}

static bool is_shell(struct str base)
{
    return is_word_of(base, "bash sh zsh");
}

/* Index of the word that names what `python -m NAME`, `python FILE` or `bash FILE` runs; n if there is none. */
static size_t named_at(const struct shell_run *run)
{
    for (size_t at = 1; at < run->n; at++) {
        struct str word = run->words[at].text;
        if (str_eq_z(word, "-m") && is_python(path_base(run->words[0].text))) {
            return at + 1 < run->n ? at + 1 : run->n;
        }
        if (str_eq_z(word, "-c")) {
            return run->n;
        }
        if (!is_option(word)) {
            return at;
        }
    }
    return run->n;
}

struct str shell_program(const struct shell_run *run)
{
    struct str base = run->n ? path_base(run->words[0].text) : STR_EMPTY;
    if (run->n && (is_python(base) || is_shell(base))) {
        size_t at = named_at(run);
        base = at < run->n ? path_base(run->words[at].text) : base;
    }
    return base;
}

bool shell_is(const struct shell_run *run, const char *programs)
{
    return run->n && is_word_of(shell_program(run), programs);
}

size_t shell_engine_verb(const struct shell_run *run)
{
    static const char *const ARTIFACTS[] = {"container", "image", "buildx", NULL};
    static const char *const WITH_VALUE[] = {"-H", "--host", "-c", "--context", "--config", NULL};
    size_t at = 1;
    if (!run->n || !container_is_engine(run->words[0].text)) {
        return run->n;
    }
    while (at < run->n && is_option(run->words[at].text)) {
        at += str_eq_any(run->words[at].text, WITH_VALUE) ? 2 : 1;
    }
    return at >= run->n                                                    ? run->n
           : at + 1 < run->n && str_eq_any(run->words[at].text, ARTIFACTS) ? at + 1
                                                                           : at;
}

bool shell_engine_does(const struct shell_run *run, const char *verb)
{
    size_t at = shell_engine_verb(run);
    return at < run->n && str_eq_z(run->words[at].text, verb);
}

/* ---- what is started ---- */

static bool is_program(struct str word)
{
    struct str base = path_base(word);
    struct shell_word one = {.text = base};
    unsigned of;
    return is_python(base) || is_shell(base) || launcher_of(base, &of) ||
           str_ends(base, STR_LIT(".py")) || str_ends(base, STR_LIT(".sh")) ||
           prefix_words(&one, 1) > 0;
}

static size_t launched_at(const struct shell_run *run)
{
    struct str base = path_base(run->words[0].text);
    size_t at = is_python(base) || is_shell(base) ? named_at(run) + 1 : 1;
    for (; at < run->n; at++) {
        struct str word = run->words[at].text;
        if (str_eq_z(word, "-m") && at + 1 < run->n) {
            return at + 1;
        }
        if (is_program(word) ||
            (str_starts(word, STR_LIT("./")) && !is_option(run->words[at - 1].text))) {
            return at;
        }
    }
    return run->n;
}

/* The words that a run starts begin at the returned index, n for none; or it starts a text: bash -c TEXT. */
static size_t inner_at(const struct shell_run *run, struct str *ret_text)
{
    struct str base = run->n ? path_base(run->words[0].text) : STR_EMPTY;
    unsigned of;
    size_t at;
    if (!run->n) {
        return run->n;
    }
    if (is_shell(base)) {
        for (at = 1; at + 1 < run->n && is_option(run->words[at].text); at++) {
            if (str_ends(run->words[at].text, STR_LIT("c"))) {
                *ret_text = run->words[at + 1].text;
            }
        }
        return run->n;
    }
    if (shell_engine_does(run, "run")) {
        at = container_image_at(run->words, run->n);
        return at + (at < run->n);
    }
    if (shell_engine_does(run, "exec")) {
        at = skip_options(run->words, run->n, shell_engine_verb(run) + 1, "euw");
        return at + (at < run->n);
    }
    return launcher_of(shell_program(run), &of) || base.ptr[0] == '$' ? launched_at(run) : run->n;
}

/* ---- one simple command ---- */

static bool is_set(const struct shell_word *word)
{
    struct str name, value;
    return shell_assignment(word->text, &name, &value) && word->raw.ptr[0] != '"' &&
           word->raw.ptr[0] != '\'';
}

/* Takes reserved words, NAME=VALUE words and prefixes off the front, and what commands declare: export A=1, read A, for A in
   ... */
static void take_front(struct shell_run *run, struct shell_word *sets)
{
    for (size_t taken = 1; run->n && taken; run->words += taken, run->n -= taken) {
        taken = 1;
        if (is_set(run->words)) {
            sets[run->n_sets++] = *run->words;
        } else if (!is_word_of(run->words->text, "do then else elif if fi { } !")) {
            taken = prefix_words(run->words, run->n);
        }
    }
    bool is_for = run->n > 1 && str_eq_z(run->words->text, "for");
    bool declares =
        run->n && is_word_of(run->words->text, "export declare readonly local read unset");
    for (size_t idx = 1; is_for ? idx == 1 : declares && idx < run->n; idx++) {
        sets[run->n_sets++] = run->words[idx];
    }
    run->sets = sets;
}

static void set_variables(struct script_reader *r, const struct shell_run *run)
{
    bool is_unknown = run->n && is_word_of(run->words[0].text, "for read unset");
    for (size_t idx = 0; idx < run->n_sets; idx++) {
        struct str name = run->sets[idx].text;
        struct str value = STR_EMPTY;
        if (shell_assignment(name, &name, &value) || (is_unknown && is_identifier(name))) {
            set_variable(r, name, value);
        }
    }
}

static void push_frame(struct script_reader *r, struct shell_words words)
{
    if (r->n_frames < FRAMES_MAX && words.n) {
        r->frames[r->n_frames++] = (struct frame){.words = words};
    }
}

/* The simple command of these n words; what it starts is the next frame. */
static void read_simple(struct script_reader *r, struct shell_word *words, size_t n, bool is_inner)
{
    struct shell_word *all = arena_array(r->arena, struct shell_word, n);
    struct shell_word *files = arena_array(r->arena, struct shell_word, n);
    struct shell_run run = {.words = all, .files = files, .is_inner = is_inner};
    struct shell_words inner;
    struct str text = STR_EMPTY;
    for (size_t idx = 0; idx < n; idx++) {
        words[idx].text = expand(r, &words[idx]);
        *(words[idx].role == SHELL_ARGUMENT ? &all[run.n++] : &files[run.n_files++]) = words[idx];
    }
    take_front(&run, arena_array(r->arena, struct shell_word, 2 * run.n + 1));
    set_variables(r, &run);
    if (!run.n && !run.n_sets && !run.n_files) {
        return;
    }
    run.n_own = inner_at(&run, &text);
    VEC_PUSH(&r->runs, run);
    inner = (struct shell_words){all + (run.words - all) + run.n_own, run.n - run.n_own};
    if (text.ptr) {
        shell_split(r->arena, text, &inner);
    }
    push_frame(r, inner);
}

void shell_script_read(struct arena *arena, struct str text, struct shell_script *ret_script)
{
    struct script_reader r = {.arena = arena};
    struct shell_words all;
    shell_split(arena, text, &all);
    push_frame(&r, all);
    while (r.n_frames) {
        struct frame *frame = &r.frames[r.n_frames - 1];
        struct shell_word *words = frame->words.items + frame->at;
        bool is_inner = r.n_frames > 1 && frame->at == 0;
        size_t n = 1;
        if (frame->at == frame->words.n) {
            r.n_frames--;
            continue;
        }
        while (frame->at + n < frame->words.n && !words[n].is_first) {
            n++;
        }
        frame->at += n;
        read_simple(&r, words, n, is_inner);
    }
    *ret_script = (struct shell_script){r.runs.items, r.runs.n};
    arena_adopt(arena, r.runs.items);
    VEC_RELEASE(&r.variables);
}

bool shell_run_flag(const struct shell_run *run, const char *name)
{
    for (size_t at = 1; at < run->n_own; at++) {
        if (str_eq_z(run->words[at].text, name)) {
            return true;
        }
    }
    return false;
}
