/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/name_find.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "node/tool.h"

#define GETENT_LIMIT (10 * NS_PER_S)
#define SAID_MAX     (64u << 10)

struct addresses {
    struct net_address *items;
    size_t n;
    uint16_t port;
};

/* A numeric address, with its zone if it has one ("fe80::1%eth0"). */
static bool add_number(struct addresses *found, struct str text)
{
    char number[INET6_ADDRSTRLEN + IF_NAMESIZE + 2];
    struct net_address address = {0};
    if (text.len >= sizeof(number) || found->n == NET_ADDRESSES_MAX) {
        return false;
    }
    memcpy(number, text.ptr, text.len);
    number[text.len] = '\0';
    char *zone = strchr(number, '%');
    if (zone) {
        *zone++ = '\0';
        address.at.v6.sin6_scope_id = if_nametoindex(zone);
    }
    if (inet_pton(AF_INET, number, &address.at.v4.sin_addr) == 1) {
        address.at.v4.sin_family = AF_INET;
        address.at.v4.sin_port = htons(found->port);
        address.len = sizeof(address.at.v4);
    } else if (inet_pton(AF_INET6, number, &address.at.v6.sin6_addr) == 1) {
        address.at.v6.sin6_family = AF_INET6;
        address.at.v6.sin6_port = htons(found->port);
        address.len = sizeof(address.at.v6);
    } else {
        return false;
    }
    found->items[found->n++] = address;
    return true;
}

/* "ADDRESS STREAM NAME" and the like. */
static void read_getent(struct addresses *found, struct str said)
{
    struct str line;
    while (str_next(&said, '\n', &line)) {
        struct str number;
        if (str_next(&line, ' ', &number) && str_starts(str_trim(line), STR_LIT("STREAM"))) {
            (void)add_number(found, number);
        }
    }
}

size_t address_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX])
{
    const char *const argv[] = {"getent", "ahosts", name, NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    struct addresses found = {.items = ret, .port = port};
    if (!add_number(&found, str_of(name)) && name[0] != '-' &&
        tool_run(argv, GETENT_LIMIT, false, &said) == 0) {
        read_getent(&found, strbuf_str(&said));
    }
    return found.n;
}
