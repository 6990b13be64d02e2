/* SPDX-License-Identifier: Apache-2.0 */
/* What shell_script.c must know of programs (shell_programs.c). Nobody else includes this. */
#ifndef LINT_SHELL_SCRIPT_IMPL_H
#define LINT_SHELL_SCRIPT_IMPL_H

#include "lint/shell_script.h"

/* How many words at the front are a prefix with its options: `sudo -u me`, `timeout -k 5 60`; 0 if there is none. */
size_t shell_prefix_words(const struct shell_word *words, size_t n);

/* What a run starts: an inner shell's text, or its own words from `at` on. Nothing: text NULL and at == n. */
struct shell_inner {
    struct str text;
    size_t at;
    bool is_elsewhere;
};
struct shell_inner shell_inner_of(struct arena *arena, const struct shell_run *run);

#endif
