/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the relays: listening, connecting, and each side's half of the token (codec/relay.h). These functions wait, each no longer than it is told: on a node the relay itself calls them, which has nothing
   else to do at that time; the orchestrator calls them on a pool. */
#ifndef SYS_RELAY_NET_H
#define SYS_RELAY_NET_H

#include <netinet/in.h>

#include "base/clock.h"
#include "codec/relay.h"

#define RELAY_REACH_NS (5 * NS_PER_S) /* for a connection */
#define RELAY_SHAKE_NS                                                                             \
    (20 * NS_PER_S) /* for the server's half: it may still be busy with the previous stream */
#define RELAY_PROVE_NS                                                                             \
    (5 * NS_PER_S) /* for the client's half, while the server does nothing else */

struct net_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    socklen_t len;
};
#define NET_ADDRESSES_MAX 16
/* Addresses of a name, in the resolver's order, with that port. Returns how many; 0 if it does not resolve. Implemented by
   net_find with the C library (sys/net_find.c), in reperf-node by node/name_find.h. */
typedef size_t (*net_find_fn)(const char *name, uint16_t port,
                              struct net_address ret[NET_ADDRESSES_MAX]);
size_t net_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX]);

/* On all interfaces, at a port that the kernel chooses. */
MUST_CHECK int relay_listen(int *ret_fd, uint16_t *ret_port, struct err *err);

/* Connected. Sending and receiving wait. ERR_NET if nobody is reached, ERR_AUTH if the peer does not know the token. */
MUST_CHECK int relay_connect(const struct relay_hop *hop, net_find_fn find, const uint8_t *token,
                             int *ret_fd, struct err *err);
/* The other side: accepts a waiting connection. ERR_AUTH: not one of ours; it is closed. */
MUST_CHECK int relay_accept(int listen_fd, const uint8_t *token, int *ret_fd, struct err *err);

MUST_CHECK int relay_random(uint8_t *ret_bytes, size_t n, struct err *err);

#endif
