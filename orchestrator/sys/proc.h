/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: argv arrays (never a shell line), an environment given in full, a process group of its own, output to a
   file or streamed through the loop, a deadline with TERM, then KILL of the whole group. A struct proc is owned by its
   caller and must stay where it is between proc_start and proc_release. */
#ifndef SYS_PROC_H
#define SYS_PROC_H

#include <sys/types.h>

#include "base/strbuf.h"
#include "sys/loop.h"

#define PROC_GRACE_NS (5 * NS_PER_S) /* between TERM and KILL */

typedef void (*proc_output_fn)(void *ctx, const char *ptr, size_t len);

struct proc_spec {
    const char *const *argv; /* argv[0] is a path, or a name looked up in PATH */
    const char *const *env;  /* NAME=VALUE, ended by NULL */
    const char *folder;      /* working folder, or NULL: ours */
    bool has_input; /* input_fd, the caller's own, is the child's stdin; else that is /dev/null */
    int input_fd;
    bool is_socket;           /* input_fd is its stdout too; on_output then gets stderr alone */
    const char *output_path;  /* stdout and stderr are appended there; if NULL, see on_output */
    const char *error_path;   /* stderr alone is appended there; NULL: with stdout */
    proc_output_fn on_output; /* NULL and no output_path: /dev/null */
    void *output_ctx;
    int64_t deadline_ns; /* span; 0: none */
    int64_t grace_ns;    /* 0: PROC_GRACE_NS */
};

struct proc {
    struct loop *loop; /* borrowed */
    pid_t pid;         /* 0: never started */
    int pid_fd;        /* readable when it has ended; -1 where the kernel has no pidfd */
    int out_fd;
    proc_output_fn on_output;
    void *output_ctx;
    int64_t kill_at_ns; /* 0: not being stopped */
    int64_t grace_ns;
    uint64_t deadline_timer;
    bool has_ended;
    bool is_timed_out;
    int exit_status; /* after its end; -1 where a signal ended it */
    int signal_no;   /* 0 where it exited */
};

#define PROC_EMPTY ((struct proc){.pid_fd = -1, .out_fd = -1})

/* ERR_NOT_FOUND if there is no such program. */
MUST_CHECK int proc_start(struct proc *proc, struct loop *loop, const struct proc_spec *spec,
                          struct err *err);
/* Call after each loop_once. STEP_DONE once it has ended and its output is read to the end. */
enum step proc_step(struct proc *proc, struct err *err);
/* TERM to the group now, KILL after the grace. */
void proc_stop(struct proc *proc);
/* Kills what still runs, reaps it. */
void proc_release(struct proc *proc);
CLEANUP_BY(proc, struct proc, proc_release);

/* Our environment reduced to what a child may see: the names of the allow-list. In the arena, ended by NULL. */
const char **proc_env_allowed(struct arena *arena, size_t *ret_n);

#endif
