/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/relay_net.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"

#define BACKLOG     128
#define ADDRESS_MAX 256

/* Waiting calls on it end after that span. */
static int set_limit(int fd, int64_t span_ns)
{
    struct timeval limit = {.tv_sec = span_ns / NS_PER_S};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0
               ? -1
               : setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* ---- listening ---- */

int net_listen(const struct net_address *address)
{
    const int on = 1, off = 0;
    CLEANUP(fd) int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
                   (address->at.any.sa_family == AF_INET6 &&
                    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
                   bind(fd, &address->at.any, address->len) < 0 || listen(fd, BACKLOG) < 0
               ? -1
               : take_fd(&fd);
}

int relay_listen(int *ret_fd, uint16_t *ret_port, struct err *err)
{
    struct net_address bound = {.at.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT},
                                .len = sizeof(bound.at.v6)};
    const struct net_address four = {.at.v4 = {.sin_family = AF_INET}, .len = sizeof(four.at.v4)};
    CLEANUP(fd) int fd = net_listen(&bound);
    fd = fd < 0 ? net_listen(&four) : fd;
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
        return err_set(err, ERR_NET, "listen: %s", err_errno_text(errno));
    }
    if (getsockname(fd, &bound.at.any, &bound.len) < 0) {
        return err_set(err, ERR_NET, "getsockname: %s", err_errno_text(errno));
    }
    *ret_port =
        ntohs(bound.at.any.sa_family == AF_INET6 ? bound.at.v6.sin6_port : bound.at.v4.sin_port);
    *ret_fd = take_fd(&fd);
    return 0;
}

int relay_accept(int listen_fd, const uint8_t *token)
{
    CLEANUP(fd) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    uint8_t got[RELAY_TOKEN_BYTES];
    unsigned different = 0;
    if (fd < 0 || set_limit(fd, RELAY_PROVE_NS) < 0 ||
        recv(fd, got, sizeof(got), MSG_WAITALL) != (ssize_t)sizeof(got)) {
        return -1;
    }
    for (size_t idx = 0; idx < sizeof(got); idx++) { /* in constant time */
        different |= (unsigned)(got[idx] ^ token[idx]);
    }
    return different || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -1 : take_fd(&fd);
}

/* ---- connecting ---- */

int net_connect(const struct net_address *address, int64_t span_ns, int *ret_fd, struct err *err)
{
    CLEANUP(fd) int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || set_limit(fd, span_ns) < 0 || connect(fd, &address->at.any, address->len) < 0) {
        return errno == EAGAIN || errno == EINPROGRESS
                   ? err_set(err, ERR_TIMEOUT, "no answer within %d s", (int)(span_ns / NS_PER_S))
                   : err_set(err, ERR_NET, "%s", err_errno_text(errno));
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

/* So few bytes always fit into a new connection's buffer. */
static int connect_one(const struct net_address *address, const uint8_t *token, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    if (net_connect(address, RELAY_REACH_NS, &fd, err) < 0) {
        err->code = ERR_NET;
        return -1;
    }
    return send(fd, token, RELAY_TOKEN_BYTES, MSG_NOSIGNAL) != RELAY_TOKEN_BYTES ||
                   fcntl(fd, F_SETFL, O_NONBLOCK) < 0
               ? err_set(err, ERR_NET, "%s", err_errno_text(errno))
               : take_fd(&fd);
}

static int connect_name(const char *name, uint16_t port, net_find_fn find, const uint8_t *token,
                        struct err *err)
{
    struct net_address found[NET_ADDRESSES_MAX];
    size_t n = find(name, port, found);
    int fd = -1;
    if (n == 0) {
        return err_set(err, ERR_NET, "%s: the name does not resolve", name);
    }
    for (size_t idx = 0; idx < n && fd < 0; idx++) {
        *err = (struct err){0};
        fd = connect_one(&found[idx], token, err);
    }
    return fd < 0 ? err_wrap(err, "%s port %u", name, port) : fd;
}

int relay_connect(struct str hop, net_find_fn find, const uint8_t *token, int *ret_fd,
                  struct err *err)
{
    struct err last = {0};
    struct str port, address;
    int64_t number;
    if (!str_next(&hop, ' ', &port) || !hop.ptr ||
        str_to_i64(port, 1, UINT16_MAX, &number, &last) < 0) {
        return err_set(err, ERR_NET, "expected a port and an address");
    }
    while (str_next(&hop, ' ', &address)) {
        char name[ADDRESS_MAX];
        snprintf(name, sizeof(name), "%.*s", STR_ARG(address));
        last = (struct err){0};
        *ret_fd = connect_name(name, (uint16_t)number, find, token, &last);
        if (*ret_fd >= 0) {
            return 0;
        }
    }
    return err_pass(err, &last);
}
