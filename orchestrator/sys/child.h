/* SPDX-License-Identifier: Apache-2.0 */
/* A program of this machine (git, skopeo, docker, reperf-pack) that is run to its end: what it prints is collected up to a
   cap, what it complains of is kept apart, and it is ended at a deadline, at ^C, or when its caller sees that nothing moves
   any more. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/strbuf.h"

#define CHILD_ERROR_MAX (64u << 10)

struct child_call {
    const char *const *argv;
    const char *const *env; /* NAME=VALUE, ended by NULL */
    const char *folder;     /* the working folder, or NULL: ours */
    /* It exists, and stderr lies there for a while; NULL: stderr goes with stdout. */
    const char *tmp_folder;
    bool shows_error;        /* stderr is copied to ours as it comes */
    const char *input_path;  /* stdin; NULL: none */
    const char *output_path; /* stdout is appended there; NULL: it goes into out */
    struct strbuf *out;      /* NULL: what it prints is dropped */
    int64_t deadline_ns;     /* 0: none */
    /* Asked ten times a second, false ends it as the deadline does; or NULL. */
    bool (*is_alive)(void *ctx);
    void *alive_ctx;
};

struct child_result {
    int exit_status; /* 128 and the signal where one ended it */
    bool is_timed_out;
    struct str error; /* the end of stderr, in the arena */
};

/* 0 whatever the status. ERR_NOT_FOUND: there is no such program; ERR_INTERRUPTED: stopped. */
MUST_CHECK int child_run(struct arena *arena, struct clock_src clock, const struct child_call *call,
                         struct child_result *ret_result, struct err *err);
/* A short tool, with the environment that children may see: stdout and stderr in out. ERR_TIMEOUT past the deadline. */
MUST_CHECK int child_capture(struct clock_src clock, const char *const *argv, int64_t deadline_ns,
                             struct strbuf *out, int *ret_exit_status, struct err *err);
