/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fleet/remote_ssh share. */
#ifndef FLEET_REMOTE_SSH_IMPL_H
#define FLEET_REMOTE_SSH_IMPL_H

#include "base/rng.h"
#include "base/strbuf.h"
#include "codec/digest.h"
#include "codec/node_wire.h"
#include "fleet/remote.h"
#include "net/ssh.h"

#define READ_AHEAD_MAX (4u << 20)

struct operation { /* what is under way */
    bool is_active;
    bool was_seen; /* of a script: its begin, on any connection */
    const char *what;
    struct strbuf output; /* an answer's text */
    size_t output_from;   /* of the caller's output */
    char nonce[17];
    struct strbuf request; /* its number still to be put in; empty: not written yet */
    int n_ends;            /* how often reperf-node ended under it */
};

enum node_state {
    NODE_UNKNOWN, /* what there is here is not looked at yet */
    NODE_LAUNCH,  /* to be run there, or being begun */
    NODE_PUT,     /* it is not there: being put there */
    NODE_UP,
};

struct remote_node { /* reperf-node there */
    enum node_state state;
    char *program; /* the file here, owned */
    char sha256[SHA256_HEX_SIZE];
    char *there; /* its path there, owned; NULL: not told yet */
    bool was_put;
    bool is_open;  /* its channel is the script under way of the ssh */
    bool is_asked; /* the operation under way has been sent */
    uint32_t seq;  /* of the last request */
    int put_fd;    /* the file here, while it is being put; -1 */
    struct strbuf script, feed, said;
};

struct remote_ssh {
    struct remote remote; /* first: a struct remote * is this */
    struct loop *loop;    /* borrowed */
    struct ssh_plan plan;
    struct ssh *ssh; /* NULL: not connected */
    bool is_up;
    char *work_wanted; /* "" for the default there */
    char *work_folder; /* NULL: not asked yet */
    int64_t outage_ns;
    int64_t down_since_ns; /* 0: all is well */
    size_t n_attempts;     /* since then */
    int64_t retry_at_ns;
    uint64_t retry_timer;
    struct rng rng;
    struct operation op;
    struct strbuf ahead; /* of a log, read ahead */
    uint64_t ahead_at;   /* its offset there */
    size_t ahead_used;
    char ahead_id[JOB_ID_MAX];
    bool has_early; /* the start of ahead_id said already what the next poll asks */
    struct job_report early;
    bool has_early_end; /* and what its reap from offset 0 does */
    char early_hex[SHA256_HEX_SIZE];
    int64_t known_size;     /* of the log of ahead_id, as the last poll said; -1: not known */
    bool has_script_failed; /* the last error is of the script itself, not of the way there */
    struct remote_node node;
};

static inline const char *remote_ssh_label(const struct remote_ssh *r)
{
    return r->plan.targets[r->plan.n_targets - 1].label;
}

struct run_opts {
    const struct ssh_script *script;
    bool is_repeatable;
    const char *what;
};

#define REMOTE_OWN_DEADLINE_NS                                                                     \
    (60 * NS_PER_S) /* of an operation of our own, the signal's cleanup included */

/* remote_ssh.c: one operation, of one script. */
/* *ret_again: the connection was lost, and the script will be run from its beginning: what it printed so far does not count. */
enum step remote_ssh_run(struct remote_ssh *r, const struct run_opts *opts, int *ret_exit_status,
                         bool *ret_again, struct err *err);
void remote_ssh_collect(void *ctx, const char *ptr, size_t len); /* ctx: a strbuf */
void remote_ssh_begin(struct remote_ssh *r, const char *what);
void remote_ssh_end(struct remote_ssh *r);

/* remote_node.c. The operation under way, by reperf-node, which is put there first where it is not: its answer is in op.output until
   remote_ssh_end; STEP_FAIL has ended it. */
enum step remote_node_ask(struct remote_ssh *r, struct err *err);
/* Where it lies there. */
enum step remote_node_there(struct remote *remote, const char **ret_path, struct err *err);
/* Written once an operation; what is too long leaves op.request.is_full. */
void remote_node_request(struct remote_ssh *r, enum node_op op, const struct str *fields,
                         size_t n_fields);
void remote_node_init(struct remote_ssh *r);
/* Its channel makes room for a script. */
void remote_node_close(struct remote_ssh *r);
/* The connection is gone. */
void remote_node_lost(struct remote_ssh *r);
/* The operation under way is given up; true: nothing else is to be done for it. */
bool remote_node_abort(struct remote_ssh *r);
void remote_node_release(struct remote_ssh *r);

/* remote_ssh_jobs.c */
enum step remote_ssh_start(struct remote *remote, const struct remote_job *job, struct err *err);
enum step remote_ssh_poll(struct remote *remote, const char *id, struct job_report *ret_report,
                          struct err *err);
enum step remote_ssh_read_log(struct remote *remote, const char *id, uint64_t offset, char *dst,
                              size_t size, size_t *ret_len, struct err *err);
enum step remote_ssh_log_digest(struct remote *remote, const char *id, char *ret_hex,
                                struct err *err);
enum step remote_ssh_signal(struct remote *remote, const char *id, int signal_no, struct err *err);
enum step remote_ssh_reap(struct remote *remote, const char *id, uint64_t offset, char *ret_hex,
                          struct err *err);
enum step remote_ssh_forget(struct remote *remote, const char *id, struct err *err);

#endif
