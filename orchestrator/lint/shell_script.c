/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "lint/shell_script.h"

#include "base/strbuf.h"
#include "base/vec.h"
#include "lint/shell_script_impl.h"

#define FRAMES_MAX         6         /* nested texts: bash -c in docker run in ssh ... */
#define LOOPS_OPEN_MAX     64        /* nested loops; deeper ones are read as plain lines */
#define EXPANDED_BYTES_MAX (1 << 20) /* of a text in all; beyond it a $NAME stays as it is */
#define VALUE_BYTES_MAX    4096

struct frame { /* a text, or the words of a program that another one starts */
    struct shell_words words;
    size_t at, depth;
    bool is_inner, is_elsewhere;
};

struct variable {
    struct str name, value; /* value NULL: no single value */
};

struct script_reader {
    struct arena *arena;
    struct frame frames[FRAMES_MAX];
    size_t n_frames;
    struct {
        struct shell_run *items;
        size_t n, n_max;
    } runs;
    struct {
        struct shell_loop *items;
        size_t n, n_max;
    } loops;
    struct {
        struct shell_word *items;
        size_t n, n_max;
    } sets;
    struct {
        struct variable *items;
        size_t n, n_max;
    } variables;
    size_t open[LOOPS_OPEN_MAX];
    size_t n_open, n_too_deep, n_ifs;
    size_t n_expanded;
};

/* ---- variables ---- */

static struct variable *variable_of(struct script_reader *r, struct str name)
{
    for (size_t idx = r->variables.n; idx > 0; idx--) {
        if (str_eq(r->variables.items[idx - 1].name, name)) {
            return &r->variables.items[idx - 1];
        }
    }
    return NULL;
}

/* A variable that a command changes under a condition or in a loop has no single value. */
static void set_variable(struct script_reader *r, struct str name, struct str value,
                         bool may_not_happen)
{
    struct variable *old = variable_of(r, name);
    bool is_known =
        value.ptr && str_find(value, STR_LIT("$(")) < 0 && str_find(value, STR_LIT("`")) < 0;
    struct variable now = {name, is_known ? value : STR_EMPTY};
    if (!old) {
        VEC_PUSH(&r->variables, now);
    } else if (!may_not_happen || !str_eq(old->value, now.value)) {
        old->value = may_not_happen ? STR_EMPTY : now.value;
    }
}

/* The first } that does not close an inner {; the end if there is none. */
static size_t closed_at(struct str text)
{
    size_t depth = 0;
    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] == '{') {
            depth++;
        } else if (text.ptr[at] == '}' && depth-- == 0) {
            return at;
        }
    }
    return text.len;
}

/* The value of one ${...} or $NAME at text[at], NULL if the text does not tell; *ret_len: its length. */
static struct str value_at(struct script_reader *r, struct str text, size_t at, size_t *ret_len)
{
    bool is_braced = at + 1 < text.len && text.ptr[at + 1] == '{';
    size_t from = at + 1 + is_braced;
    size_t to = from;
    const struct variable *v;
    struct str rest;
    while (to < text.len &&
           (is_identifier(str_sub(text, to, 1)) || (text.ptr[to] >= '0' && text.ptr[to] <= '9'))) {
        to++;
    }
    v = variable_of(r, str_sub(text, from, to - from));
    *ret_len = to - at;
    if (to == from) {
        *ret_len = 1;
        return STR_EMPTY;
    }
    if (!is_braced) {
        return v ? v->value : STR_EMPTY;
    }
    rest = str_sub(text, to, SIZE_MAX);
    if (str_starts(rest, STR_LIT("}"))) {
        *ret_len += 1;
        return v ? v->value : STR_EMPTY;
    }
    if (str_starts(rest, STR_LIT(":-")) || str_starts(rest, STR_LIT(":="))) {
        size_t len = closed_at(rest);
        *ret_len += len + (len < rest.len);
        return v && v->value.ptr && v->value.len ? v->value : str_sub(rest, 2, len - 2);
    }
    return STR_EMPTY;
}

static struct str expand_once(struct script_reader *r, struct str text)
{
    CLEANUP(strbuf) struct strbuf out;
    bool is_changed = false;
    strbuf_init(&out, VALUE_BYTES_MAX);
    for (size_t at = 0; at < text.len;) {
        size_t len = 1;
        struct str value = text.ptr[at] == '$' ? value_at(r, text, at, &len) : STR_EMPTY;
        is_changed = is_changed || value.ptr;
        strbuf_add_str(&out, value.ptr ? value : str_sub(text, at, len));
        at += len;
    }
    r->n_expanded += is_changed ? out.len : 0;
    return is_changed && !out.is_full ? str_dup(r->arena, strbuf_str(&out)) : text;
}

/* Twice: a default may name another variable. */
static struct str expand(struct script_reader *r, struct str raw, struct str text)
{
    struct shell_cursor cursor = {0};
    struct str name;
    bool has_default;
    bool has_use =
        shell_next_use(raw, &cursor, &name, &has_default) || str_find(text, STR_LIT(":-")) > 0;
    for (int pass = 0;
         has_use && pass < 2 && text.len < VALUE_BYTES_MAX && r->n_expanded < EXPANDED_BYTES_MAX;
         pass++) {
        text = expand_once(r, text);
    }
    return text;
}

/* ---- one simple command ---- */

struct simple {
    struct shell_word *words; /* arguments, $NAME replaced */
    size_t n;
    struct shell_word *sets, *files;
    size_t n_sets, n_files;
};

/* An unquoted $NAME whose value has blanks is several words. */
static bool is_split(const struct shell_word *word)
{
    return !word->is_quoted && word->raw.len > 1 && word->raw.ptr[0] == '$' && word->text.len &&
           word->text.ptr[0] != '$' && memchr(word->text.ptr, ' ', word->text.len);
}

static size_t count_words(const struct shell_word *word)
{
    size_t n = 1;
    for (size_t idx = 0; is_split(word) && idx < word->text.len; idx++) {
        n += word->text.ptr[idx] == ' ';
    }
    return n;
}

static size_t put_words(const struct shell_word *word, struct shell_word *out)
{
    struct str rest = word->text;
    struct str part;
    size_t n = 0;
    if (!is_split(word)) {
        out[0] = *word;
        return 1;
    }
    while (str_next(&rest, ' ', &part)) {
        if (part.len) {
            out[n] = *word;
            out[n++].text = part;
        }
    }
    return n;
}

static bool is_set(const struct shell_word *word)
{
    struct str name;
    struct str value;
    return shell_assignment(word->text, &name, &value) && word->raw.ptr[0] != '"' &&
           word->raw.ptr[0] != '\'';
}

static void add_sets(struct script_reader *r, struct simple *s, const struct shell_word *from,
                     size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        s->sets[s->n_sets++] = from[idx];
        VEC_PUSH(&r->sets, from[idx]);
    }
}

/* Takes NAME=VALUE words and prefixes off the front of the command. */
static void take_front(struct script_reader *r, struct simple *s)
{
    size_t skip = 0;
    bool more = true;
    while (more) {
        size_t n_sets = 0;
        while (s->n > n_sets && is_set(&s->words[n_sets])) {
            n_sets++;
        }
        add_sets(r, s, s->words, n_sets);
        s->words += n_sets;
        s->n -= n_sets;
        skip = shell_prefix_words(s->words, s->n);
        s->words += skip;
        s->n -= skip;
        more = skip > 0 && s->n > 0;
    }
}

/* Variables set by commands: export A=1, read A, unset A, for A. */
static void take_declared(struct script_reader *r, struct simple *s)
{
    static const char *const DECLARES[] = {"export", "declare", "typeset", "readonly", "local",
                                           "setenv", "read",    "unset",   NULL};
    if (s->n && str_eq_any(s->words[0].text, DECLARES)) {
        add_sets(r, s, s->words + 1, s->n - 1);
    }
}

static void set_variables(struct script_reader *r, const struct simple *s, bool may_not_happen)
{
    bool is_unknown =
        s->n && (str_eq_z(s->words[0].text, "read") || str_eq_z(s->words[0].text, "unset") ||
                 str_eq_z(s->words[0].text, "let"));
    for (size_t idx = 0; idx < s->n_sets; idx++) {
        struct str name;
        struct str value;
        if (shell_assignment(s->sets[idx].text, &name, &value)) {
            set_variable(r, name, value, may_not_happen);
        } else if (is_unknown && is_identifier(s->sets[idx].text)) {
            set_variable(r, s->sets[idx].text, STR_EMPTY, false);
        }
    }
}

/* ---- loops and conditions ---- */

static void open_loop(struct script_reader *r, struct shell_loop loop)
{
    if (r->n_open == LOOPS_OPEN_MAX) {
        r->n_too_deep++;
        return;
    }
    loop.parent = r->n_open ? r->open[r->n_open - 1] : SHELL_LOOP_NONE;
    loop.first = loop.end = r->runs.n;
    r->open[r->n_open++] = r->loops.n;
    VEC_PUSH(&r->loops, loop);
}

static void close_loop(struct script_reader *r)
{
    if (r->n_too_deep) {
        r->n_too_deep--;
    } else if (r->n_open) {
        r->loops.items[r->open[--r->n_open]].end = r->runs.n;
    }
}

/* `for NAME in VALUES` and `for ((...))`: nothing is left of the command. */
static void take_for(struct script_reader *r, struct simple *s)
{
    struct shell_loop loop = {.kind = SHELL_FOR, .name = s->n > 1 ? s->words[1].text : STR_EMPTY};
    if (s->n > 2 && str_eq_z(s->words[2].text, "in")) {
        loop.words = s->words + 3;
        loop.n = s->n - 3;
    }
    open_loop(r, loop);
    if (is_identifier(loop.name)) {
        VEC_PUSH(&r->sets, s->words[1]);
        set_variable(r, loop.name, loop.n == 1 ? loop.words[0].text : STR_EMPTY, false);
    }
    s->n = 0;
}

/* Takes reserved words off the front; they open and close loops and conditions. */
static void take_reserved(struct script_reader *r, struct simple *s)
{
    static const char *const PLAIN[] = {"do", "then", "else", "elif", "{", "}", "!", NULL};
    bool more = true;
    while (more && s->n && !s->words[0].is_quoted) {
        struct str word = s->words[0].text;
        more = str_eq_any(word, PLAIN);
        if (str_eq_z(word, "if") || str_eq_z(word, "case")) {
            r->n_ifs++;
            more = true;
        } else if (str_eq_z(word, "fi") || str_eq_z(word, "esac")) {
            r->n_ifs -= r->n_ifs > 0;
            more = true;
        } else if (str_eq_z(word, "done")) {
            close_loop(r);
            more = true;
        } else if (str_eq_z(word, "while") || str_eq_z(word, "until")) {
            open_loop(r, (struct shell_loop){.kind = word.ptr[0] == 'w' ? SHELL_WHILE : SHELL_UNTIL,
                                             .words = s->words + 1,
                                             .n = s->n - 1});
            more = true;
        } else if (str_eq_z(word, "for") || str_eq_z(word, "select")) {
            take_for(r, s);
        }
        s->words += more;
        s->n -= more;
    }
}

/* ---- frames ---- */

static void push_words(struct script_reader *r, struct shell_words words, size_t depth,
                       bool is_elsewhere)
{
    if (r->n_frames < FRAMES_MAX && words.n) {
        words.items[0].before = ';';
        r->frames[r->n_frames++] = (struct frame){words, 0, depth, true, is_elsewhere};
    }
}

static void push_inner(struct script_reader *r, const struct shell_run *run)
{
    struct shell_inner inner = shell_inner_of(r->arena, run);
    if (inner.text.ptr && r->n_frames < FRAMES_MAX) {
        struct shell_words words;
        shell_split(r->arena, inner.text, &words);
        push_words(r, words, run->depth + 1, inner.is_elsewhere || run->is_elsewhere);
    } else if (inner.at < run->n) {
        struct shell_words words = {arena_array(r->arena, struct shell_word, run->n - inner.at),
                                    run->n - inner.at};
        memcpy(words.items, run->words + inner.at, words.n * sizeof(words.items[0]));
        push_words(r, words, run->depth + inner.is_elsewhere,
                   inner.is_elsewhere || run->is_elsewhere);
    }
}

/* The words of the next simple command of the frame, expanded. */
static struct simple next_simple(struct script_reader *r, struct frame *frame)
{
    struct shell_word *words = frame->words.items + frame->at;
    size_t n = 0;
    size_t n_max = 0;
    struct simple s = {0};
    while (frame->at + n < frame->words.n && (n == 0 || !words[n].before)) {
        if (words[n].role != SHELL_HERE) {
            words[n].text = expand(r, words[n].raw, words[n].text);
        }
        n_max += count_words(&words[n++]);
    }
    s.words = arena_array(r->arena, struct shell_word, n_max);
    s.files = arena_array(r->arena, struct shell_word, n);
    for (size_t idx = 0; idx < n; idx++) {
        if (words[idx].role != SHELL_ARGUMENT) {
            s.files[s.n_files++] = words[idx];
        } else {
            s.n += put_words(&words[idx], s.words + s.n);
        }
    }
    s.sets = arena_array(r->arena, struct shell_word, 2 * s.n + 1);
    frame->at += n;
    return s;
}

static void read_simple(struct script_reader *r, struct frame *frame)
{
    const struct shell_word *first = &frame->words.items[frame->at];
    struct shell_run run = {.before = first->before,
                            .is_inner = frame->is_inner && frame->at == 0,
                            .is_elsewhere = frame->is_elsewhere,
                            .depth = frame->depth + first->depth};
    struct simple s = next_simple(r, frame);
    take_reserved(r, &s);
    take_front(r, &s);
    take_declared(r, &s);
    run.is_conditional = r->n_ifs > 0 || run.before == 'A' || run.before == 'O';
    set_variables(r, &s, run.is_conditional || r->n_open > 0);
    run.loop = r->n_open ? r->open[r->n_open - 1] : SHELL_LOOP_NONE;
    run.words = s.words;
    run.n = run.n_own = s.n;
    run.sets = s.sets;
    run.n_sets = s.n_sets;
    run.files = s.files;
    run.n_files = s.n_files;
    if (!run.n && !run.n_sets && !run.n_files) {
        return;
    }
    run.n_own = shell_inner_of(r->arena, &run).at;
    VEC_PUSH(&r->runs, run);
    push_inner(r, &run);
}

/* "#SBATCH OPTIONS", which sbatch reads up to the first command, as a command of the same length: "sbatch  OPTIONS". Source:
   sbatch(1) 23.02, DESCRIPTION. */
static struct str read_directives(struct arena *arena, struct str text)
{
    static const char MARK[] = "#SBATCH";
    size_t len = sizeof(MARK) - 1;
    struct str rest = text;
    struct str line;
    char *copy = NULL;
    while (str_next(&rest, '\n', &line) &&
           (str_starts(line, STR_LIT("#")) || !str_trim(line).len)) {
        if (str_starts(line, STR_LIT(MARK)) && line.len > len &&
            (line.ptr[len] == ' ' || line.ptr[len] == '\t')) {
            copy = copy ? copy : arena_strndup(arena, text.ptr, text.len);
            memcpy(copy + (line.ptr - text.ptr), "sbatch ", len);
        }
    }
    return copy ? (struct str){copy, text.len} : text;
}

void shell_script_read(struct arena *arena, struct str text, struct shell_script *ret_script)
{
    struct script_reader *r = arena_new(arena, struct script_reader);
    *r = (struct script_reader){.arena = arena};
    shell_split(arena, read_directives(arena, text), &ret_script->words);
    push_words(r, ret_script->words, 0, false);
    r->frames[0].is_inner = false;
    while (r->n_frames) {
        struct frame *frame = &r->frames[r->n_frames - 1];
        if (frame->at < frame->words.n) {
            read_simple(r, frame);
        } else {
            r->n_frames--;
        }
    }
    while (r->n_open) {
        close_loop(r);
    }
    ret_script->runs = r->runs.items;
    ret_script->n = r->runs.n;
    ret_script->loops = r->loops.items;
    ret_script->n_loops = r->loops.n;
    ret_script->sets = r->sets.items;
    ret_script->n_sets = r->sets.n;
    arena_adopt(arena, r->runs.items);
    arena_adopt(arena, r->loops.items);
    arena_adopt(arena, r->sets.items);
    VEC_RELEASE(&r->variables);
}
