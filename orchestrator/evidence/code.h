/* SPDX-License-Identifier: Apache-2.0 */
/* The code of somebody's own command, as it was when its run was made: `command` of environment/local.json. The files that the
   command names, and those that git has as changed since its commit, each by its digest. A number of several repeats, and a
   published number, are of one code only: who repeats it or publishes it asks code_check first. Everything is in the arena. */
#pragma once

#include "base/clock.h"
#include "codec/json_table.h"

struct code_file {
    struct str name;   /* below the folder; absolute, or with "../", where it is not */
    struct str sha256; /* ptr NULL: git has it, and it is not there */
};

struct code {
    struct str folder;       /* ptr NULL: the command runs in an image, whose files are not these */
    struct str commit;       /* ptr NULL: the folder is none of git's */
    struct code_file *files; /* that words of the command name */
    size_t n_files;
    /* What git has as changed since the commit, and no word names. */
    struct code_file *changed;
    size_t n_changed;
    bool is_changed; /* since the commit */
};
extern const struct json_field CODE_ROWS[];
extern const size_t CODE_N;

struct code_opts {
    const char *folder;       /* where the command is started */
    const char *const *words; /* of the command; none: it runs in an image */
    size_t n_words;
};
MUST_CHECK int code_note(struct arena *arena, struct clock_src clock, const struct code_opts *opts,
                         struct code *ret, struct err *err);

/* From an evidence folder; a run of a report, or of an earlier program, has none: folder is NULL. */
MUST_CHECK int code_load(struct arena *arena, const char *evidence, struct code *ret,
                         struct err *err);

/* ERR_INTEGRITY naming what is not the same in the code's own folder (copy NULL), or in a copy of it. Of a copy only what lies
   below it counts; what git has as changed need not be in it. */
MUST_CHECK int code_check(struct arena *arena, struct clock_src clock, const struct code *code,
                          const char *copy, struct err *err);

/* Files below a folder that git does not have; none where the folder is none of git's. */
MUST_CHECK int code_untracked(struct arena *arena, struct clock_src clock, const char *folder,
                              struct str **ret_names, size_t *ret_n, struct err *err);
