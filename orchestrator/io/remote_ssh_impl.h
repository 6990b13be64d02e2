/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of io/remote_ssh share. */
#ifndef IO_REMOTE_SSH_IMPL_H
#define IO_REMOTE_SSH_IMPL_H

#include "base/rng.h"
#include "base/strbuf.h"
#include "codec/digest.h"
#include "io/remote.h"
#include "io/remote_scripts.h"
#include "io/ssh.h"

#define READ_AHEAD_MAX (4u << 20)
#define JOB_TEXT_MAX   (16u << 20)

struct operation { /* what is under way */
    bool is_active;
    bool was_seen; /* of a script: its begin, on any connection */
    const char *what;
    struct strbuf script;
    struct strbuf input;
    struct strbuf output; /* of our own scripts */
    size_t output_from;   /* of the caller's output */
    char nonce[17];
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
    int64_t known_size; /* of the log of ahead_id, as the last poll said; -1: not known */
};

static inline const char *remote_ssh_label(const struct remote_ssh *r)
{
    return r->plan.targets[r->plan.n_targets - 1].label;
}

/* remote_ssh.c: one operation, of one script. */
void remote_ssh_begin(struct remote_ssh *r, const char *what);
void remote_ssh_end(struct remote_ssh *r);
/* One of our own scripts, which may all be repeated. Its output is in op.output until remote_ssh_end; STEP_FAIL has ended it. */
enum step remote_ssh_own(struct remote_ssh *r, const char *text, const char *const *args,
                         struct err *err);

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
