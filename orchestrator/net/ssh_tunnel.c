/* SPDX-License-Identifier: Apache-2.0 */
/* ProxyJump: the next session's bytes go through a channel of this one, by way of a socket pair, so that the next session is
   like any other. */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

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

enum step tunnel_open(struct ssh_hop *hop, struct err *err)
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

int tunnel_pump(struct ssh_hop *hop, struct err *err)
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
