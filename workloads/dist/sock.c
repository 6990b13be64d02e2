/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/sock.h"

#include "base/clock.h"
#include "base/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#define TRY_NS       (5 * NS_PER_S) /* one attempt at one address */
#define PAUSE_MS_MIN 20
#define PAUSE_MS_MAX 500
#define TICK_MS                                                                                    \
    500 /* the stop flag is looked at as often, should a signal come just before a wait */
#define BUFFER_BYTES (4 << 20)

int sock_poll_ms(int64_t deadline_ns, int max_ms)
{
    int64_t left_ns = deadline_ns - clock_now_ns();
    int64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;
    return left_ns <= 0 ? 0 : left_ms < max_ms ? (int)left_ms : max_ms;
}

/* 0: look again; -1: time is up, or a signal came. */
static int go_on(const struct wait *wait, const char *what, struct err *err)
{
    if (wait->stop && *wait->stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d while %s", (int)*wait->stop, what);
    }
    struct pollfd cancel = {.fd = wait->cancel_fd, .events = POLLIN};
    if (wait->cancel_fd > 0 && poll(&cancel, 1, 0) > 0) {
        return err_set(err, ERR_INTERRUPTED, "called off while %s", what);
    }
    if (clock_now_ns() >= wait->deadline_ns) {
        return err_set(err, ERR_TIMEOUT, "deadline passed while %s", what);
    }
    return 0;
}

/* Ready, failed, or just a tick. */
static void wait_for(int fd, short events, const struct wait *wait)
{
    struct pollfd one = {.fd = fd, .events = events};
    (void)poll(&one, 1,
               sock_poll_ms(wait->deadline_ns, TICK_MS)); /* the caller tries again anyway */
}

static int net_error(const char *what, struct err *err)
{
    return err_set(err, ERR_NET, "%s: %s", what, err_errno_text(errno));
}

void sock_tune(int fd)
{
    int one = 1;
    int bytes = BUFFER_BYTES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

/* ---- listening ---- */

static int listen_at(const struct addrinfo *at, int *ret_fd)
{
    CLEANUP(fd) int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    int zero = 0;
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (at->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    }
    if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0) {
        return -1;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

static int listen_any(int port, int *ret_fd)
{
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_storage store = {0};
    memcpy(&store, &six, sizeof(six));
    struct addrinfo at = {
        .ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&store, .ai_addrlen = sizeof(six)};
    if (listen_at(&at, ret_fd) == 0) {
        return 0;
    }
    if (errno == EADDRINUSE || errno == EACCES) {
        return -1;
    }
    memset(&store, 0, sizeof(store)); /* a machine without IPv6 */
    memcpy(&store, &four, sizeof(four));
    at.ai_family = AF_INET;
    at.ai_addrlen = sizeof(four);
    return listen_at(&at, ret_fd);
}

static int resolve(const char *host, int port, struct addrinfo **ret_list)
{
    char service[16];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    snprintf(service, sizeof(service), "%d", port);
    return getaddrinfo(host, service, &hints, ret_list);
}

static int listen_host(const char *host, int port, int *ret_fd, struct err *err)
{
    struct addrinfo *list = NULL;
    int status = resolve(host, port, &list);
    if (status != 0) {
        return err_set(err, ERR_NET, "%s: %s", host, gai_strerror(status));
    }
    int result = -1;
    for (const struct addrinfo *at = list; at && result < 0; at = at->ai_next) {
        result = listen_at(at, ret_fd);
    }
    int why = errno;
    freeaddrinfo(list);
    errno = why;
    return result;
}

int sock_listen(const char *host, int port, int *ret_fd, struct err *err)
{
    int status = host ? listen_host(host, port, ret_fd, err) : listen_any(port, ret_fd);
    if (status == 0 || err->code != ERR_NONE) {
        return status;
    }
    return err_set(err, ERR_NET, "cannot listen at %s port %d: %s%s", host ? host : "any address",
                   port, err_errno_text(errno),
                   errno == EADDRINUSE ? " (another job, or one that has not ended?)" : "");
}

int sock_accept(int listen_fd, int *ret_fd, struct err *err)
{
    *ret_fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    /* A guest that has left again is not an error of ours. */
    bool is_nothing = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
                      errno == ECONNABORTED || errno == EPROTO || errno == ENETDOWN ||
                      errno == EHOSTUNREACH || errno == ENETUNREACH || errno == EHOSTDOWN ||
                      errno == ETIMEDOUT;
    if (*ret_fd < 0 && !is_nothing) {
        return net_error("accept", err);
    }
    if (*ret_fd >= 0) {
        sock_tune(*ret_fd);
    }
    return 0;
}

/* ---- connecting ---- */

/* A free port of this machine may be assigned to the socket that tries it: it then connects to itself. */
static bool is_own_echo(int fd)
{
    struct sockaddr_storage own = {0};
    struct sockaddr_storage peer = {0};
    socklen_t own_size = sizeof(own);
    socklen_t peer_size = sizeof(peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && own_size == peer_size &&
           memcmp(&own, &peer, own_size) == 0;
}

/* 0 and a connection; 1: not there (errno says why); -1: an error that ends it all. */
static int try_address(const struct addrinfo *at, const struct wait *wait, int *ret_fd,
                       struct err *err)
{
    CLEANUP(fd) int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return 1;
    }
    sock_tune(fd);
    int64_t end_ns = clock_now_ns() + TRY_NS;
    if (connect(fd, at->ai_addr, at->ai_addrlen) < 0 && errno != EINPROGRESS && errno != EINTR) {
        return 1;
    }
    for (;;) {
        struct pollfd one = {.fd = fd, .events = POLLOUT};
        int n = poll(&one, 1, sock_poll_ms(wait->deadline_ns, TICK_MS));
        if (n > 0) {
            int why = 0;
            socklen_t size = sizeof(why);
            (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size);
            why = why == 0 && is_own_echo(fd) ? ECONNREFUSED : why;
            errno = why;
            if (why == 0) {
                *ret_fd = take_fd(&fd);
            }
            return why == 0 ? 0 : 1;
        }
        if (go_on(wait, "connecting", err) < 0) {
            return -1;
        }
        if (clock_now_ns() >= end_ns) {
            errno = ETIMEDOUT;
            return 1;
        }
    }
}

static int try_host(const char *host, int port, const struct wait *wait, int *ret_fd,
                    struct err *err)
{
    struct addrinfo *list = NULL;
    int status = resolve(host, port, &list);
    if (status == EAI_AGAIN) {
        errno = EHOSTUNREACH; /* a name server that is not up yet */
        return 1;
    }
    if (status != 0) {
        return err_set(err, ERR_NET, "%s: %s", host, gai_strerror(status));
    }
    int result = 1;
    for (const struct addrinfo *at = list; at && result > 0; at = at->ai_next) {
        result = try_address(at, wait, ret_fd, err);
    }
    int why = errno;
    freeaddrinfo(list);
    errno = why;
    return result;
}

int sock_connect(const char *host, int port, const struct wait *wait, int *ret_fd, struct err *err)
{
    int pause_ms = PAUSE_MS_MIN;
    for (;;) {
        struct err now = {0};
        int result = try_host(host, port, wait, ret_fd, &now);
        if (result == 0) {
            return 0;
        }
        const char *why = result > 0 ? err_errno_text(errno) : now.msg;
        if (result < 0 && now.code != ERR_TIMEOUT) {
            return err_set(err, now.code, "%s", now.msg);
        }
        struct err over = {0};
        if (go_on(wait, "connecting", &over) < 0) {
            return err_set(err, over.code, "%s port %d: %s", host, port,
                           over.code == ERR_TIMEOUT ? why : over.msg);
        }
        (void)poll(NULL, 0, sock_poll_ms(wait->deadline_ns, pause_ms));
        pause_ms = pause_ms * 2 < PAUSE_MS_MAX ? pause_ms * 2 : PAUSE_MS_MAX;
    }
}

/* ---- whole messages ---- */

int sock_send_all(int fd, const void *ptr, size_t len, const struct wait *wait, struct err *err)
{
    const char *at = ptr;
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return net_error("send", err);
        } else if (go_on(wait, "sending", err) < 0) {
            return -1;
        } else {
            wait_for(fd, POLLOUT, wait);
        }
    }
    return 0;
}

int sock_recv_all(int fd, void *ptr, size_t len, const struct wait *wait, struct err *err)
{
    char *at = ptr;
    while (len > 0) {
        ssize_t n = recv(fd, at, len, 0);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n == 0) {
            return err_set(err, ERR_NET, "connection closed");
        } else if (errno != EAGAIN && errno != EINTR) {
            return net_error("receive", err);
        } else if (go_on(wait, "waiting for an answer", err) < 0) {
            return -1;
        } else {
            wait_for(fd, POLLIN, wait);
        }
    }
    return 0;
}

/* ---- names ---- */

static bool host_text(const struct sockaddr_storage *store, char *ret_text)
{
    if (store->ss_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, store, sizeof(four));
        return inet_ntop(AF_INET, &four.sin_addr, ret_text, SOCK_NAME_MAX) != NULL;
    }
    if (store->ss_family != AF_INET6) {
        return false;
    }
    struct sockaddr_in6 six;
    memcpy(&six, store, sizeof(six));
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
        return inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], ret_text, SOCK_NAME_MAX) != NULL;
    }
    if (!inet_ntop(AF_INET6, &six.sin6_addr, ret_text, SOCK_NAME_MAX)) {
        return false;
    }
    char iface[IF_NAMESIZE];
    size_t len = strlen(ret_text);
    if (six.sin6_scope_id != 0 && if_indextoname(six.sin6_scope_id, iface)) {
        snprintf(ret_text + len, SOCK_NAME_MAX - len, "%%%s", iface);
    }
    return true;
}

bool sock_peer_host(int fd, char *ret_text)
{
    struct sockaddr_storage store = {0};
    socklen_t size = sizeof(store);
    return getpeername(fd, (struct sockaddr *)&store, &size) == 0 && host_text(&store, ret_text);
}

bool sock_own_host(int fd, char *ret_text)
{
    struct sockaddr_storage store = {0};
    socklen_t size = sizeof(store);
    return getsockname(fd, (struct sockaddr *)&store, &size) == 0 && host_text(&store, ret_text);
}

int sock_own_port(int fd)
{
    struct sockaddr_storage store = {0};
    socklen_t size = sizeof(store);
    if (getsockname(fd, (struct sockaddr *)&store, &size) < 0) {
        return 0;
    }
    /* The port is at the same offset in both families. */
    struct sockaddr_in four;
    memcpy(&four, &store, sizeof(four));
    return ntohs(four.sin_port);
}

bool sock_is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

int sock_iface_host(const char *iface, char *ret_text, struct err *err)
{
    struct ifaddrs *list = NULL;
    bool is_found = false;
    if (getifaddrs(&list) < 0) {
        return net_error("network interfaces", err);
    }
    for (const struct ifaddrs *at = list; at && !is_found; at = at->ifa_next) {
        if (at->ifa_addr && strcmp(at->ifa_name, iface) == 0) {
            struct sockaddr_storage store = {0};
            bool is_six = at->ifa_addr->sa_family == AF_INET6;
            bool is_ip = is_six || at->ifa_addr->sa_family == AF_INET;
            memcpy(&store, at->ifa_addr,
                   is_six  ? sizeof(struct sockaddr_in6)
                   : is_ip ? sizeof(struct sockaddr_in)
                           : sizeof(at->ifa_addr->sa_family));
            is_found = is_ip && host_text(&store, ret_text);
        }
    }
    freeifaddrs(list);
    return is_found
               ? 0
               : err_set(err, ERR_USAGE,
                         "REPERF_DIST_IFACE=%s: no such network interface with an address", iface);
}
