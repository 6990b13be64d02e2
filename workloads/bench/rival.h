/* SPDX-License-Identifier: Apache-2.0 */
/* One program of a bench: this project's own or a rival's. All run at the same time, but each computes only in its turn: it
   prepares itself, prints run_start, and then makes some steps for each line it is sent (reperf-train --turn; competitors/peer.py).
   Its lines are kept byte for byte in a log. One thread drives all of them. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/strbuf.h"

#include <signal.h>
#include <sys/types.h>

#define RIVAL_NOT_HERE  77 /* exit status of a rival whose framework is not installed */
#define RIVAL_LINE_MAX  (1 << 20)
#define RIVAL_WHY_MAX   256
#define RIVAL_ARGS_MAX  64
#define RIVAL_STEPS_MAX 100000
#define RIVAL_NAME_MAX  32

enum rival_state {
    RIVAL_IDLE,  /* not started yet */
    RIVAL_READY, /* waits for its turn */
    RIVAL_DONE,  /* all steps made, ended with 0 */
    RIVAL_LATE, /* the deadline came after its first turn: the finished turns count, and why says how many */
    RIVAL_SKIPPED, /* cannot run on this machine: why says what is missing */
    RIVAL_FAILED,  /* why says how; no number of it counts */
};

struct rival {
    char name[RIVAL_NAME_MAX];
    const char *argv[RIVAL_ARGS_MAX]; /* borrowed, ended by NULL */
    enum rival_state state;
    char why[RIVAL_WHY_MAX];
    pid_t pid;
    int in_fd, out_fd, log_fd;
    const char *err_path;   /* borrowed: its standard error */
    struct strbuf pending;  /* read, but not yet a whole line */
    struct str start, stop; /* the two lines, checked JSON, in the arena */
    int64_t prepare_ns;     /* until run_start */
    int64_t *step_ns;       /* owned */
    double *losses;         /* owned */
    int64_t *turn_ns;       /* owned: by our clock, from the line sent to the last line read */
    int n_steps, n_turns;
};

/* Arguments shared by all calls. */
struct rival_world {
    struct arena *arena;
    struct clock_src clock;
    int64_t deadline_ns; /* by clock.mono_ns: nothing waits longer */
    const volatile sig_atomic_t *stop;
};

/* argv is added by rival_arg. */
void rival_init(struct rival *rival, const char *name);
void rival_arg(struct rival *rival, const char *arg);
void rival_release(struct rival *rival);

/* Starts it and waits until it is ready or has failed; state says which. An error is ours: a signal, no log. */
MUST_CHECK int rival_start(struct rival *rival, const struct rival_world *world,
                           const char *log_folder, struct err *err);

/* One turn of n_steps; a rival that is not ready is skipped. */
MUST_CHECK int rival_turn(struct rival *rival, const struct rival_world *world, int n_steps,
                          struct err *err);

/* After the last turn: it must print run_stop and end with 0. */
MUST_CHECK int rival_finish(struct rival *rival, const struct rival_world *world, struct err *err);

/* Runs it to its end without turns; *ret_status is -1 where a signal ended it. */
MUST_CHECK int rival_run(struct rival *rival, const struct rival_world *world,
                         const char *log_folder, int *ret_status, struct err *err);

/* The same; then its state is done, skipped or failed. */
MUST_CHECK int rival_try(struct rival *rival, const struct rival_world *world,
                         const char *log_folder, struct err *err);

/* Gives it no number: ends it, if it lives, and records why. */
void rival_fail(struct rival *rival, const char *why);

/* It has a number: of all turns or of those that were finished. */
static inline bool rival_is_timed(const struct rival *rival)
{
    return rival->state == RIVAL_DONE || rival->state == RIVAL_LATE;
}

const char *rival_state_name(enum rival_state state);
