/* SPDX-License-Identifier: Apache-2.0 */
/* A job's folder on this node, WORK/jobs/ID: claim/ (its creator runs the job), pid ("PID START_TICKS BOOT_ID"), log, status
   ("exit N"), cleanup (a script), monitor/log; of a batch job (slurm.c) also left (names of processes that outlived it),
   request, batch, slurm, stop and claim/job. Jobs started by older versions of ours use the same files. Paths are
   NUL-terminated and end without a slash. */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "codec/node_wire.h"

#define JOB_PATH_BYTES 5120

/* A wrapper process; its number alone proves nothing. */
struct job_pid {
    pid_t pid; /* 0: none is known */
    uint64_t start_ticks;
    bool is_of_boot; /* it is of this boot */
};

struct job_look {
    enum job_state state;
    struct job_pid wrapper;
    int exit_status; /* in JOB_ENDED */
};

/* What /proc/PID/stat says. */
struct proc_stat {
    char state;
    pid_t parent;
    pid_t session;
    uint64_t start_ticks;
};

/* look.c */
void job_look(const char *dir, struct job_look *ret_look);
bool job_read_pid(const char *dir, struct job_pid *ret_pid);
/* False: there is no such process. */
bool job_proc_stat(pid_t pid, struct proc_stat *ret_stat);
bool job_read_boot_id(char *ret_text, size_t size);
/* Whether the folder accepts files; if not, the error says why. */
MUST_CHECK int job_probe(const char *dir, struct err *err);
/* Reads "exit N"; false: there is none, or it cannot be read. */
bool job_read_status(const char *dir, int *ret_exit_status);
/* The content of a small file, without its line break; false if it cannot be read. */
bool job_read_small(const char *path, char *ret_text, size_t size);
/* Writes the file, synced if requested, and then renames it to its own name. */
MUST_CHECK int job_put(const char *path, struct str text, bool is_synced, struct err *err);
/* Synced, but not before that file is: whoever finds this one finds the other whole. */
MUST_CHECK int job_put_after(const char *path, struct str text, int first_fd, struct err *err);

/* The job's folder, in the environment of all that it starts: it alone tells the jobs of two work folders on one machine
   apart. */
#define JOB_FOLDER_ENV "REPERF_JOB_FOLDER"

/* session.c */
/* Ends the children of this process but one, and theirs, which come to it as they are orphaned. ret_names: of those that
   there were, with commas between them; LEFT_NAMES_MAX bytes. */
#define LEFT_NAMES_MAX 128
void job_end_children(pid_t but, char *ret_names);
/* A process of the session lives, or one that was started with the job's variables. */
bool job_has_process(const char *dir, pid_t session);
/* Sends the signal to all processes of the job's session; with 9 its cleanup is run too. */
void job_signal(const char *dir, int signal_no);
/* Runs a script of the job's folder for at most limit_ns; 0: no limit. */
void job_run_script(const char *path, int64_t limit_ns);

/* walk.c: everything below root. Symlinks are not followed; entries too deep for a path are left out. */
struct job_entry {
    const char *below, *name; /* its folder, "" for root, and its own name */
    char path[JOB_PATH_BYTES];
    int folder_fd;
    mode_t kind; /* S_IFDIR, ...; from the folder, so that not every file needs a stat */
};
bool job_entry_stat(const struct job_entry *entry, struct stat *ret_info);
enum job_walk { WALK_ON, WALK_INTO /* into it, if it is a folder */, WALK_END };
typedef enum job_walk (*job_walk_fn)(void *ctx, const struct job_entry *entry);
void job_walk(const char *root, job_walk_fn fn, void *ctx);

/* job_watch.c: for as long as the job runs; its log is stdout. */
NORETURN void job_watch(const char *dir);

/* wrapper.c */
struct wrapper_job {
    const char *dir;
    const struct str *argv; /* each followed by a NUL; NODE_SELF in them: this program */
    size_t n_argv;
    const struct str *env; /* NAME=VALUE, likewise */
    size_t n_env;
    bool is_watched; /* the node's activity meanwhile is recorded, as the log of ID/monitor */
    /* The program gets this process's whole environment, including Slurm's variables. */
    bool is_in_batch;
};
/* Starts a process in its own session that claims the job, runs it, and records in its folder how it ended. It outlives this
   process. *ret_said must be closed; it reads EOF once the pid is written, or never will be. */
MUST_CHECK int wrapper_start(const struct wrapper_job *job, int *ret_said, struct err *err);
/* For batch.c, which does the same inside a batch job. */
NORETURN void wrapper_become(const struct wrapper_job *job, int log_fd);
MUST_CHECK int wrapper_write_pid(const struct wrapper_job *job, struct err *err);
/* Runs the job's cleanup, then writes its status. */
MUST_CHECK int wrapper_finish(const struct wrapper_job *job, int log_fd, int exit_status);
int wrapper_exit_status(int status); /* as the shell reports it: 128+n if signal n ended it */
/* Restores the default effect of signals that may be sent to a child of ours; blocks none. */
void wrapper_reset_signals(void);
/* Forks a child that is killed when this process ends, even before the child's first instruction. */
pid_t wrapper_fork_tied(void);
