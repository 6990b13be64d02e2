/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets between nodes, and those of the relays (codec/relay.h). These functions wait, each no longer than it is told: on a
   node the relay itself calls them, which has nothing else to do at that time; the orchestrator calls them on a pool. */
#pragma once

#include <netinet/in.h>

#include "base/clock.h"
#include "codec/relay.h"

#define RELAY_REACH_NS (5 * NS_PER_S)  /* for a connection to an address */
#define RELAY_PROVE_NS (5 * NS_PER_S)  /* for the token of who connected */
#define RELAY_STALL_NS (60 * NS_PER_S) /* without a byte: the stream is given up */

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

/* A socket that listens there; -1 with errno set. */
int net_listen(const struct net_address *address);
/* One that is connected, and whose waiting calls end after that span; ERR_NET or, where nobody answers for as long,
   ERR_TIMEOUT. */
MUST_CHECK int net_connect(const struct net_address *address, int64_t span_ns, int *ret_fd,
                           struct err *err);

/* On all interfaces, at a port that the kernel chooses. */
MUST_CHECK int relay_listen(int *ret_fd, uint16_t *ret_port, struct err *err);
/* The relay at "PORT ADDRESS [ADDRESS]", tried in turn; it is told the token. The descriptor does not wait. ERR_NET. */
MUST_CHECK int relay_connect(struct str hop, net_find_fn find, const uint8_t *token, int *ret_fd,
                             struct err *err);
/* The other side: who has connected, unless it does not know the token (-1, and it is turned away). It does not wait. */
int relay_accept(int listen_fd, const uint8_t *token);
