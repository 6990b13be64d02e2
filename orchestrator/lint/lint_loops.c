/* SPDX-License-Identifier: Apache-2.0 */
/* Compares loops in printed launches with the stated repeats. */
#include "base/base.h"

#include "lint/lint_parts.h"

/* A variable that is something other than the number of the run. */
static bool counts_other_things(struct str name)
{
    static const char *const PARTS[] = {"bs",   "batch", "gpu",   "node", "host",  "rank", "dev",
                                        "card", "work",  "lr",    "port", "size",  "len",  "prec",
                                        "amp",  "type",  "model", "np",   "epoch", "file", NULL};
    for (const char *const *part = PARTS; *part; part++) {
        if (holds_text(name, *part)) {
            return true;
        }
    }
    return false;
}

/* The length of FIRST, FIRST + STEP, ... LAST. */
static int64_t count_range(int64_t first, int64_t step, int64_t last)
{
    return step > 0 && last >= first ? (last - first) / step + 1 : 0;
}

/* {2..6}, {2..6..2}: how many; 0 for anything else. */
static int64_t count_braces(struct str word)
{
    int64_t numbers[3] = {0, 0, 1};
    size_t n = 0;
    if (word.len < 6 || word.ptr[0] != '{' || word.ptr[word.len - 1] != '}') {
        return 0;
    }
    word = str_sub(word, 1, word.len - 2);
    while (n < 3 && word.ptr) {
        int64_t dots = str_find(word, STR_LIT(".."));
        struct str part = dots >= 0 ? str_sub(word, 0, (size_t)dots) : word;
        if (!to_count(part, INT32_MAX, &numbers[n++])) {
            return 0;
        }
        word = dots >= 0 ? str_sub(word, (size_t)dots + 2, SIZE_MAX) : STR_EMPTY;
    }
    return n > 1 ? count_range(numbers[0], numbers[2], numbers[1]) : 0;
}

static int64_t count_numbers(const int64_t *numbers, size_t n)
{
    return n == 1   ? numbers[0]
           : n == 2 ? count_range(numbers[0], 1, numbers[1])
           : n == 3 ? count_range(numbers[0], numbers[1], numbers[2])
                    : 0;
}

/* $(seq LAST), $(seq FIRST LAST), `seq FIRST STEP LAST`. */
static int64_t count_seq(struct str word)
{
    int64_t numbers[3];
    size_t n = 0;
    struct str part;
    if (str_starts(word, STR_LIT("$("))) {
        word = str_sub(word, 2, word.len - 3);
    } else if (str_starts(word, STR_LIT("`"))) {
        word = str_sub(word, 1, word.len - 2);
    } else {
        return 0;
    }
    word = str_trim(word);
    if (!str_starts(word, STR_LIT("seq "))) {
        return 0;
    }
    word = str_sub(word, 4, SIZE_MAX);
    while (str_next(&word, ' ', &part)) {
        if (part.len && part.ptr[0] != '-' &&
            (n == ARRAY_LEN(numbers) || !to_count(part, INT32_MAX, &numbers[n++]))) {
            return 0;
        }
    }
    return count_numbers(numbers, n);
}

/* How many lines the run before `at` pipes into it; only for seq. */
static int64_t count_piped(const struct shell_script *script, size_t at)
{
    const struct shell_run *seq = at > 0 && at < script->n ? &script->runs[at - 1] : NULL;
    int64_t numbers[3];
    size_t n = 0;
    if (!seq || script->runs[at].before != '|' || !shell_is(seq, "seq")) {
        return 0;
    }
    for (size_t idx = 1; idx < seq->n; idx++) {
        struct str word = seq->words[idx].text;
        if (word.len && word.ptr[0] != '-' &&
            (n == ARRAY_LEN(numbers) || !to_count(word, INT32_MAX, &numbers[n++]))) {
            return 0;
        }
    }
    return count_numbers(numbers, n);
}

static int64_t count_values(const struct shell_loop *loop)
{
    int64_t n = 0;
    for (size_t idx = 0; idx < loop->n; idx++) {
        struct str word = loop->words[idx].text;
        int64_t number = 0;
        int64_t here = count_braces(word) + count_seq(word);
        if (!here && !to_count(word, INT32_MAX, &number)) {
            return 0;
        }
        n += here ? here : 1;
    }
    return n;
}

struct loop_comparison {
    struct str name;
    int64_t limit;
    bool is_open; /* < and > leave the limit out */
};

/* NAME<=N, NAME < N and the like, blanks or not. */
static bool read_comparison(struct str text, struct loop_comparison *ret)
{
    size_t at = 0;
    struct str rest;
    text = str_trim(text);
    while (at < text.len && is_identifier(str_sub(text, 0, at + 1))) {
        at++;
    }
    rest = str_trim(str_sub(text, at, SIZE_MAX));
    if (!at || !rest.len || !strchr("<>!=", rest.ptr[0])) {
        return false;
    }
    ret->name = str_sub(text, 0, at);
    ret->is_open = rest.ptr[0] == '!' || rest.len < 2 || rest.ptr[1] != '=';
    return to_count(str_trim(str_sub(rest, rest.len > 1 && rest.ptr[1] == '=' ? 2 : 1, SIZE_MAX)),
                    INT32_MAX, &ret->limit);
}

/* ((i = 1; i <= 6; i++)) */
static int64_t count_c_loop(struct str text)
{
    struct str first;
    struct str condition = STR_EMPTY;
    struct str step = STR_EMPTY;
    struct loop_comparison c = {.limit = 0};
    int64_t from = 0;
    int64_t by = 1;
    int64_t at;
    if (!str_starts(text, STR_LIT("((")) || !str_ends(text, STR_LIT("))"))) {
        return 0;
    }
    text = str_sub(text, 2, text.len - 4);
    (void)str_next(&text, ';', &first);
    (void)str_next(&text, ';', &condition);
    (void)str_next(&text, ';', &step);
    at = str_find(first, STR_LIT("="));
    if (at < 0 || !to_count(str_trim(str_sub(first, (size_t)at + 1, SIZE_MAX)), INT32_MAX, &from) ||
        !read_comparison(condition, &c)) {
        return 0;
    }
    at = str_find(step, STR_LIT("+="));
    if (at > 0 && !to_count(str_trim(str_sub(step, (size_t)at + 2, SIZE_MAX)), INT32_MAX, &by)) {
        return 0;
    }
    return count_range(from, by, c.limit - c.is_open);
}

static bool first_value(const struct shell_script *script, struct str name, int64_t *ret)
{
    for (size_t idx = 0; idx < script->n_sets; idx++) {
        struct str key;
        struct str value;
        if (shell_assignment(script->sets[idx].text, &key, &value) && str_eq(key, name)) {
            return to_count(value, INT32_MAX, ret);
        }
    }
    return false;
}

/* [ $i -le 6 ], [[ $i -lt 7 ]], test $i -lt 6, ((i <= 6)); until: the opposite. */
static bool read_condition(const struct shell_loop *loop, struct loop_comparison *ret)
{
    for (size_t idx = 0; idx < loop->n; idx++) {
        struct str word = loop->words[idx].text;
        struct shell_cursor cursor = {0};
        bool has_default;
        struct str op;
        if (str_starts(word, STR_LIT("((")) && word.len > 4) {
            return read_comparison(str_sub(word, 2, word.len - 4), ret);
        }
        if (idx + 2 >= loop->n ||
            !shell_next_use(loop->words[idx].raw, &cursor, &ret->name, &has_default)) {
            continue;
        }
        op = loop->words[idx + 1].text;
        ret->is_open = str_eq_z(op, "-lt") || str_eq_z(op, "-ge") || str_eq_z(op, "-eq") ||
                       str_eq_z(op, "-ne");
        return (ret->is_open || str_eq_z(op, "-le") || str_eq_z(op, "-gt")) &&
               to_count(loop->words[idx + 2].text, INT32_MAX, &ret->limit);
    }
    return false;
}

static int64_t count_loop(const struct shell_script *script, const struct shell_loop *loop)
{
    struct loop_comparison c = {.limit = 0};
    int64_t first = 0;
    if (loop->kind == SHELL_FOR) {
        return counts_other_things(loop->name) && is_identifier(loop->name) ? 0
               : loop->n                                                    ? count_values(loop)
                         : count_c_loop(loop->name);
    }
    if (loop->kind == SHELL_WHILE && loop->n > 1 && str_eq_z(loop->words[0].text, "read")) {
        return counts_other_things(loop->words[loop->n - 1].text)
                   ? 0
                   : count_piped(script, loop->first);
    }
    if (!read_condition(loop, &c) || counts_other_things(c.name) ||
        !first_value(script, c.name, &first)) {
        return 0;
    }
    return count_range(first, 1, c.limit - c.is_open);
}

/* Whether any of these runs is a launch. */
static bool launches(const struct shell_script *script, size_t first, size_t end)
{
    static const char *const SCRIPTS[] = {".py", ".sh", NULL};
    for (size_t idx = first; idx < end; idx++) {
        const struct shell_run *run = &script->runs[idx];
        struct str program = shell_program(run);
        if (run->n && (option_is_launcher(run) || ends_in_any(program, SCRIPTS) ||
                       (option_is_training(run) &&
                        (!str_eq(program, run->words[0].text) || program.ptr[0] == '$')))) {
            return true;
        }
    }
    return false;
}

static void lint_count(struct lint *lint, const struct lint_command *c, int64_t n)
{
    for (size_t idx = 0; n > 0 && idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        struct str stated = STR_EMPTY;
        int64_t repeats = 0;
        if (of->stack == c->stack && command_is_for(c->command, of) &&
            case_condition(of, "repeats", &stated) && to_count(stated, INT32_MAX, &repeats) &&
            repeats != n) {
            lint_add(lint, "repeats-differ", c->stack, c->place,
                     "the loop runs %" PRId64 " times, and %" PRId64 " repeats are stated", n,
                     repeats);
        }
    }
}

/* Whether the text with or before the value gives it another meaning. */
static bool is_for_other_things(const struct shell_run *xargs, struct str mark)
{
    for (size_t idx = xargs->n_own; idx < xargs->n; idx++) {
        if (str_find(xargs->words[idx].text, mark) >= 0 &&
            (counts_other_things(xargs->words[idx].text) ||
             counts_other_things(xargs->words[idx - 1].text))) {
            return true;
        }
    }
    return false;
}

/* seq 6 | xargs -n1 PROGRAM, and -I{} PROGRAM {}: one after the other, one number each. */
static void lint_xargs(struct lint *lint, const struct lint_command *c, size_t at)
{
    const struct shell_run *run = &c->script->runs[at];
    struct shell_word value = {.text = STR_EMPTY};
    size_t each = 1;
    size_t marked = 1;
    size_t parallel = 1;
    size_t end = at + 1;
    bool has_mark;
    if (!shell_is(run, "xargs") || shell_run_option(run, "-P", &parallel, &value) ||
        shell_run_option(run, "--max-procs", &parallel, &value)) {
        return;
    }
    while (end < c->script->n && c->script->runs[end].is_inner) {
        end++;
    }
    has_mark = shell_run_option(run, "-I", &marked, &value);
    if (has_mark ? is_for_other_things(run, value.text)
                 : !(shell_run_option(run, "-n", &each, &value) && str_eq_z(value.text, "1")) ||
                       counts_other_things(run->words[run->n - 1].text)) {
        return;
    }
    if (launches(c->script, at + 1, end)) {
        lint_count(lint, c, count_piped(c->script, at));
    }
}

void lint_loops(struct lint *lint, const struct stack *s)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        struct lint_command c = lint_command_at(lint, s, idx);
        for (size_t at = 0; !is_list_log(c.command) && at < c.script->n_loops; at++) {
            const struct shell_loop *loop = &c.script->loops[at];
            if (launches(c.script, loop->first, loop->end)) {
                lint_count(lint, &c, count_loop(c.script, loop));
            }
        }
        for (size_t at = 0; !is_list_log(c.command) && at < c.script->n; at++) {
            lint_xargs(lint, &c, at);
        }
    }
}
