/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <netdb.h>
#include <sys/socket.h>

#include "sys/relay_net.h"

size_t net_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX])
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[8];
    size_t n = 0;
    snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(name, service, &hints, &found) != 0) {
        return 0;
    }
    for (const struct addrinfo *at = found; at && n < NET_ADDRESSES_MAX; at = at->ai_next) {
        if (at->ai_addrlen <= sizeof(ret[n].at)) {
            memcpy(&ret[n].at, at->ai_addr, at->ai_addrlen);
            ret[n++].len = at->ai_addrlen;
        }
    }
    freeaddrinfo(found);
    return n;
}
