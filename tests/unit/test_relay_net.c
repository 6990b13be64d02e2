/* SPDX-License-Identifier: Apache-2.0 */
/* sys/relay_net with real sockets: who knows the token is connected, others are turned away. */
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "sys/relay_net.h"

static const uint8_t TOKEN[RELAY_TOKEN_BYTES] = {1, 2, 3, [31] = 7};
static const uint8_t OTHER[RELAY_TOKEN_BYTES] = {1, 2, 3, [31] = 8};

/* Two addresses of a name, the first of which nobody has: all are tried, in their order. */
static size_t find_behind_a_dead_one(const char *name UNUSED, uint16_t port,
                                     struct net_address ret[NET_ADDRESSES_MAX])
{
    struct net_address found[NET_ADDRESSES_MAX];
    assert_int_equal(net_find("127.0.0.1", port, found), 1);
    ret[0] = ret[1] = found[0];
    ret[0].at.v4.sin_port = htons(1);
    return 2;
}

static size_t find_of_no_family(const char *name UNUSED, uint16_t port UNUSED,
                                struct net_address ret[NET_ADDRESSES_MAX])
{
    ret[0] = (struct net_address){.len = sizeof(ret[0].at.v4)};
    return 1;
}

static int connect_to(uint16_t port, const char *addresses, net_find_fn find, const uint8_t *token,
                      struct err *err)
{
    char hop[80];
    int fd = -1;
    snprintf(hop, sizeof(hop), "%u %s", port, addresses);
    return relay_connect(str_of(hop), find, token, &fd, err) < 0 ? -1 : fd;
}

static int accept_one(int listen_fd)
{
    struct pollfd wait = {listen_fd, POLLIN, 0};
    assert_int_equal(poll(&wait, 1, 60000), 1);
    return relay_accept(listen_fd, TOKEN);
}

TEST(who_knows_the_token_is_connected)
{
    static const struct {
        net_find_fn find;
        const char *addresses;
    } WAYS[] = {{net_find, "127.0.0.1"},
                {find_behind_a_dead_one, "name"},
                {net_find, "no-such-host.invalid 127.0.0.1"}};
    for (EACH(row, WAYS)) {
        CLEANUP(fd) int listen_fd = -1;
        char text[8] = "";
        uint16_t port;
        PASSES(relay_listen(&listen_fd, &port, ERR));
        CLEANUP(fd) int there = connect_to(port, row->addresses, row->find, TOKEN, ERR);
        assert_true(there >= 0);
        CLEANUP(fd) int here = accept_one(listen_fd);
        assert_true(here >= 0);
        assert_int_equal(send(there, "down", 4, MSG_NOSIGNAL), 4);
        struct pollfd wait = {here, POLLIN, 0};
        assert_int_equal(poll(&wait, 1, 60000), 1);
        assert_int_equal(recv(here, text, sizeof(text), 0), 4);
        assert_memory_equal(text, "down", 4);
        assert_int_equal(recv(here, text, sizeof(text), 0), -1); /* it does not wait */
    }
}

TEST(who_does_not_know_the_token_is_turned_away)
{
    CLEANUP(fd) int listen_fd = -1;
    uint16_t port;
    PASSES(relay_listen(&listen_fd, &port, ERR));
    assert_int_equal(relay_accept(listen_fd, TOKEN), -1); /* nobody is there */
    CLEANUP(fd) int there = connect_to(port, "127.0.0.1", net_find, OTHER, ERR);
    assert_true(there >= 0);
    assert_int_equal(accept_one(listen_fd), -1);
    struct pollfd wait = {there, POLLIN, 0};
    char byte;
    assert_int_equal(poll(&wait, 1, 60000), 1);
    assert_int_equal(recv(there, &byte, 1, 0), 0);
    /* Who leaves before it has said its token ends nothing. */
    struct net_address at[NET_ADDRESSES_MAX];
    assert_int_equal(net_find("127.0.0.1", port, at), 1);
    CLEANUP(fd) int guest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(guest, &at[0].at.any, at[0].len), 0);
    assert_int_equal(shutdown(guest, SHUT_WR), 0);
    assert_int_equal(accept_one(listen_fd), -1);
}

TEST(who_is_not_reached_is_named)
{
    static const struct {
        net_find_fn find;
        const char *addresses, *words;
    } WAYS[] = {
        {net_find, "127.0.0.1 127.0.0.2", "127.0.0.2 port 1: Connection refused"},
        {net_find, "no-such-host.invalid", "no-such-host.invalid: the name does not resolve"},
        {find_of_no_family, "node7", "node7 port 1: Address family not supported by protocol"}};
    for (EACH(row, WAYS)) {
        struct err err = {0};
        assert_int_equal(connect_to(1, row->addresses, row->find, TOKEN, &err), -1);
        assert_int_equal(err.code, ERR_NET);
        assert_string_equal(err.msg, row->words);
    }
    int fd = -1;
    FAILS(relay_connect(STR_LIT("80"), net_find, TOKEN, &fd, ERR), ERR_NET);
}
