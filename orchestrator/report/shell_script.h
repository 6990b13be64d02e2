/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs a printed text runs, as far as the text alone tells: prefixes such as sudo and env are removed, `bash -c`, containers
   and launchers are followed to what they start, and $NAME is replaced where the text itself gives NAME one value. Reserved words of
   conditions are skipped; a loop's head is a run named for, while or until, and its end one named done. Views live in the arena.
   Nothing is run. Pure. */
#pragma once

#include "report/shell_text.h"

struct shell_run {
    const struct shell_word *words; /* [0] names the program; none if there are only assignments */
    size_t n;
    size_t
        n_own; /* words before the program that it starts, which follows as a run of its own; else n */
    const struct shell_word
        *sets; /* NAME=VALUE that apply to it; for export and the like their names, too */
    size_t n_sets;
    const struct shell_word *files; /* redirections, by role */
    size_t n_files;
    char before;   /* as shell_word's */
    bool is_inner; /* started by the run before it: a launcher, a container, an inner shell */
};

struct shell_script {
    struct shell_run *runs;
    size_t n;
    const struct shell_word *sets; /* all of the text, in order */
    size_t n_sets;
    struct shell_words words; /* all of the text except its inner shells */
};

void shell_script_read(struct arena *arena, struct str text, struct shell_script *ret_script);

/* The program's name without its folder: "tar"; of `python -m a.b` the module, of `python x/train.py` the file. */
struct str shell_program(const struct shell_run *run);
bool shell_is(const struct shell_run *run, const char *program);
bool shell_is_any(const struct shell_run *run, const char *programs); /* "mv cp" */

/* For docker, nvidia-docker and podman: index of the verb, after `container`, `image` and `buildx`. n for other programs. */
size_t shell_engine_verb(const struct shell_run *run);
bool shell_engine_does(const struct shell_run *run, const char *verb);

/* The next value of an option among the run's own words: --name VALUE, --name=VALUE; of one letter also -nVALUE. *at: where to look
   from, initially 1; it moves past what was found. */
bool shell_run_option(const struct shell_run *run, const char *name, size_t *at,
                      struct shell_word *ret_value);
bool shell_run_flag(const struct shell_run *run, const char *name); /* exactly this word */
