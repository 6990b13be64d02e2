/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/relay_net.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"

#define BACKLOG    16
#define HALF_BYTES (RELAY_TOKEN_BYTES / 2)

int relay_random(uint8_t *ret_bytes, size_t n, struct err *err)
{
    if (getrandom(ret_bytes, n, 0) != (ssize_t)n) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    return 0;
}

/* Waiting calls on it end after that span. */
static int set_limit(int fd, int64_t span_ns, struct err *err)
{
    struct timeval limit = {.tv_sec = span_ns / NS_PER_S};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
                   setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0
               ? err_set(err, ERR_NET, "setsockopt: %s", err_errno_text(errno))
               : 0;
}

static const char *why(int errnum)
{
    return errnum == EAGAIN || errnum == EINPROGRESS ? "timed out waiting for the other side"
                                                     : err_errno_text(errnum);
}

/* So few bytes always fit into a new connection's buffer. */
static int send_half(int fd, const uint8_t *half, struct err *err)
{
    return send(fd, half, HALF_BYTES, MSG_NOSIGNAL) == HALF_BYTES
               ? 0
               : err_set(err, ERR_NET, "%s", why(errno));
}

/* Whether it is that half, in constant time: 1, 0, or -1. */
static int receive_half(int fd, const uint8_t *wanted, struct err *err)
{
    uint8_t got[HALF_BYTES];
    unsigned different = 0;
    ssize_t n = recv(fd, got, sizeof(got), MSG_WAITALL);
    if (n != (ssize_t)sizeof(got)) {
        return err_set(err, ERR_NET, "%s",
                       n == 0 ? "closed by the other side" : why(n < 0 ? errno : EAGAIN));
    }
    for (size_t idx = 0; idx < sizeof(got); idx++) {
        different |= (unsigned)(got[idx] ^ wanted[idx]);
    }
    return different == 0;
}

/* ---- listening ---- */

static int bind_to(int family, struct err *err)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    CLEANUP(fd) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr *address =
        family == AF_INET6 ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
    int off = 0;
    if (fd < 0 ||
        (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
        bind(fd, address, family == AF_INET6 ? sizeof(six) : sizeof(four)) < 0 ||
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

int relay_accept(int listen_fd, const uint8_t *token, int *ret_fd, struct err *err)
{
    CLEANUP(fd) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return err_set(err, ERR_AUTH, "accept: %s", err_errno_text(errno));
    }
    if (set_limit(fd, RELAY_PROVE_NS, err) < 0) {
        return -1;
    }
    int is_ours = receive_half(fd, token, err);
    if (is_ours == 0) {
        return err_set(err, ERR_AUTH, "the peer that connected does not know the token");
    }
    if (is_ours < 0) {
        err->code = ERR_AUTH;
        return -1;
    }
    if (send_half(fd, token + HALF_BYTES, err) < 0) {
        return -1;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- connecting ---- */

static int prove(int fd, const uint8_t *token, struct err *err)
{
    if (set_limit(fd, RELAY_SHAKE_NS, err) < 0 || send_half(fd, token, err) < 0) {
        return -1;
    }
    int is_ours = receive_half(fd, token + HALF_BYTES, err);
    if (is_ours == 0) {
        return err_set(err, ERR_AUTH,
                       "the program that answers there is not a relay of this staging");
    }
    return is_ours < 0 ? -1 : 0;
}

static int connect_one(const struct net_address *address, struct err *err)
{
    CLEANUP(fd) int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_set(err, ERR_NET, "socket: %s", err_errno_text(errno));
    }
    if (set_limit(fd, RELAY_REACH_NS, err) < 0) {
        return -1;
    }
    return connect(fd, &address->at.any, address->len) < 0 ? err_set(err, ERR_NET, "%s", why(errno))
                                                           : take_fd(&fd);
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
        struct err failure = {0};
        fd = connect_one(&found[idx], &failure);
        if (fd < 0 && idx + 1 == n) {
            *err = failure;
        }
    }
    return fd < 0 ? err_wrap(err, "%s port %u", name, port) : fd;
}

int relay_connect(const struct relay_hop *hop, net_find_fn find, const uint8_t *token, int *ret_fd,
                  struct err *err)
{
    struct err first = {0};
    for (size_t idx = 0; idx < ARRAY_LEN(hop->address) && hop->address[idx]; idx++) {
        struct err failure = {0};
        CLEANUP(fd) int fd = connect_address(hop->address[idx], hop->port, find, &failure);
        if (fd >= 0 && prove(fd, token, &failure) == 0) {
            *ret_fd = take_fd(&fd);
            return 0;
        }
        if (first.code == ERR_NONE) {
            first = failure;
        }
    }
    *err = first;
    return -1;
}
