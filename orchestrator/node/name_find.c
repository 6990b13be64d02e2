/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/name_find.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
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

/* ---- routes ---- */

struct route_ask {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attribute;
    uint8_t address[sizeof(struct in6_addr)];
};

static uint32_t interface_in(const struct nlmsghdr *head, size_t len)
{
    if (!NLMSG_OK(head, len) || head->nlmsg_type != RTM_NEWROUTE ||
        head->nlmsg_len < NLMSG_SPACE(sizeof(struct rtmsg))) {
        return 0;
    }
    const struct rtattr *attribute = RTM_RTA((const struct rtmsg *)NLMSG_DATA(head));
    size_t left = RTM_PAYLOAD(head);
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type == RTA_OIF && RTA_PAYLOAD(attribute) == sizeof(uint32_t)) {
            uint32_t index;
            memcpy(&index, RTA_DATA(attribute), sizeof(index));
            return index;
        }
    }
    return 0;
}

const char *address_route(struct arena *arena, const struct net_address *address)
{
    bool is_six = address->at.any.sa_family == AF_INET6;
    size_t bytes = is_six ? sizeof(struct in6_addr) : sizeof(struct in_addr);
    struct route_ask ask = {
        .head = {.nlmsg_len = (uint32_t)(offsetof(struct route_ask, address) + bytes),
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = is_six ? AF_INET6 : AF_INET, .rtm_dst_len = (uint8_t)(8 * bytes)},
        .attribute = {.rta_len = (uint16_t)RTA_LENGTH(bytes), .rta_type = RTA_DST}};
    char answer[4096], name[IF_NAMESIZE];
    CLEANUP(fd) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct timeval limit = {.tv_sec = 2};
    const void *from =
        is_six ? (const void *)&address->at.v6.sin6_addr : (const void *)&address->at.v4.sin_addr;
    memcpy(ask.address, from, bytes);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        send(fd, &ask, ask.head.nlmsg_len, 0) < 0) {
        return NULL;
    }
    ssize_t len = recv(fd, answer, sizeof(answer), 0);
    struct nlmsghdr *head = (struct nlmsghdr *)(void *)answer;
    uint32_t index = len > 0 ? interface_in(head, (size_t)len) : 0;
    return index && if_indextoname(index, name) ? arena_printf(arena, "%s", name) : NULL;
}
