/* SPDX-License-Identifier: Apache-2.0 */
/* Compares loops in printed launches with the stated repeats. */
#include "base/base.h"

#include "lint/lint_parts.h"

/* A variable that is something other than the number of the run. */
static bool counts_other_things(struct str name)
{
    return holds_text(name, "bs batch gpu node host rank card size prec amp model");
}

/* {2..6}: how many; 0 for anything else. */
static int64_t count_braces(struct str word)
{
    int64_t dots = str_find(word, STR_LIT(".."));
    int64_t first = 0;
    int64_t last = 0;
    return str_starts(word, STR_LIT("{")) && str_ends(word, STR_LIT("}")) && dots > 1 &&
                   to_count(str_sub(word, 1, (size_t)dots - 1), INT32_MAX, &first) &&
                   to_count(str_sub(word, (size_t)dots + 2, word.len - (size_t)dots - 3), INT32_MAX,
                            &last) &&
                   last >= first
               ? last - first + 1
               : 0;
}

/* for NAME in 1 2 3, for NAME in {2..6} */
static int64_t count_for(const struct shell_run *run)
{
    int64_t n = 0;
    if (run->n < 4 || !str_eq_z(run->words[2].text, "in") ||
        counts_other_things(run->words[1].text)) {
        return 0;
    }
    for (size_t idx = 3; idx < run->n; idx++) {
        struct str word = run->words[idx].text;
        int64_t number = 0;
        int64_t here = count_braces(word);
        if (!here && !to_count(word, INT32_MAX, &number)) {
            return 0;
        }
        n += here ? here : 1;
    }
    return n;
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

/* while [ $NAME -le 6 ], until [ $NAME -gt 6 ]: from the first value that the text gives NAME. */
static int64_t count_while(const struct shell_script *script, const struct shell_run *run)
{
    static const char CLOSED[] = "-le -gt";
    struct shell_cursor cursor = {0};
    struct str name;
    bool has_default;
    int64_t first = 0;
    int64_t limit = 0;
    if (run->n < 5 || !shell_next_use(run->words[2].raw, &cursor, &name, &has_default) ||
        counts_other_things(name) || !first_value(script, name, &first) ||
        !to_count(run->words[4].text, INT32_MAX, &limit)) {
        return 0;
    }
    limit += is_word_of(run->words[3].text, CLOSED);
    return (is_word_of(run->words[3].text, CLOSED) || is_word_of(run->words[3].text, "-lt -ge")) &&
                   limit > first
               ? limit - first
               : 0;
}

/* Whether a launch stands between a loop's head and its end. */
static bool launches(const struct shell_script *script, size_t first)
{
    for (size_t idx = first; idx < script->n && !shell_is(&script->runs[idx], "done"); idx++) {
        const struct shell_run *run = &script->runs[idx];
        struct str program = shell_program(run);
        if (run->n && (option_is_launcher(run) || ends_with_any(program, ".py .sh") ||
                       (option_is_training(run) &&
                        (!str_eq(program, run->words[0].text) || program.ptr[0] == '$')))) {
            return true;
        }
    }
    return false;
}

static void lint_count(const struct lint_command *c, int64_t n)
{
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

void lint_loops(const struct lint_command *c)
{
    const struct shell_run *run = c->run;
    int64_t n = shell_is(run, "for")                               ? count_for(run)
                : shell_is(run, "while") || shell_is(run, "until") ? count_while(c->script, run)
                                                                   : 0;
    if (n && launches(c->script, (size_t)(run - c->script->runs) + 1)) {
        lint_count(c, n);
    }
}
