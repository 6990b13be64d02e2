/* SPDX-License-Identifier: Apache-2.0 */
/* Host names. In a static program the C library's resolver would need shared libraries of the node: so numeric addresses are
   parsed here, and for others `getent` is run, which resolves names as for any other program there. */
#pragma once

#include "sys/relay_net.h"

/* The addresses of a name, in their order, with that port. Returns their number; 0: it does not resolve. */
size_t address_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX]);
