/* SPDX-License-Identifier: Apache-2.0 */
/* sys/relay_net with real sockets: a client that knows the token is connected; for every other one each side reports the
   reason. */
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "sys/pool.h"
#include "sys/relay_net.h"

enum { HALF = RELAY_TOKEN_BYTES / 2 };

static const uint8_t TOKEN[RELAY_TOKEN_BYTES] = {1, 2, 3, [HALF] = 7};
static const uint8_t OTHER[RELAY_TOKEN_BYTES] = {1, 2, 4, [HALF] = 7};

struct caller { /* relay_connect on a thread */
    struct relay_hop hop;
    net_find_fn find;
    const uint8_t *token;
    int fd;
};

static int call(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct caller *caller = arg;
    return relay_connect(&caller->hop, caller->find, caller->token, &caller->fd, err);
}

struct meeting {
    struct pool *pool;
    struct caller caller;
    struct pool_job job;
    int listen_fd;
};

static struct meeting *begin(net_find_fn find, const char *first, const char *second,
                             const uint8_t *token)
{
    struct meeting *meeting = xcalloc(1, sizeof(*meeting));
    struct caller *caller = &meeting->caller;
    PASSES(pool_new(1, &meeting->pool, ERR));
    *caller =
        (struct caller){.hop.address = {first, second}, .find = find, .token = token, .fd = -1};
    PASSES(relay_listen(&meeting->listen_fd, &caller->hop.port, ERR));
    meeting->job = (struct pool_job){.fn = call, .arg = caller};
    return meeting;
}

static void call_and_wait(struct meeting *meeting)
{
    struct pollfd waits = {meeting->listen_fd, POLLIN, 0};
    pool_submit(meeting->pool, &meeting->job);
    assert_int_equal(poll(&waits, 1, 60000), 1);
}

static void end(struct meeting *meeting)
{
    fd_close(&meeting->caller.fd);
    fd_close(&meeting->listen_fd);
    pool_free(meeting->pool);
    free(meeting);
}

static void expect(int result, struct err *err, enum err_code code, const char *words)
{
    assert_int_equal(result, -1);
    assert_string_equal(err->msg, words);
    assert_int_equal(err->code, code);
    *err = (struct err){0};
}

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

static size_t find_nothing(const char *name UNUSED, uint16_t port UNUSED,
                           struct net_address ret[NET_ADDRESSES_MAX] UNUSED)
{
    return 0;
}

static size_t find_of_no_family(const char *name UNUSED, uint16_t port UNUSED,
                                struct net_address ret[NET_ADDRESSES_MAX])
{
    ret[0] = (struct net_address){.len = sizeof(ret[0].at.v4)};
    return 1;
}

TEST(who_knows_the_token_is_connected)
{
    static const struct {
        net_find_fn find;
        const char *first, *second;
    } WAYS[] = {{net_find, "127.0.0.1", NULL},
                {find_behind_a_dead_one, "name", NULL},
                {net_find, "no address", "127.0.0.1"}};
    for (EACH(row, WAYS)) {
        struct meeting *meeting = begin(row->find, row->first, row->second, TOKEN);
        CLEANUP(fd) int fd = -1;
        char text[8] = "";
        call_and_wait(meeting);
        PASSES(relay_accept(meeting->listen_fd, TOKEN, &fd, ERR));
        PASSES(pool_wait(meeting->pool, &meeting->job, ERR));
        assert_int_equal(send(fd, "down", 4, MSG_NOSIGNAL), 4);
        assert_int_equal(send(meeting->caller.fd, "up", 2, MSG_NOSIGNAL), 2);
        struct pollfd waits[] = {{fd, POLLIN, 0}, {meeting->caller.fd, POLLIN, 0}};
        assert_int_equal(poll(&waits[0], 1, 60000), 1);
        assert_int_equal(recv(fd, text, sizeof(text), 0), 2);
        assert_memory_equal(text, "up", 2);
        assert_int_equal(poll(&waits[1], 1, 60000), 1);
        assert_int_equal(recv(meeting->caller.fd, text, sizeof(text), 0), 4);
        assert_memory_equal(text, "down", 4);
        end(meeting);
    }
}

TEST(who_does_not_know_the_token_is_turned_away)
{
    struct meeting *meeting = begin(net_find, "127.0.0.1", NULL, OTHER);
    struct err err = {0}, theirs = {0};
    int fd = -1;
    expect(relay_accept(meeting->listen_fd, TOKEN, &fd, &err), &err, ERR_AUTH,
           "accept: Resource temporarily unavailable");
    call_and_wait(meeting);
    expect(relay_accept(meeting->listen_fd, TOKEN, &fd, &err), &err, ERR_AUTH,
           "the peer that connected does not know the token");
    expect(pool_wait(meeting->pool, &meeting->job, &theirs), &theirs, ERR_NET,
           "closed by the other side");
    assert_int_equal(fd, -1);
    assert_int_equal(meeting->caller.fd, -1);
    end(meeting);
}

/* A port may belong to another program by now. One that answers with other bytes, closes, or breaks off is not our
   relay. */
TEST(who_answers_and_is_no_relay_is_told_apart)
{
    enum { LIES, CLOSES, BREAKS_OFF, WAYS };
    static const struct {
        enum err_code code;
        const char *words;
    } EXPECTED[WAYS] = {
        [LIES] = {ERR_AUTH, "the program that answers there is not a relay of this staging"},
        [CLOSES] = {ERR_NET, "closed by the other side"},
        [BREAKS_OFF] = {ERR_NET, "Connection reset by peer"}};
    for (int way = 0; way < WAYS; way++) {
        struct meeting *meeting = begin(net_find, "127.0.0.1", NULL, TOKEN);
        static const uint8_t lie[HALF];
        struct linger at_once = {.l_onoff = 1};
        struct err err = {0};
        call_and_wait(meeting);
        CLEANUP(fd) int fd = accept4(meeting->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        uint8_t half[HALF];
        assert_true(fd >= 0);
        assert_int_equal(recv(fd, half, sizeof(half), MSG_WAITALL), sizeof(half));
        assert_memory_equal(half, TOKEN, sizeof(half)); /* and no more of the token */
        if (way == LIES) {
            assert_int_equal(send(fd, lie, sizeof(lie), MSG_NOSIGNAL), sizeof(lie));
        } else if (way == CLOSES) {
            fd_close(&fd);
        } else {
            assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
            fd_close(&fd);
        }
        expect(pool_wait(meeting->pool, &meeting->job, &err), &err, EXPECTED[way].code,
               EXPECTED[way].words);
        end(meeting);
    }
}

/* A client that leaves before it has said its half ends nothing. */
TEST(who_leaves_before_its_half_is_turned_away)
{
    struct meeting *meeting = begin(net_find, "127.0.0.1", NULL, TOKEN);
    struct net_address at[NET_ADDRESSES_MAX];
    struct pollfd waits = {meeting->listen_fd, POLLIN, 0};
    int fd = -1;
    assert_int_equal(net_find("127.0.0.1", meeting->caller.hop.port, at), 1);
    int guest = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(guest, &at[0].at.any, at[0].len), 0);
    assert_int_equal(shutdown(guest, SHUT_WR), 0);
    assert_int_equal(poll(&waits, 1, 60000), 1);
    expect(relay_accept(meeting->listen_fd, TOKEN, &fd, ERR), ERR, ERR_AUTH,
           "closed by the other side");
    close(guest);
    end(meeting);
}

TEST(who_is_not_reached_is_named)
{
    struct relay_hop hop = {.port = 1, .address = {"127.0.0.1", "127.0.0.2"}};
    int fd = -1;
    expect(relay_connect(&hop, net_find, TOKEN, &fd, ERR), ERR, ERR_NET,
           "127.0.0.1 port 1: Connection refused");
    hop.address[0] = "node7";
    expect(relay_connect(&hop, find_nothing, TOKEN, &fd, ERR), ERR, ERR_NET,
           "node7: the name does not resolve");
    expect(relay_connect(&hop, find_of_no_family, TOKEN, &fd, ERR), ERR, ERR_NET,
           "node7 port 1: socket: Address family not supported by protocol");
    assert_int_equal(fd, -1);
}
