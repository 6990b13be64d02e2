/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/relay_net.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"

#define BACKLOG         16
#define KEEP_IDLE_S     10 /* a peer that is gone is noticed after about half a minute */
#define KEEP_INTERVAL_S 5
#define KEEP_COUNT      4

int relay_random(uint8_t *ret_bytes, size_t n, struct err *err)
{
    if (getrandom(ret_bytes, n, 0) != (ssize_t)n) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    return 0;
}

/* Until fd is ready, at the latest until until_ns. */
static int wait_for(int fd, short events, int64_t until_ns, struct err *err)
{
    struct pollfd ready = {.fd = fd, .events = events};
    for (;;) {
        int64_t left_ns = until_ns - clock_now_ns();
        int n = poll(&ready, 1, left_ns <= 0 ? 0 : (int)(left_ns / NS_PER_MS) + 1);
        if (n > 0) {
            return 0;
        }
        if (n == 0 && left_ns <= 0) {
            return err_set(err, ERR_NET, "timed out waiting for the other side");
        }
        if (n < 0 && errno != EINTR) {
            return err_set(err, ERR_NET, "poll: %s", err_errno_text(errno));
        }
    }
}

static int read_until(int fd, void *dst, size_t len, int64_t until_ns, struct err *err)
{
    size_t have = 0;
    while (have < len) {
        ssize_t got = recv(fd, (uint8_t *)dst + have, len - have, 0);
        if (got == 0) {
            return err_set(err, ERR_NET, "closed by the other side");
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return err_set(err, ERR_NET, "%s", err_errno_text(errno));
        }
        if (got < 0 && wait_for(fd, POLLIN, until_ns, err) < 0) {
            return -1;
        }
        have += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

int relay_write(int fd, const void *ptr, size_t len, int64_t span_ns, struct err *err)
{
    int64_t until_ns = clock_now_ns() + span_ns;
    size_t sent = 0;
    while (sent < len) {
        ssize_t n = send(fd, (const uint8_t *)ptr + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return err_set(err, ERR_NET, "%s", err_errno_text(errno));
        }
        if (n < 0 && wait_for(fd, POLLOUT, until_ns, err) < 0) {
            return -1;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* If it cannot be set, it only takes longer to notice a dead peer. */
static bool set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

static void tune(int fd)
{
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

/* ---- listening ---- */

static int bind_to(int family, struct err *err)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    CLEANUP(fd) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr *address =
        family == AF_INET6 ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
    if (fd >= 0 && family == AF_INET6) {
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    }
    if (fd < 0 || bind(fd, address, family == AF_INET6 ? sizeof(six) : sizeof(four)) < 0 ||
        listen(fd, BACKLOG) < 0) {
        return err_set(err, ERR_NET, "listen: %s", err_errno_text(errno));
    }
    return take_fd(&fd);
}

int relay_listen(int *ret_fd, uint16_t *ret_port, struct err *err)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    struct err no_six = {0};
    CLEANUP(fd) int fd = bind_to(AF_INET6, &no_six);
    if (fd < 0) {
        fd = bind_to(AF_INET, err);
    }
    if (fd < 0) {
        return -1;
    }
    if (getsockname(fd, (struct sockaddr *)&bound, &size) < 0) {
        return err_set(err, ERR_NET, "getsockname: %s", err_errno_text(errno));
    }
    *ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                  : ((struct sockaddr_in *)&bound)->sin_port);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- proofs ---- */

static int prove_to_server(int fd, const uint8_t *token, struct err *err)
{
    uint8_t server[RELAY_NONCE_BYTES], wanted[RELAY_PROOF_BYTES], got[RELAY_PROOF_BYTES];
    uint8_t ours[RELAY_NONCE_BYTES + RELAY_PROOF_BYTES];
    int64_t until_ns = clock_now_ns() + RELAY_SHAKE_NS;
    if (read_until(fd, server, sizeof(server), until_ns, err) < 0 ||
        relay_random(ours, RELAY_NONCE_BYTES, err) < 0 ||
        relay_proof(token, RELAY_CLIENT, server, ours, ours + RELAY_NONCE_BYTES, err) < 0 ||
        relay_write(fd, ours, sizeof(ours), RELAY_SHAKE_NS, err) < 0 ||
        read_until(fd, got, sizeof(got), until_ns, err) < 0 ||
        relay_proof(token, RELAY_SERVER, server, ours, wanted, err) < 0) {
        return -1;
    }
    return relay_proof_is(got, wanted)
               ? 0
               : err_set(err, ERR_AUTH,
                         "the program that answers there is not a relay of this staging");
}

static int prove_to_client(int fd, const uint8_t *token, struct err *err)
{
    uint8_t server[RELAY_NONCE_BYTES], wanted[RELAY_PROOF_BYTES], proof[RELAY_PROOF_BYTES];
    uint8_t theirs[RELAY_NONCE_BYTES + RELAY_PROOF_BYTES];
    int64_t until_ns = clock_now_ns() + RELAY_PROVE_NS;
    if (relay_random(server, sizeof(server), err) < 0 ||
        relay_write(fd, server, sizeof(server), RELAY_PROVE_NS, err) < 0 ||
        read_until(fd, theirs, sizeof(theirs), until_ns, err) < 0 ||
        relay_proof(token, RELAY_CLIENT, server, theirs, wanted, err) < 0) {
        return -1;
    }
    if (!relay_proof_is(theirs + RELAY_NONCE_BYTES, wanted)) {
        return err_set(err, ERR_AUTH, "the peer that connected does not know the token");
    }
    if (relay_proof(token, RELAY_SERVER, server, theirs, proof, err) < 0) {
        return -1;
    }
    return relay_write(fd, proof, sizeof(proof), RELAY_PROVE_NS, err);
}

int relay_accept(int listen_fd, const uint8_t *token, int *ret_fd, struct err *err)
{
    struct err why = {0};
    CLEANUP(fd) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return err_set(err, ERR_AUTH, "accept: %s", err_errno_text(errno));
    }
    tune(fd);
    if (prove_to_client(fd, token, &why) < 0) {
        return err_set(err, why.code == ERR_INTERNAL ? ERR_INTERNAL : ERR_AUTH, "%s", why.msg);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- connecting ---- */

static int connect_one(const struct net_address *address, struct err *err)
{
    int failure = 0;
    socklen_t size = sizeof(failure);
    CLEANUP(fd)
    int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return err_set(err, ERR_NET, "socket: %s", err_errno_text(errno));
    }
    if (connect(fd, &address->at.any, address->len) < 0) {
        failure = errno;
    }
    if (failure == EINPROGRESS) {
        if (wait_for(fd, POLLOUT, clock_now_ns() + RELAY_REACH_NS, err) < 0) {
            return -1;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0) {
            failure = errno;
        }
    }
    if (failure != 0) {
        return err_set(err, ERR_NET, "%s", err_errno_text(failure));
    }
    tune(fd);
    return take_fd(&fd);
}

static int connect_address(const char *name, uint16_t port, net_find_fn find, struct err *err)
{
    struct net_address found[NET_ADDRESSES_MAX];
    int fd = -1;
    size_t n = find(name, port, found);
    if (n == 0) {
        return err_set(err, ERR_NET, "%s: the name does not resolve", name);
    }
    for (size_t idx = 0; idx < n && fd < 0; idx++) {
        struct err why = {0};
        fd = connect_one(&found[idx], &why);
        if (fd < 0 && idx + 1 == n) {
            *err = why;
        }
    }
    return fd < 0 ? err_wrap(err, "%s port %u", name, port) : fd;
}

int relay_connect(const struct relay_hop *hop, net_find_fn find, const uint8_t *token, int *ret_fd,
                  struct err *err)
{
    struct err first = {0};
    for (size_t idx = 0; idx < ARRAY_LEN(hop->address) && hop->address[idx]; idx++) {
        struct err why = {0};
        CLEANUP(fd) int fd = connect_address(hop->address[idx], hop->port, find, &why);
        if (fd >= 0 && prove_to_server(fd, token, &why) == 0) {
            *ret_fd = take_fd(&fd);
            return 0;
        }
        if (first.code == ERR_NONE) {
            first = why;
        }
    }
    *err = first;
    return -1;
}
