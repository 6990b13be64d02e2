/* SPDX-License-Identifier: Apache-2.0 */
/* A stack's printed commands: lists of logs, loops, and the rules of the other files in their order. */
#include "base/base.h"

#include "lint/lint_parts.h"

/* ---- lists of logs as printed by a report: names that nothing writes, links with another case's label ---- */

static bool is_written(const struct lint *lint, const struct stack *s, struct str name)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct command *command = &s->commands[idx];
        if (command->printed.ptr && !is_list_log(command) &&
            str_find(command->printed, name) >= 0) {
            return true;
        }
    }
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        for (size_t log = 0; log < c->n_logs; log++) {
            if (str_eq(path_base(c->logs[log]), name)) {
                return true;
            }
        }
    }
    return false;
}

enum { SAYS_HALF = 1, SAYS_FULL = 2 };

static int precision_of(struct lint *lint, struct str text)
{
    static const char HALF[] = "(?i)(?<![a-z])(?:fp16|amp|float16|half|bf16|mixed)(?![a-z])";
    static const char FULL[] = "(?i)(?<![a-z])(?:fp32|float32)(?![a-z])";
    return lint_has(lint, HALF, text) * SAYS_HALF + lint_has(lint, FULL, text) * SAYS_FULL;
}

/* [label](path) and label: path, where the label says one precision and the path the other. */
static void lint_link(const struct lint_command *c, struct str line)
{
    struct str g[3];
    if (patterns_find(&c->lint->patterns, "^(.+?)(?:\\]\\(|: |\">)(.*)", line, g, 3) &&
        precision_of(c->lint, g[1]) + precision_of(c->lint, g[2]) == SAYS_HALF + SAYS_FULL &&
        precision_of(c->lint, g[1]) && precision_of(c->lint, g[2])) {
        lint_add(c->lint, "log-links-swapped", c->at, "the link \"%.*s\"", STR_ARG(str_trim(line)));
    }
}

static void lint_log_names(const struct lint_command *c, struct str line)
{
    static const char NAME[] =
        "([^ \\t\\r()\\[\\]<>\"'`,;|/]+\\.(?:txt|log))(?![^ \\t\\r()\\[\\]<>\"'`,;|])";
    struct str name;
    while ((name = lint_part(c->lint, NAME, line)).ptr) {
        if (!is_written(c->lint, c->stack, name)) {
            lint_add(c->lint, "log-name-unknown", c->at,
                     "log %.*s is listed, but no printed command writes it", STR_ARG(name));
        }
        line = str_sub(line, (size_t)(name.ptr - line.ptr) + name.len, SIZE_MAX);
    }
}

static void lint_logs(struct lint *lint, const struct stack *s)
{
    struct lint_command c = lint_walk(lint, s);
    while (lint_next_command(&c)) {
        struct str rest = c.command->printed;
        struct str line;
        while (is_list_log(c.command) && str_next(&rest, '\n', &line)) {
            lint_link(&c, line);
            lint_log_names(&c, line);
        }
    }
}

/* ---- loops around launches, which are compared with the stated repeats ---- */

/* A variable that is something other than the number of the run. */
#define OTHERS "(?i:\\w*(?:bs|batch|gpu|node|host|rank|card|size|prec|amp|model))"
#define HEAD   "(?!" OTHERS ")"

/* for NAME in 1 2 3, for NAME in {2..6} */
static int64_t count_for(struct lint *lint, struct str line)
{
    static const char LIST[] = "for " HEAD "\\w+ in ((?:\\d+ )+)\\z";
    static const char BRACES[] = "for " HEAD "\\w+ in \\{(\\d+)\\.\\.(\\d+)\\} \\z";
    struct str g[3], rest = lint_part(lint, LIST, line), number;
    int64_t n = 0, first = 0;
    while (rest.len && str_next(&rest, ' ', &number)) {
        n += number.len > 0;
    }
    return patterns_find(&lint->patterns, BRACES, line, g, 3) &&
                   to_count(g[1], INT32_MAX, &first) && to_count(g[2], INT32_MAX, &n)
               ? n - first + 1
               : n;
}

/* while [ $NAME -le 6 ], until [ $NAME -gt 6 ], where the text gives NAME one value before it. */
static int64_t count_while(const struct lint_command *c)
{
    static const char LOOP[] = "(?:while|until) [^ ]+ (\\d+) (?:(-le|-gt)|-lt|-ge) (\\d+) ";
    struct str g[4];
    int64_t first = 0, limit = 0;
    return patterns_find(&c->lint->patterns, LOOP, c->line, g, 4) &&
                   !lint_has(c->lint, OTHERS, c->run->words[2].raw) &&
                   to_count(g[1], INT32_MAX, &first) && to_count(g[3], INT32_MAX, &limit)
               ? limit + (g[2].ptr != NULL) - first
               : 0;
}

/* Whether a launch stands between a loop's head and its end. */
static bool launches(const struct shell_script *script, const struct shell_run *run)
{
    for (; run < script->runs + script->n && !shell_is(run, "done"); run++) {
        struct str program = shell_program(run);
        if (run->n && (option_is_launcher(run) || ends_with_any(program, ".py .sh") ||
                       (option_is_training(run) &&
                        (!str_eq(program, run->words[0].text) || program.ptr[0] == '$')))) {
            return true;
        }
    }
    return false;
}

static void lint_loops(const struct lint_command *c)
{
    int64_t n = shell_is(c->run, "for")           ? count_for(c->lint, c->line)
                : shell_is(c->run, "while until") ? count_while(c)
                                                  : 0;
    if (n <= 0 || !launches(c->script, c->run + 1)) {
        return;
    }
    for (const struct report_case *of = NULL; (of = command_next_case(c, of));) {
        struct str stated = STR_EMPTY;
        int64_t repeats = 0;
        if (case_condition(of, "repeats", &stated) && to_count(stated, INT32_MAX, &repeats) &&
            repeats != n) {
            lint_add(c->lint, "repeats-differ", c->at,
                     "the loop runs %" PRId64 " times, and %" PRId64 " repeats are stated", n,
                     repeats);
        }
    }
}

/* ---- all of them ---- */

bool to_count(struct str text, int64_t max, int64_t *ret)
{
    return text.ptr && str_to_i64(text, 0, max, ret, ERR_IGNORED) == 0;
}

bool is_unknown(struct str s)
{
    return s.len && (memchr(s.ptr, '$', s.len) || memchr(s.ptr, '`', s.len));
}

bool is_list_log(const struct command *command)
{
    return str_eq_z(command->purpose, "log");
}

static void lint_changed(struct lint *lint, const struct stack *s)
{
    size_t n_changed = 0;
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        n_changed += s->commands[idx].printed.ptr && s->commands[idx].works.ptr;
    }
    if (n_changed) {
        lint_add(lint, "command-changed", in_stack(s, ".commands"),
                 "%zu of %zu commands had to be changed to work", n_changed, s->n_commands);
    }
}

void lint_commands(struct lint *lint)
{
    /* In this order; a rule is of a stack as a whole, or of each run of its printed commands. */
    static const struct {
        void (*of_stack)(struct lint *lint, const struct stack *s);
        void (*of_run)(const struct lint_command *c);
    } RULES[] = {{lint_archives, NULL},    {lint_git, NULL},        {NULL, lint_packages},
                 {lint_variables, NULL},   {lint_changed, NULL},    {NULL, lint_launches},
                 {lint_not_printed, NULL}, {NULL, lint_settings},   {lint_recipes, NULL},
                 {NULL, lint_loops},       {NULL, lint_containers}, {lint_logs, NULL}};
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        const struct stack *s = &lint->report->stacks[idx];
        for (size_t rule = 0; stack_next_case(lint, s, NULL) && rule < ARRAY_LEN(RULES); rule++) {
            struct lint_command c = lint_walk(lint, s);
            if (RULES[rule].of_stack) {
                RULES[rule].of_stack(lint, s);
                continue;
            }
            while (lint_next_run(&c)) {
                RULES[rule].of_run(&c);
            }
        }
    }
}
