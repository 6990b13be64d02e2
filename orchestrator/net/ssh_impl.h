/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by net/ssh*.c. Two parts of a connection's life: the way in is straight-line code that blocks, in a thread of its
   own (ssh_login.c); once it is in, the session is non-blocking and belongs to the loop, with one channel at a time
   (ssh_run.c). A node behind jump hosts is reached through `ssh -W`, a child process that holds the other end of our
   socket. */
#pragma once

#include <libssh2.h>

#include "net/ssh.h"
#include "sys/pool.h"

#define SSH_TICK_NS       (250 * NS_PER_MS)
#define SSH_BUF_BYTES     32768
#define SSH_NOISE_MAX     4096
#define SSH_NONCE_BYTES   16
#define SSH_ADDRESSES_MAX 16

/* One attempt. It is the thread's until that has ended. */
struct ssh_login {
    struct ssh_plan *plan; /* held */
    const struct ssh_target *target;
    struct arena arena;
    LIBSSH2_SESSION *session; /* owned */
    bool is_known;            /* the handshake is over */
    /* The sockets that were tried; the last one is in use. They are closed at the very end only, so the owner may shut them down
       at any time. */
    int fds[SSH_ADDRESSES_MAX];
    atomic_size_t n_fds;
    _Atomic(const char *) waits_for; /* for the message when it has waited too long */
    struct strbuf tried;             /* keys, for the message when none is left */
    bool has_refused;                /* one of them at least */
};

/* A libssh2 call in progress: it must be repeated before any other on this session. */
enum ssh_pending { PENDING_NONE, PENDING_READ, PENDING_WRITE };

enum run_state { RUN_IDLE, RUN_OPEN, RUN_EXEC, RUN_STREAM };

/* What comes back. */
struct ssh_stream {
    bool has_begun, has_ended;
    int exit_status;
    /* What is not yet classified: everything before the begin mark, then a tail that may be the end mark. */
    struct strbuf hold;
    struct strbuf noise; /* what came before the begin mark, cut */
};

/* The script under way. */
struct ssh_job {
    enum run_state state;
    int64_t from_ns, until_ns;
    int64_t open_again_ns; /* the server had no channel for us: when to retry */
    int64_t open_wait_ns;
    char nonce[2 * SSH_NONCE_BYTES + 1];
    struct strbuf text; /* sent to its stdin first */
    size_t sent;        /* bytes of text, then of the input */
    bool is_text_sent, is_eof_sent;
    struct ssh_stream stream;
};

struct ssh {
    struct loop *loop;       /* borrowed */
    struct ssh_plan *plan;   /* borrowed */
    struct task *task;       /* the way in; NULL: not begun */
    struct ssh_login *login; /* the task's */
    int64_t until_ns;        /* for the way in */
    struct proc jump;        /* ssh -W, if there are stops before the node */
    struct strbuf jump_said;
    LIBSSH2_SESSION *session; /* the login's; NULL: not in yet */
    int fd;                   /* its socket, likewise */
    short watched;            /* the events for which the loop watches it; 0: none */
    enum ssh_pending pending;
    int64_t heard_ns;
    int64_t asked_ns; /* last keepalive */
    LIBSSH2_CHANNEL *channel;
    LIBSSH2_CHANNEL *closing; /* the previous script's, being closed */
    struct ssh_job job;
    bool is_ready;
    uint64_t tick_timer;
};

/* ssh.c: waiting. Each wait names again what it waits for. */
MUST_CHECK int ssh_want_session(struct ssh *ssh, struct err *err);
/* Nothing more is waited for. */
void ssh_rest(struct ssh *ssh);
/* Makes sure that it is stepped again after that span. */
MUST_CHECK int ssh_wake_in(struct ssh *ssh, int64_t span_ns, struct err *err);

/* ssh_login.c: a pool_fn, and what releases its argument. */
int ssh_log_in(void *arg, const atomic_bool *is_left, struct err *err);
void ssh_login_free(void *arg);
/* "LABEL: WHAT: libssh2's words"; ERR_NET if the connection is gone. Returns -1. */
MUST_CHECK int ssh_fail(const char *label, LIBSSH2_SESSION *session, int rc, const char *what,
                        struct err *err);

/* ssh_run.c */
enum step run_step(struct ssh *ssh, const struct ssh_script *script, struct err *err);

/* ssh_stream.c: tells login-shell noise, output and end mark apart. Pure. */
void stream_init(struct ssh_stream *stream);
void stream_release(struct ssh_stream *stream);
void stream_take(struct ssh_stream *stream, const char *nonce, struct str bytes,
                 proc_output_fn on_output, void *ctx);
/* Adds output outside the stream. */
void stream_take_noise(struct ssh_stream *stream, struct str bytes);
/* At the end of the stream: held-back bytes were output. */
void stream_finish(struct ssh_stream *stream, proc_output_fn on_output, void *ctx);
/* What the login shell printed, on one line, for a message; "" if it printed nothing. */
const char *stream_noise(const struct ssh_stream *stream, struct arena *arena);
