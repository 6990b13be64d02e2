/* SPDX-License-Identifier: Apache-2.0 */
/* git as a program, for untrusted repositories: its environment is set completely; no configuration but ours, no prompt, no hook,
   no credential helper, no template, no protocol but those of an allow-list. One thread. */
#pragma once

#include "base/clock.h"
#include "base/strbuf.h"

#define GIT_ARGS_MAX   64
#define GIT_OUTPUT_MAX (64u << 20)

struct git {
    struct arena *arena; /* borrowed */
    struct clock_src clock;
    const char *tmp_folder; /* exists; for what git says on stderr, and indexes */
    const char *proxy;      /* NULL: none */
    const char *ca_path;    /* NULL: the system's */
};

struct git_call {
    const char *git_dir;     /* NULL: none */
    const char *work_tree;   /* NULL: none; else also where git starts */
    const char *index_path;  /* NULL: none */
    const char *new_objects; /* NULL: new objects go to git_dir; else to this folder */
    const char *const *args; /* after git's own options; ended by NULL */
    const char *input_path;  /* stdin; NULL: none */
    const char *output_path; /* stdout goes there; NULL: into `out` */
    /* NULL, or the address that remote "part" stands for in args: objects that it does not send are not missed. */
    const char *part_of;
    int64_t deadline_ns; /* 0: none */
};

struct git_result {
    int exit_status;
    struct str error; /* the last lines of stderr, without secrets; in the arena */
};

/* Ends with 0 whatever git's status is; -1 where it could not run, was stopped, or took too long. out may be NULL. */
MUST_CHECK int git_run(const struct git *git, const struct git_call *call, struct strbuf *out,
                       struct git_result *ret_result, struct err *err);
/* The same, and another status than 0 is an error of that code. */
MUST_CHECK int git_must(const struct git *git, const struct git_call *call, struct strbuf *out,
                        enum err_code code, struct err *err);
/* One line of 40 hex digits, in the arena. */
MUST_CHECK int git_hex(const struct git *git, const struct git_call *call, const char **ret_hex,
                       struct err *err);

#define GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})
