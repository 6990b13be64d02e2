/* SPDX-License-Identifier: Apache-2.0 */
/* Detached jobs on a node. A job outlives who started it: it runs in an own session under a small /bin/sh wrapper that keeps
   its log and, once it has ended, its status in its own folder, each under its final name only when whole. Whoever comes
   later attaches by the job's id. Every operation is a step: it may say STEP_AGAIN and is then called again, with the same
   arguments, after the loop has waited. One operation at a time on one remote. */
#ifndef IO_REMOTE_H
#define IO_REMOTE_H

#include "io/loop.h"

#define JOB_ID_MAX 512

enum job_state {
    JOB_ABSENT, /* never started here */
    JOB_RUNNING,
    JOB_ENDED, /* exit_status is known */
    JOB_LOST   /* its wrapper is gone and left no status: killed, or the machine went down */
};

struct job_report {
    enum job_state state;
    int exit_status; /* of the program; 128+n where signal n ended it, as the shell says it */
};

struct remote_job {
    const char *id;          /* a relative path of safe names */
    const char *const *argv; /* argv[0] is a path on the node */
    const char *const *env;  /* NAME=VALUE, ended by NULL */
};

struct remote;

struct remote_ops {
    /* Starting what is there already, running or ended, starts nothing. */
    enum step (*start)(struct remote *remote, const struct remote_job *job, struct err *err);
    enum step (*poll)(struct remote *remote, const char *id, struct job_report *ret_report,
                      struct err *err);
    /* ret_len 0: nothing there (yet) at this offset. */
    enum step (*read_log)(struct remote *remote, const char *id, uint64_t offset, char *dst,
                          size_t size, size_t *ret_len, struct err *err);
    /* To all processes of the job; one that has ended is no error. */
    enum step (*signal)(struct remote *remote, const char *id, int signal_no, struct err *err);
    /* Removes what the node keeps of a job that does not run. */
    enum step (*forget)(struct remote *remote, const char *id, struct err *err);
    void (*free)(struct remote *remote);
};

struct remote {
    const struct remote_ops *ops;
};

/* This machine; what it keeps of a job lies in jobs_folder/ID. */
struct remote *remote_local_new(const char *jobs_folder, struct clock_src clock);
void remote_free(struct remote *remote);

#endif
