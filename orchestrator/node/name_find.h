/* SPDX-License-Identifier: Apache-2.0 */
/* Names of machines. The program is static, so that the C library's own look-up would want libraries of the node's: numbers are read
   here, then /etc/hosts, then `getent` is asked, which answers as every other program there would be. */
#ifndef NODE_NAME_FIND_H
#define NODE_NAME_FIND_H

#include "base/arena.h"
#include "sys/relay_net.h"

/* Its addresses, in their order, with that port. Returns how many; 0: the name does not resolve. */
size_t address_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX]);
/* The name of the interface through which it is reached, in the arena; NULL: none. */
const char *address_route(struct arena *arena, const struct net_address *address);

#endif
