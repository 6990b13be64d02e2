/* SPDX-License-Identifier: Apache-2.0 */
/* TCP with deadlines: every descriptor is non-blocking and closed on exec, every wait ends at a time that is given, and a signal
   (the stop flag) ends it early with ERR_INTERRUPTED. Times are the monotonic clock's nanoseconds. */
#pragma once

#include "base/err.h"

#include <signal.h>
#include <sys/socket.h>

#define SOCK_NAME_MAX 64 /* "[fe80::1%eth0]:29500" */

struct wait {
    int64_t deadline_ns;
    const volatile sig_atomic_t *stop; /* may be NULL */
    int cancel_fd;                     /* once readable it ends a connect too; 0: none */
};

/* Milliseconds for poll(2) until then, from 0 to at most max_ms. */
int sock_poll_ms(int64_t deadline_ns, int max_ms);

/* Listens at host and port (0: any free one); host NULL is every address of the machine, IPv4 and IPv6. */
MUST_CHECK int sock_listen(const char *host, int port, int *ret_fd, struct err *err);

/* Tries all addresses of the host repeatedly until one answers, or the deadline. */
MUST_CHECK int sock_connect(const char *host, int port, const struct wait *wait, int *ret_fd,
                            struct err *err);

/* The next connection, or -1 in *ret_fd where none waits. */
MUST_CHECK int sock_accept(int listen_fd, int *ret_fd, struct err *err);

MUST_CHECK int sock_send_all(int fd, const void *ptr, size_t len, const struct wait *wait,
                             struct err *err);
MUST_CHECK int sock_recv_all(int fd, void *ptr, size_t len, const struct wait *wait,
                             struct err *err);

/* "10.11.0.2" of either end, IPv4 in IPv6 unwrapped; false if unknown. ret_text has SOCK_NAME_MAX bytes. */
bool sock_peer_host(int fd, char *ret_text);
bool sock_own_host(int fd, char *ret_text);
int sock_own_port(int fd); /* 0 if unknown */

/* True for 127.x.x.x, ::1 and localhost. */
bool sock_is_loopback(const char *host);

/* The first address of a network interface by its name. ret_text has SOCK_NAME_MAX bytes. */
MUST_CHECK int sock_iface_host(const char *iface, char *ret_text, struct err *err);

/* Small packets at once, large buffers. */
void sock_tune(int fd);
