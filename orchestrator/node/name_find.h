/* SPDX-License-Identifier: Apache-2.0 */
/* Names of machines. The program is static, so that the C library's own look-up would want libraries of the node's: numbers are read
   here, then /etc/hosts, then `getent` is asked, which answers as every other program there would be. */
#ifndef NODE_NAME_FIND_H
#define NODE_NAME_FIND_H

#include "base/arena.h"
#include "sys/relay_net.h"

struct name_ask {
    const char *name;
    struct net_address found[NET_ADDRESSES_MAX]; /* its addresses, in their order */
    size_t n;                                    /* 0: the name does not resolve */
};

/* All of them, with that port. */
void addresses_find(struct name_ask *asks, size_t n, uint16_t port);
/* One. Returns how many addresses it has. */
size_t address_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX]);
/* The name of the interface through which it is reached, in the arena; NULL: none. */
const char *address_route(struct arena *arena, const struct net_address *address);

#endif
