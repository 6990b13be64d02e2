/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a printed command: every word lies in its text, every run within its script, and options are read without harm. */
#include "report/launch_options.h"
#include "report/shell_script.h"
#include "tests/fuzz/fuzz.h"

static void check_words(struct str text)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct shell_words words;
    const char *from = text.ptr;
    shell_split(&arena, text, &words);
    for (size_t idx = 0; idx < words.n; idx++) {
        const struct shell_word *word = &words.items[idx];
        ASSERT(word->raw.ptr >= from && word->raw.ptr < text.ptr + text.len);
        ASSERT(word->text.len <= word->raw.len);
        ASSERT(word->raw.ptr >= text.ptr && word->raw.ptr + word->raw.len <= text.ptr + text.len);
        from = word->raw.ptr + 1;
    }
}

static void check_run(struct arena *arena, const struct shell_run *run)
{
    struct option_found option;
    ASSERT(run->n_own <= run->n);
    (void)shell_program(run);
    for (size_t at = 0; option_next(arena, run, &at, &option);) {
        ASSERT(at <= run->n_own && option.means < MEANS_N);
    }
}

FUZZ(arena, text)
{
    struct shell_script script;
    check_words(text);
    shell_script_read(arena, text, &script);
    for (size_t idx = 0; idx < script.n; idx++) {
        check_run(arena, &script.runs[idx]);
    }
}
