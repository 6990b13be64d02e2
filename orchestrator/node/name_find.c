/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/name_find.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "node/tool.h"

#define GETENT_LIMIT (10 * NS_PER_S)
#define GETENTS_MAX  64
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

static bool next_word(struct str *rest, struct str *ret_word)
{
    size_t at = 0;
    while (at < rest->len && (rest->ptr[at] == ' ' || rest->ptr[at] == '\t')) {
        at++;
    }
    size_t end = at;
    while (end < rest->len && rest->ptr[end] != ' ' && rest->ptr[end] != '\t') {
        end++;
    }
    *ret_word = str_sub(*rest, at, end - at);
    *rest = str_sub(*rest, end, rest->len);
    return ret_word->len > 0;
}

/* "ADDRESS STREAM NAME" and the like. */
static void read_getent(struct addresses *found, struct str said)
{
    struct str line;
    while (str_next(&said, '\n', &line)) {
        struct str number, kind;
        if (next_word(&line, &number) && next_word(&line, &kind) && str_eq_z(kind, "STREAM")) {
            (void)add_number(found, number);
        }
    }
}

struct getent { /* one that runs */
    struct name_ask *ask;
    const char *argv[4];
    struct tool_program program;
    struct tool tool;
    struct strbuf said;
    bool is_over;
};

static void begin_getent(struct getent *getent, struct name_ask *ask)
{
    *getent = (struct getent){.ask = ask, .argv = {"getent", "ahosts", ask->name, NULL}};
    getent->program = (struct tool_program){getent->argv, false};
    strbuf_init(&getent->said, SAID_MAX);
    tool_begin(&getent->tool, tool_program, &getent->program, GETENT_LIMIT);
}

/* In parallel, because an unreachable name server delays each of them. */
static void await_getents(struct getent *getents, size_t n, uint16_t port)
{
    size_t n_over = 0;
    while (n_over < n) {
        struct pollfd fds[GETENTS_MAX];
        for (size_t idx = 0; idx < n; idx++) {
            struct getent *getent = &getents[idx];
            struct addresses found = {.items = getent->ask->found, .port = port};
            int status;
            if (!getent->is_over && tool_step(&getent->tool, &getent->said, &status)) {
                getent->is_over = true;
                n_over++;
                if (status == 0) {
                    read_getent(&found, strbuf_str(&getent->said));
                    getent->ask->n = found.n;
                }
                strbuf_release(&getent->said);
            }
            fds[idx] =
                (struct pollfd){.fd = getent->is_over ? -1 : getent->tool.out_fd, .events = POLLIN};
        }
        if (n_over < n) {
            (void)poll(fds, n, TOOL_LOOK_MS);
        }
    }
}

void addresses_find(struct name_ask *asks, size_t n, uint16_t port)
{
    struct getent *getents = xcalloc(GETENTS_MAX, sizeof(*getents));
    size_t n_getents = 0;
    for (size_t idx = 0; idx < n; idx++) {
        struct addresses found = {.items = asks[idx].found, .port = port};
        bool is_number = add_number(&found, str_of(asks[idx].name));
        asks[idx].n = found.n;
        if (!is_number && asks[idx].name[0] != '-') {
            begin_getent(&getents[n_getents++], &asks[idx]);
        }
        if (n_getents == GETENTS_MAX) {
            await_getents(getents, n_getents, port);
            n_getents = 0;
        }
    }
    await_getents(getents, n_getents, port);
    free(getents);
}

size_t address_find(const char *name, uint16_t port, struct net_address ret[NET_ADDRESSES_MAX])
{
    struct name_ask ask = {.name = name};
    addresses_find(&ask, 1, port);
    memcpy(ret, ask.found, ask.n * sizeof(*ret));
    return ask.n;
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
