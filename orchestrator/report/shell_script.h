/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs a printed text runs, as far as the text alone tells: words by the shell's quoting, prefixes such as sudo and env
   removed, `bash -c`, containers and launchers followed to what they start, and $NAME replaced where the text itself gives NAME
   one value. Reserved words of conditions are skipped; a loop's head is a run named for, while or until, and its end one named
   done. Here-documents and arithmetic are read as plain words. Views lie in the text or in the arena. Nothing is run. Source of
   the rules: POSIX.1-2017, XCU 2.2 and 2.3. Pure. */
#pragma once

#include "base/str.h"

enum shell_role {
    SHELL_ARGUMENT, /* a word of a command, assignments before it among them */
    SHELL_TO,       /* the file after > */
    SHELL_FROM      /* the file after < */
};

struct shell_word {
    struct str text; /* quotes and escapes removed; of a run also known $NAMEs replaced */
    struct str raw;  /* as written */
    enum shell_role role;
    bool is_first;  /* of a simple command */
    bool is_quoted; /* a part of it is quoted or escaped */
    bool has_use;   /* of a $NAME or the like that the shell would expand */
};

struct shell_words {
    struct shell_word *items; /* in the arena */
    size_t n;
};

/* Comments are left out, and so are `2>&1` and the like. Each word takes at least one byte of the text. */
void shell_split(struct arena *arena, struct str text, struct shell_words *ret_words);

struct shell_run {
    const struct shell_word *words; /* [0] names the program; none if there are only assignments */
    size_t n;
    /* Words before the program that it starts, which follows as a run of its own; else n. */
    size_t n_own;
    /* NAME=VALUE that apply to it; for export and the like their names, too. */
    const struct shell_word *sets;
    size_t n_sets;
    const struct shell_word *files; /* redirections, by role */
    size_t n_files;
    bool is_inner; /* started by the run before it: a launcher, a container, an inner shell */
};

struct shell_script {
    struct shell_run *runs;
    size_t n;
};

void shell_script_read(struct arena *arena, struct str text, struct shell_script *ret_script);

/* NAME=VALUE or NAME+=VALUE: true, and both parts. */
bool shell_assignment(struct str word, struct str *ret_name, struct str *ret_value);
/* The program's name without its folder: "tar"; of `python -m a.b` the module, of `python x/train.py` the file. */
struct str shell_program(const struct shell_run *run);
bool shell_is(const struct shell_run *run, const char *programs); /* "mv cp" */

/* For docker, nvidia-docker and podman: index of the verb, after `container`, `image` and `buildx`. n for other programs. */
size_t shell_engine_verb(const struct shell_run *run);
bool shell_engine_does(const struct shell_run *run, const char *verb);
bool shell_run_flag(const struct shell_run *run, const char *name); /* exactly this word */

bool is_identifier(struct str s);
struct str path_base(struct str path);
/* `path` as it is named in `folder`: "/a/b", without "." and ".."; "" of the root. */
struct str path_resolve(struct arena *arena, struct str folder, struct str path);
