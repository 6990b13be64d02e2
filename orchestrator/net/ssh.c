/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* ProxyJump: the next session's bytes go through a channel of this one, by way of a socket pair, so that the next session is
   like any other. */

static int make_pair(struct ssh_hop *hop, struct err *err)
{
    struct ssh_hop *next = hop + 1;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        return err_set(err, ERR_IO, "socketpair: %s", err_errno_text(errno));
    }
    hop->pump_fd = pair[0];
    next->fd = pair[1];
    next->state = HOP_HANDSHAKE;
    hop->up.bytes = xmalloc(SSH_BUF_BYTES);
    hop->down.bytes = xmalloc(SSH_BUF_BYTES);
    return 0;
}

static enum step tunnel_open(struct ssh_hop *hop, struct err *err)
{
    const struct ssh_target *next = hop[1].target;
    hop->tunnel =
        libssh2_channel_direct_tcpip_ex(hop->session, next->host, (int)next->port, "127.0.0.1", 22);
    if (hop->tunnel) {
        hop->state = HOP_UP;
        return make_pair(hop, err) < 0 ? STEP_FAIL : STEP_DONE;
    }
    int rc = libssh2_session_last_errno(hop->session);
    if (rc == LIBSSH2_ERROR_EAGAIN) {
        return ssh_want_session(hop, err) < 0 ? STEP_FAIL : STEP_AGAIN;
    }
    if (rc == LIBSSH2_ERROR_CHANNEL_FAILURE) {
        return step_fail(err_set(err, ERR_NET,
                                 "%s: could not be reached from %s (or that host does not forward)",
                                 next->label, hop->target->label));
    }
    return step_fail(ssh_fail(hop, rc, "channel to the next stop", err));
}

static int tunnel_lost(struct ssh_hop *hop, struct err *err)
{
    return err_set(err, ERR_NET, "%s: the channel through %s was closed", hop[1].target->label,
                   hop->target->label);
}

/* Copies from the next hop's socket to the channel. Returns 1 if something moved, 0, or -1. */
static int pump_up(struct ssh_hop *hop, struct err *err)
{
    struct pump *pump = &hop->up;
    ssize_t len;
    if (pump->sent == pump->len) {
        len = recv(hop->pump_fd, pump->bytes, SSH_BUF_BYTES, 0);
        if (len <= 0) {
            return len < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : tunnel_lost(hop, err);
        }
        pump->len = (size_t)len;
        pump->sent = 0;
    }
    if (hop->pending == PENDING_READ) {
        return 0;
    }
    len =
        libssh2_channel_write_ex(hop->tunnel, 0, pump->bytes + pump->sent, pump->len - pump->sent);
    if (len == LIBSSH2_ERROR_EAGAIN || len == 0) {
        bool is_half_done = len != 0 && (libssh2_session_block_directions(hop->session) &
                                         LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
        hop->pending = is_half_done ? PENDING_WRITE : PENDING_NONE;
        return 0;
    }
    hop->pending = PENDING_NONE;
    if (len < 0) {
        return ssh_is_lost((int)len) ? tunnel_lost(hop, err)
                                     : ssh_fail(hop, (int)len, "tunnel", err);
    }
    pump->sent += (size_t)len;
    return 1;
}

static int pump_down(struct ssh_hop *hop, struct err *err)
{
    struct pump *pump = &hop->down;
    ssize_t len;
    if (pump->sent == pump->len && hop->pending != PENDING_WRITE) {
        len = libssh2_channel_read_ex(hop->tunnel, 0, pump->bytes, SSH_BUF_BYTES);
        if (len == LIBSSH2_ERROR_EAGAIN) {
            bool is_half_done = (libssh2_session_block_directions(hop->session) &
                                 LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
            hop->pending = is_half_done ? PENDING_READ : PENDING_NONE;
            return 0;
        }
        hop->pending = PENDING_NONE;
        if (len < 0 || (len == 0 && libssh2_channel_eof(hop->tunnel))) {
            return tunnel_lost(hop, err);
        }
        pump->len = (size_t)len;
        pump->sent = 0;
    }
    if (pump->sent == pump->len) {
        return 0;
    }
    len = send(hop->pump_fd, pump->bytes + pump->sent, pump->len - pump->sent, MSG_NOSIGNAL);
    if (len < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : tunnel_lost(hop, err);
    }
    pump->sent += (size_t)len;
    return len > 0 ? 1 : 0;
}

static int tunnel_pump(struct ssh_hop *hop, struct err *err)
{
    short events = 0;
    int moved = 1;
    while (moved > 0) {
        int down = pump_down(hop, err);
        int up = down < 0 ? -1 : pump_up(hop, err);
        moved = down < 0 || up < 0 ? -1 : down + up;
        if (moved > 0) {
            hop->ssh->is_ready = true; /* the next session has something to read */
        }
    }
    if (moved < 0) {
        return -1;
    }
    events = (short)((hop->up.sent == hop->up.len ? POLLIN : 0) |
                     (hop->down.sent < hop->down.len ? POLLOUT : 0));
    return ssh_want_session(hop, err) < 0 ||
                   ssh_want(hop->ssh, &hop->watched_pump, hop->pump_fd, events, err) < 0
               ? -1
               : 0;
}

/* ---- waiting ---- */

static void on_ready(void *ctx, int fd UNUSED, short events UNUSED)
{
    ((struct ssh *)ctx)->is_ready = true;
}

static void on_tick(void *ctx)
{
    struct ssh *ssh = ctx;
    ssh->tick_timer = 0;
    ssh->is_ready = true;
}

void ssh_unwant(struct ssh *ssh, struct watched *watched)
{
    loop_unwatch(ssh->loop, watched->fd);
    watched->fd = -1;
}

int ssh_want(struct ssh *ssh, struct watched *watched, int fd, short events, struct err *err)
{
    if (watched->fd == fd && watched->events == events) {
        return 0;
    }
    ssh_unwant(ssh, watched);
    if (fd < 0) {
        return 0;
    }
    if (loop_watch(ssh->loop, fd, events, on_ready, ssh, err) < 0) {
        return -1;
    }
    *watched = (struct watched){fd, events};
    return 0;
}

int ssh_want_session(struct ssh_hop *hop, struct err *err)
{
    int directions = libssh2_session_block_directions(hop->session);
    bool wants_out = (directions & LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
    return ssh_want(hop->ssh, &hop->watched, hop->fd, (short)(POLLIN | (wants_out ? POLLOUT : 0)),
                    err);
}

int ssh_wake_in(struct ssh *ssh, int64_t span_ns, struct err *err)
{
    loop_timer_drop(ssh->loop, ssh->tick_timer);
    return loop_timer_add(ssh->loop, loop_now_ns(ssh->loop) + span_ns, on_tick, ssh,
                          &ssh->tick_timer, err);
}

/* Between two operations nobody steps a session, so it must not end the loop's wait. */
void ssh_rest(struct ssh *ssh)
{
    for (size_t idx = 0; idx < ssh->n_hops; idx++) {
        struct ssh_hop *hop = &ssh->hops[idx];
        ssh_unwant(ssh, &hop->watched);
        ssh_unwant(ssh, &hop->watched_agent);
        ssh_unwant(ssh, &hop->watched_pump);
    }
    loop_timer_drop(ssh->loop, ssh->tick_timer);
    ssh->tick_timer = 0;
    ssh->is_ready = true;
}

/* ---- errors ---- */

bool ssh_is_lost(int rc)
{
    switch (rc) {
    case LIBSSH2_ERROR_SOCKET_NONE:
    case LIBSSH2_ERROR_BANNER_RECV:
    case LIBSSH2_ERROR_BANNER_SEND:
    case LIBSSH2_ERROR_INVALID_MAC:
    case LIBSSH2_ERROR_SOCKET_SEND:
    case LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE:
    case LIBSSH2_ERROR_TIMEOUT:
    case LIBSSH2_ERROR_DECRYPT:
    case LIBSSH2_ERROR_SOCKET_DISCONNECT:
    case LIBSSH2_ERROR_PROTO:
    case LIBSSH2_ERROR_SOCKET_TIMEOUT:
    case LIBSSH2_ERROR_SOCKET_RECV:
    case LIBSSH2_ERROR_BAD_SOCKET:
    case LIBSSH2_ERROR_BAD_USE:
    case LIBSSH2_ERROR_CHANNEL_CLOSED:
    case LIBSSH2_ERROR_CHANNEL_EOF_SENT:
        return true;
    default:
        return false;
    }
}

int ssh_fail(struct ssh_hop *hop, int rc, const char *what, struct err *err)
{
    char *text = NULL;
    int len = 0;
    libssh2_session_last_error(hop->session, &text, &len, 0);
    return err_set(err, ssh_is_lost(rc) ? ERR_NET : ERR_NODE, "%s: %s: %.*s (%d)",
                   hop->target->label, what, len, text ? text : "", rc);
}

/* ---- life ---- */

struct ssh *ssh_new(struct loop *loop, const struct ssh_plan *plan, struct err *err)
{
    struct ssh *ssh;
    if (libssh2_init(0) != 0) {
        (void)!err_set(err, ERR_INTERNAL, "libssh2 cannot be started");
        return NULL;
    }
    ssh = xcalloc(1, sizeof(*ssh));
    ssh->loop = loop;
    strbuf_init(&ssh->noise, SSH_NOISE_MAX);
    ssh->n_hops = plan->n_targets;
    ssh->hops = xcalloc(ssh->n_hops, sizeof(*ssh->hops));
    for (size_t idx = 0; idx < ssh->n_hops; idx++) {
        ssh->hops[idx] = (struct ssh_hop){.ssh = ssh,
                                          .target = &plan->targets[idx],
                                          .fd = -1,
                                          .pump_fd = -1,
                                          .watched.fd = -1,
                                          .watched_agent.fd = -1,
                                          .watched_pump.fd = -1,
                                          .auth.agent.fd = -1};
    }
    ssh->is_ready = true;
    return ssh;
}

void ssh_free(struct ssh *ssh)
{
    if (!ssh) {
        return;
    }
    ssh_abort(ssh);
    /* The last first, because its disconnect goes through those before it. */
    for (size_t idx = ssh->n_hops; idx-- > 0;) {
        hop_release(&ssh->hops[idx]);
    }
    strbuf_release(&ssh->job.text);
    strbuf_release(&ssh->noise);
    free(ssh->hops);
    free(ssh);
    libssh2_exit();
}

void ssh_pause(struct ssh *ssh)
{
    ssh_rest(ssh);
}

void ssh_go_on(struct ssh *ssh, int64_t deadline_ns)
{
    struct ssh_hop *hop = ssh_last(ssh);
    ssh->job.from_ns = hop->heard_ns = loop_now_ns(ssh->loop); /* nothing was read meanwhile */
    ssh->job.until_ns = ssh->job.from_ns + deadline_ns;
    hop->asked_ns = 0;
    ssh->is_ready = true;
}

struct str ssh_login_noise(const struct ssh *ssh)
{
    /* The noise of the running script once it has begun, else that of the previous one. */
    return ssh->job.state != RUN_IDLE && ssh->job.stream.has_begun
               ? strbuf_str(&ssh->job.stream.noise)
               : strbuf_str(&ssh->noise);
}

/* ---- the chain ---- */

static enum step step_hop(struct ssh_hop *hop, struct err *err)
{
    switch (hop->state) {
    case HOP_RESOLVE:
        return hop_resolve(hop, err);
    case HOP_CONNECT:
        return hop_connect(hop, err);
    case HOP_HANDSHAKE:
        return hop_handshake(hop, err);
    case HOP_HOST_KEY:
        return hop_check_host_key(hop, err);
    case HOP_METHODS:
        return auth_methods(hop, err);
    case HOP_AGENT:
        return auth_agent(hop, err);
    case HOP_KEYS:
        return auth_keys(hop, err);
    case HOP_TUNNEL:
        return tunnel_open(hop, err);
    case HOP_UP:
    default:
        return STEP_DONE;
    }
}

/* What is the matter with a hop that stays there; of the others: "it refused the login". */
static const char *const STATE_TEXTS[HOP_UP + 1] = {
    [HOP_RESOLVE] = "its name was not resolved",
    [HOP_CONNECT] = "the connection was not accepted",
    [HOP_HANDSHAKE] = "something accepts connections there, but there was no SSH handshake",
    [HOP_AGENT] = "the agent gave no answer",
    [HOP_TUNNEL] = "it did not open a channel to the next stop",
};

static int pump_all(struct ssh *ssh, struct err *err)
{
    for (size_t idx = 0; idx < ssh->n_hops; idx++) {
        if (ssh->hops[idx].tunnel && ssh->hops[idx].state == HOP_UP &&
            tunnel_pump(&ssh->hops[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static enum step bring_up(struct ssh *ssh, struct err *err)
{
    while (ssh->at < ssh->n_hops) {
        struct ssh_hop *hop = &ssh->hops[ssh->at];
        if (hop->until_ns == 0) {
            hop->until_ns = loop_now_ns(ssh->loop) + hop->target->connect_timeout_ns;
        }
        if (pump_all(ssh, err) < 0) {
            return STEP_FAIL;
        }
        enum step step = step_hop(hop, err);
        if (step == STEP_FAIL) {
            return step;
        }
        if (step == STEP_AGAIN) {
            if (loop_now_ns(ssh->loop) < hop->until_ns) {
                return pump_all(ssh, err) < 0 ? STEP_FAIL : STEP_AGAIN;
            }
            return step_fail(
                err_set(err, ERR_NET, "%s: %s within %.3g s", hop->target->label,
                        STATE_TEXTS[hop->state] ? STATE_TEXTS[hop->state] : "it refused the login",
                        (double)hop->target->connect_timeout_ns / NS_PER_S));
        }
        if (hop->state == HOP_UP) {
            ssh->at++;
        }
    }
    return STEP_DONE;
}

enum step ssh_connect(struct ssh *ssh, struct err *err)
{
    if (!ssh->is_ready) {
        return STEP_AGAIN;
    }
    ssh->is_ready = false;
    enum step step = bring_up(ssh, err);
    if (step == STEP_AGAIN) {
        struct ssh_hop *hop = &ssh->hops[ssh->at];
        /* There is no event for a resolved name. */
        bool is_resolving = hop->state == HOP_RESOLVE;
        if (ssh_wake_in(ssh, is_resolving ? 10 * NS_PER_MS : SSH_TICK_NS, err) < 0) {
            step = STEP_FAIL;
        }
    }
    if (step != STEP_AGAIN) {
        ssh_rest(ssh);
    }
    return step;
}

enum step ssh_run(struct ssh *ssh, const struct ssh_script *script, int *ret_exit_status,
                  bool *ret_has_begun, struct err *err)
{
    if (!ssh->is_ready) {
        *ret_has_begun = ssh->job.stream.has_begun;
        return STEP_AGAIN;
    }
    ssh->is_ready = false;
    enum step step = pump_all(ssh, err) < 0 ? STEP_FAIL : run_step(ssh, script, err);
    if (step == STEP_AGAIN && pump_all(ssh, err) < 0) {
        step = STEP_FAIL;
    }
    *ret_has_begun = ssh->job.stream.has_begun;
    *ret_exit_status = ssh->job.stream.exit_status;
    if (step == STEP_AGAIN && !ssh->tick_timer && ssh_wake_in(ssh, SSH_TICK_NS, err) < 0) {
        step = STEP_FAIL;
    }
    if (step != STEP_AGAIN) {
        ssh_abort(ssh);
    }
    return step;
}
