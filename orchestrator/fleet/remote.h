/* SPDX-License-Identifier: Apache-2.0 */
/* Detached jobs on a node. A job outlives its starter: it runs in its own session under a small wrapper that keeps its log
   and, once it has ended, its status in its own folder, each under its final name only when complete. Others can attach
   later by the job's id. Every operation is a step: it may return STEP_AGAIN and is then called again, with the same
   arguments, after the loop has waited. One operation at a time on one remote. */
#pragma once

#include "base/strbuf.h"
#include "codec/node_wire.h"
#include "sys/loop.h"
#include "sys/proc.h"

#define JOB_ID_MAX 512

/* Resources requested from a batch system. */
struct remote_batch {
    int64_t n_nodes, tasks_per_node;
    int64_t gpus_per_node; /* 0: none asked */
    int64_t limit_s;       /* 0: the batch system's own */
    const char *nodelist;  /* "node[1-4]"; NULL: any */
};

struct remote_job {
    const char *id;          /* a relative path of safe names */
    const char *const *argv; /* argv[0] is a path on the node */
    const char *const *env;  /* NAME=VALUE, ended by NULL */
    /* An argv that is run on the node once the job is over or is killed (SIGKILL), e.g. to end its container; or NULL. */
    const char *const *cleanup;
    /* Records what its node does while it runs (fleet/monitor.h), as the log of the job "ID/monitor". Not available with
       Slurm. */
    bool is_watched;
    /* Not NULL: a job of Slurm, submitted with sbatch on this node, which may be a login node. Its work folder must then be
       absolute and the same on the compute nodes. The argv runs on the first of them and is expected to call srun
       (run/launch.c). Jobs are found again by name, so never submitted twice. */
    const struct remote_batch *batch;
};

/* A short script on the node, waited for. Its stdout and stderr come as one stream. */
struct remote_exec {
    const char *script;       /* for /bin/sh */
    const char *const *args;  /* its $1...; ended by NULL; may be NULL */
    struct strbuf *feed;      /* its stdin: what is in it is sent and removed; only abort ends it.
                                 A connection lost meanwhile is ERR_NODE, or ERR_NET if the script
                                 had not begun. NULL: none */
    struct strbuf *output;    /* appended; past its cap: ERR_NODE. May be NULL with on_output */
    proc_output_fn on_output; /* instead of output */
    void *output_ctx;
    int64_t deadline_ns; /* span; 0: REMOTE_EXEC_DEADLINE_NS */
};

#define REMOTE_EXEC_DEADLINE_NS (60 * NS_PER_S)

/* A request to reperf-node there (node/README.md); it may be repeated if the connection was lost during it. */
struct remote_ask {
    const char *what; /* for messages: "the lease" */
    enum node_op op;
    const struct str *fields;
    size_t n_fields;
    struct strbuf *output; /* the answer's text is appended */
    int64_t deadline_ns;   /* span, over SSH; 0: REMOTE_EXEC_DEADLINE_NS */
};

/* A job's log from offset on. */
struct log_part {
    uint64_t offset;
    char *dst;
    size_t size;
    size_t len; /* read */
};

struct remote;

/* A node that cannot be reached is tried again for a while (STEP_AGAIN), then ERR_NODE; a changed host key is ERR_INTEGRITY, a
   refused key ERR_AUTH, both at once. */
struct remote_ops {
    enum step (*exec)(struct remote *remote, const struct remote_exec *exec, int *ret_exit_status,
                      struct err *err);
    /* If the node refuses: ERR_DISK or ERR_NODE. NULL: not supported by this kind of remote. */
    enum step (*ask)(struct remote *remote, const struct remote_ask *ask, struct err *err);
    /* Starting a job that exists already, running or ended, does nothing. */
    enum step (*start)(struct remote *remote, const struct remote_job *job, struct err *err);
    enum step (*poll)(struct remote *remote, const char *id, struct job_report *ret_report,
                      struct err *err);
    /* part->len 0: nothing there (yet) at this offset. */
    enum step (*read_log)(struct remote *remote, const char *id, struct log_part *part,
                          struct err *err);
    /* Signals all processes of the job; it is not an error if the job has ended. */
    enum step (*signal)(struct remote *remote, const char *id, int signal_no, struct err *err);
    /* Signal 9; then the SHA-256 of its log, which is final, as hex (65 bytes with NUL). */
    enum step (*reap)(struct remote *remote, const char *id, char *ret_hex, struct err *err);
    /* Removes what the node keeps of a job that does not run. */
    enum step (*forget)(struct remote *remote, const char *id, struct err *err);
    /* Absolute path of the work folder there; the string is the remote's own. */
    enum step (*work_folder)(struct remote *remote, const char **ret_path, struct err *err);
    /* Gives up the operation that said STEP_AGAIN last: the next may be another one. */
    void (*abort)(struct remote *remote);
    void (*free)(struct remote *remote);
    /* Absolute path of reperf-node there, installing it if necessary; the string is the remote's own. */
    enum step (*program)(struct remote *remote, const char **ret_path, struct err *err);
};

struct remote {
    const struct remote_ops *ops;
};

/* A node over SSH (fleet/remote_ssh.c). Strings are copied. Connects at the first operation. */
struct remote_ssh_opts {
    const char *host; /* name or address: looked up in ~/.ssh/config */
    int64_t port;     /* 0: the config's, else 22 */
    const char *user; /* NULL: the config's, else ours */
    /* WORK there, with jobs in WORK/jobs/ID; NULL: ${XDG_STATE_HOME:-$HOME/.local/state}/reperf. */
    const char *work_folder;
    const char *config_path;    /* NULL: $REPERF_SSH_CONFIG, else ~/.ssh/config */
    int64_t connect_timeout_ns; /* 0: 10 s */
    /* How long a lost connection is tried again before ERR_NODE; 0: REPERF_OUTAGE, or 30 s. */
    int64_t outage_ns;
};
MUST_CHECK struct remote *remote_ssh_new(struct loop *loop, const struct remote_ssh_opts *opts,
                                         struct err *err);

/* This machine; what it keeps of a job lies in WORK/jobs/ID. The loop is borrowed. */
struct remote *remote_local_new(struct loop *loop, const char *work_folder);
void remote_free(struct remote *remote);

/* The file of reperf-node here: $REPERF_NODE, else next to this program. To be freed. */
char *remote_node_file(void);
