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
    struct {
        struct shell_run *items;
        size_t n, n_max;
    } runs;
    struct {
        struct shell_word *items;
        size_t n, n_max;
    } sets;
    struct {
        struct variable *items;
        size_t n, n_max;
    } variables;
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

/* A variable that is given two values may have either: a condition or a loop may stand between. */
static void set_variable(struct script_reader *r, struct str name, struct str value)
{
    struct variable *old = variable_of(r, name);
    bool is_known =
        value.ptr && str_find(value, STR_LIT("$(")) < 0 && str_find(value, STR_LIT("`")) < 0;
    struct variable now = {name, is_known ? value : STR_EMPTY};
    if (!old) {
        VEC_PUSH(&r->variables, now);
    } else if (!str_eq(old->value, now.value)) {
        old->value = STR_EMPTY;
    }
}

/* What $NAME, ${NAME} or ${NAME:-VALUE} at the beginning of the text stands for, NULL if that is not known; *ret_len: its length. */
static struct str value_of(struct script_reader *r, struct str text, size_t *ret_len)
{
    bool is_braced = text.len > 1 && text.ptr[1] == '{';
    struct str rest = str_sub(text, 1 + is_braced, SIZE_MAX);
    size_t len = str_span(rest, 0, SHELL_NAME_CHARS);
    const struct variable *v = variable_of(r, str_sub(rest, 0, len));
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

/* ---- words ---- */

static bool is_option(struct str word)
{
    return word.len > 1 && word.ptr[0] == '-' && !is_digit(word.ptr[1]);
}

/* ---- programs ---- */

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
    static const char *const SHELLS[] = {"bash", "sh", "zsh", NULL};
    return str_eq_any(base, SHELLS);
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

bool shell_is(const struct shell_run *run, const char *program)
{
    return str_eq_z(shell_program(run), program);
}

bool shell_is_any(const struct shell_run *run, const char *programs)
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

static void add_sets(struct script_reader *r, struct shell_word *sets, size_t *n_sets,
                     const struct shell_word *from, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        sets[(*n_sets)++] = from[idx];
        VEC_PUSH(&r->sets, from[idx]);
    }
}

static bool is_set(const struct shell_word *word)
{
    struct str name;
    struct str value;
    return shell_assignment(word->text, &name, &value) && word->raw.ptr[0] != '"' &&
           word->raw.ptr[0] != '\'';
}

/* Takes reserved words, NAME=VALUE words and prefixes off the front; returns how many. */
static size_t take_front(struct script_reader *r, const struct shell_word *words, size_t n,
                         struct shell_word *sets, size_t *n_sets)
{
    static const char *const RESERVED[] = {"do", "then", "else", "elif", "if",
                                           "fi", "{",    "}",    "!",    NULL};
    size_t at = 0;
    size_t taken = 1;
    while (at < n && taken) {
        taken = !words[at].is_quoted && str_eq_any(words[at].text, RESERVED);
        if (is_set(&words[at])) {
            add_sets(r, sets, n_sets, &words[at], 1);
            taken = 1;
        }
        taken = taken ? taken : prefix_words(words + at, n - at);
        at += taken;
    }
    return at;
}

/* Variables set by commands: export A=1, read A, unset A, for A in ... */
static void take_declared(struct script_reader *r, const struct shell_run *run,
                          struct shell_word *sets, size_t *n_sets)
{
    static const char *const DECLARES[] = {"export", "declare", "readonly", "local",
                                           "read",   "unset",   NULL};
    if (run->n > 1 && str_eq_z(run->words[0].text, "for")) {
        add_sets(r, sets, n_sets, run->words + 1, 1);
    } else if (run->n && str_eq_any(run->words[0].text, DECLARES)) {
        add_sets(r, sets, n_sets, run->words + 1, run->n - 1);
    }
}

static void set_variables(struct script_reader *r, const struct shell_run *run)
{
    static const char *const UNKNOWN[] = {"for", "read", "unset", NULL};
    bool is_unknown = run->n && str_eq_any(run->words[0].text, UNKNOWN);
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
    struct shell_run run = {.before = words[0].before, .is_inner = is_inner};
    struct str text = STR_EMPTY;
    struct shell_word *files = arena_array(r->arena, struct shell_word, n);
    size_t n_all = 0;
    struct shell_word *all = arena_array(r->arena, struct shell_word, n);
    for (size_t idx = 0; idx < n; idx++) {
        words[idx].text = expand(r, words[idx].raw, words[idx].text);
        *(words[idx].role == SHELL_ARGUMENT ? &all[n_all++] : &files[run.n_files++]) = words[idx];
    }
    struct shell_word *sets = arena_array(r->arena, struct shell_word, 2 * n_all + 1);
    size_t front = take_front(r, all, n_all, sets, &run.n_sets);
    run.words = all + front;
    run.n = run.n_own = n_all - front;
    run.files = files;
    run.sets = sets;
    take_declared(r, &run, sets, &run.n_sets);
    set_variables(r, &run);
    if (!run.n && !run.n_sets && !run.n_files) {
        return;
    }
    run.n_own = inner_at(&run, &text);
    VEC_PUSH(&r->runs, run);
    if (text.ptr) {
        struct shell_words inner;
        shell_split(r->arena, text, &inner);
        push_frame(r, inner);
    } else {
        push_frame(r, (struct shell_words){all + front + run.n_own, run.n - run.n_own});
    }
}

void shell_script_read(struct arena *arena, struct str text, struct shell_script *ret_script)
{
    struct script_reader r = {.arena = arena};
    shell_split(arena, text, &ret_script->words);
    push_frame(&r, ret_script->words);
    while (r.n_frames) {
        struct frame *frame = &r.frames[r.n_frames - 1];
        struct shell_word *words = frame->words.items + frame->at;
        bool is_inner = r.n_frames > 1 && frame->at == 0;
        size_t n = 1;
        if (frame->at == frame->words.n) {
            r.n_frames--;
            continue;
        }
        while (frame->at + n < frame->words.n && !words[n].before) {
            n++;
        }
        frame->at += n;
        read_simple(&r, words, n, is_inner);
    }
    ret_script->runs = r.runs.items;
    ret_script->n = r.runs.n;
    ret_script->sets = r.sets.items;
    ret_script->n_sets = r.sets.n;
    arena_adopt(arena, r.runs.items);
    arena_adopt(arena, r.sets.items);
    VEC_RELEASE(&r.variables);
}

/* ---- options ---- */

bool shell_run_option(const struct shell_run *run, const char *name, size_t *at,
                      struct shell_word *ret_value)
{
    size_t len = strlen(name);
    bool is_letter = len == 2 && name[1] != '-';
    for (; *at < run->n_own; (*at)++) {
        struct shell_word word = run->words[*at];
        struct str rest = str_sub(word.text, len, SIZE_MAX);
        if (!str_starts(word.text, str_of(name))) {
            continue;
        }
        if (rest.len == 0 && *at + 1 < run->n_own) {
            *ret_value = run->words[*at + 1];
            *at += 2;
            return true;
        }
        if (rest.len && (rest.ptr[0] == '=' || is_letter)) {
            word.text = str_sub(rest, rest.ptr[0] == '=', SIZE_MAX);
            *ret_value = word;
            (*at)++;
            return true;
        }
    }
    return false;
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
