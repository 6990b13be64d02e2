/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by net/ssh*.c: a chain of sessions, each through the one before it, and the one channel of the last. */
#ifndef NET_SSH_IMPL_H
#define NET_SSH_IMPL_H

#include <libssh2.h>
#include <netdb.h>

#include "net/ssh.h"
#include "net/ssh_known.h"

#define SSH_TICK_NS      (250 * NS_PER_MS)
#define SSH_BUF_BYTES    32768
#define SSH_TRIED_MAX    400
#define SSH_NOISE_MAX    4096
#define SSH_NONCE_BYTES  16
#define SSH_GREETING_MAX (256 << 10) /* until the handshake has ended */

enum hop_state {
    HOP_RESOLVE,
    HOP_CONNECT,
    HOP_HANDSHAKE,
    HOP_HOST_KEY,
    HOP_METHODS, /* which authentication methods the server offers */
    HOP_AGENT,   /* which keys the agent has */
    HOP_KEYS,    /* one after the other */
    HOP_TUNNEL,  /* the channel to the next stop */
    HOP_UP,
};

/* A libssh2 call in progress: it must be repeated before any other on this session. */
enum hop_pending { PENDING_NONE, PENDING_READ, PENDING_WRITE };

struct ssh_agent_key {
    struct str blob;
    const char *comment;
};

struct ssh_agent { /* a connection to it */
    int fd;        /* -1: not connected */
    struct strbuf out;
    size_t sent;
    struct strbuf in;
    bool is_asking;
};

struct watched {
    int fd; /* as watched by the loop; -1: not watched */
    short events;
};

struct ssh_candidate { /* a key to try */
    const char *path;  /* NULL: the agent's */
    struct str blob;   /* the agent's */
    const char *name;
    bool is_encrypted;
};

struct ssh_auth {
    struct arena arena;
    struct ssh_agent agent;
    struct ssh_agent_key *agent_keys;
    size_t n_agent_keys;
    struct ssh_candidate *candidates;
    size_t n_candidates, at;
    struct str key_text; /* of the candidate at hand; empty: not read */
    const char *passphrase;
    size_t n_refused;
    struct strbuf tried; /* for the message when none is left */
};

struct pump {    /* a buffer on its way */
    char *bytes; /* owned, SSH_BUF_BYTES */
    size_t len, sent;
};

struct ssh_hop {
    struct ssh *ssh;                 /* borrowed */
    const struct ssh_target *target; /* borrowed */
    enum hop_state state;
    LIBSSH2_SESSION *session; /* owned */
    int fd;                   /* its socket, owned; -1: none yet */
    struct watched watched, watched_agent, watched_pump;
    struct gaicb *lookup; /* owned; under way, or with addresses */
    struct addrinfo *addresses;
    const struct addrinfo *address; /* the one at hand */
    struct ssh_auth auth;
    int64_t until_ns; /* for connecting and login */
    int64_t heard_ns;
    uint64_t n_heard; /* bytes */
    int64_t asked_ns; /* last keepalive */
    enum hop_pending pending;
    LIBSSH2_CHANNEL *tunnel; /* to the next stop */
    int pump_fd;             /* our end of the pair of which the next hop has the other */
    struct pump up, down;
};

enum run_state { RUN_IDLE, RUN_OPEN, RUN_EXEC, RUN_STREAM };

struct ssh_stream { /* what comes back */
    bool has_begun, has_ended;
    int exit_status;
    struct strbuf
        hold; /* not yet classified: everything before the begin mark, then a tail that may be the end mark */
    struct strbuf noise; /* what came before the begin mark, cut */
};

struct ssh_job { /* the script under way */
    enum run_state state;
    int64_t from_ns, until_ns;
    int64_t open_again_ns; /* the server had no channel for us: when to retry */
    int64_t open_wait_ns;
    char nonce[2 * SSH_NONCE_BYTES + 1];
    struct strbuf text; /* sent to its stdin first */
    size_t sent;        /* of text, then of the input */
    bool is_text_sent, is_eof_sent;
    char *chunk; /* owned, SSH_BUF_BYTES: of the input's file */
    size_t chunk_len, chunk_sent;
    off_t input_at;
    struct ssh_stream stream;
};

struct ssh {
    struct loop *loop; /* borrowed */
    struct ssh_hop *hops;
    size_t n_hops;
    size_t at; /* the hop that is being brought up; n_hops: all are */
    LIBSSH2_CHANNEL *channel;
    LIBSSH2_CHANNEL *closing; /* of the previous script: being closed */
    struct ssh_job job;
    bool is_ready;
    uint64_t tick_timer;
    struct strbuf noise; /* of the login shell, before the last script */
};

static inline struct ssh_hop *ssh_last(struct ssh *ssh)
{
    return &ssh->hops[ssh->n_hops - 1];
}

/* ssh.c: waiting. Each wait names again what it waits for. */
MUST_CHECK int ssh_want(struct ssh *ssh, struct watched *watched, int fd, short events,
                        struct err *err);
void ssh_unwant(struct ssh *ssh, struct watched *watched);
MUST_CHECK int ssh_want_session(struct ssh_hop *hop, struct err *err);
/* Nothing more is waited for. */
void ssh_rest(struct ssh *ssh);
/* Makes sure that it is stepped again after that span. */
MUST_CHECK int ssh_wake_in(struct ssh *ssh, int64_t span_ns, struct err *err);
/* "LABEL: WHAT: libssh2's words"; ERR_NET if the connection is gone. Returns -1. */
MUST_CHECK int ssh_fail(struct ssh_hop *hop, int rc, const char *what, struct err *err);
bool ssh_is_lost(int rc);

/* ssh_hop.c: from a name to a session whose other end is known. */
enum step hop_resolve(struct ssh_hop *hop, struct err *err);
enum step hop_connect(struct ssh_hop *hop, struct err *err);
enum step hop_handshake(struct ssh_hop *hop, struct err *err);
enum step hop_check_host_key(struct ssh_hop *hop, struct err *err);
void hop_release(struct ssh_hop *hop);

/* ssh_auth.c: login. STEP_DONE of the last two: the next state is set. */
enum step auth_methods(struct ssh_hop *hop, struct err *err);
enum step auth_agent(struct ssh_hop *hop, struct err *err);
enum step auth_keys(struct ssh_hop *hop, struct err *err);
void auth_release(struct ssh_auth *auth);

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

#endif
