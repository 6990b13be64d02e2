/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes over TCP. One listens on its own address for a peer that knows the token; the peer connects, shows its half, is shown the
   other half, and sends commands of three 64-bit numbers (operation, size, count), little-endian. All times are taken by the peer
   that connected: round trips, and streams of messages whose end is answered by one byte. */
#include "base/base.h"

#include "node/gauge.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "node/name_find.h"

#define STRANGERS_MAX  64 /* connections without the token */
#define HELLO_S        2
#define PEER_S         40 /* for the peer to connect */
#define WAIT_S         20 /* for the other end, in a measurement */
#define CONNECT_NS     (10 * NS_PER_S)
#define RETRY_NS       (20 * NS_PER_MS)
#define SIZE_MAX_BYTES (1u << 20)
#define BYTES_MAX      (INT64_C(1) << 42) /* of one command */
#define PINGS_MIN      4
#define PINGS_MAX      2000
#define PROBE_BYTES    (INT64_C(1) << 20) /* to estimate the rate */
#define TRIES          3
#define TRY_SAMPLES    4 /* a try that takes as many samples' time is the last: the link is slow */

enum net_op { NET_PING = 1, NET_TAKE, NET_GIVE, NET_END };

struct net_command {
    uint64_t op, size, count;
};

static int fail(const char *what, struct err *err)
{
    return err_set(err, ERR_NET, "%s: %s", what, err_errno_text(errno));
}

/* ---- bytes ---- */

static int send_all(int fd, const char *bytes, size_t len, struct err *err)
{
    while (len > 0) {
        ssize_t done = send(fd, bytes, len, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return fail("send", err);
        }
        bytes += done;
        len -= (size_t)done;
    }
    return 0;
}

static int take_all(int fd, char *bytes, size_t len, struct err *err)
{
    while (len > 0) {
        ssize_t done = recv(fd, bytes, len, 0);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done == 0) {
            return err_set(err, ERR_NET, "the other end closed the connection");
        }
        if (done < 0) {
            return fail("receive", err);
        }
        bytes += done;
        len -= (size_t)done;
    }
    return 0;
}

static void set_patience(int fd, int seconds)
{
    struct timeval span = {.tv_sec = seconds};
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof(span));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void put_u64(char *at, uint64_t value)
{
    for (int idx = 0; idx < 8; idx++) {
        at[idx] = (char)(uint8_t)(value >> (8 * idx));
    }
}

static uint64_t get_u64(const char *at)
{
    uint64_t value = 0;
    for (int idx = 0; idx < 8; idx++) {
        value |= (uint64_t)(uint8_t)at[idx] << (8 * idx);
    }
    return value;
}

static int find_address(const struct gauge_peer *peer, struct net_address ret[NET_ADDRESSES_MAX],
                        struct err *err)
{
    return address_find(peer->address, peer->port, ret)
               ? 0
               : err_set(err, ERR_NET, "%.60s: the name does not resolve", peer->address);
}

/* ---- the one that listens ---- */

static bool is_token(const char *a, const char *b)
{
    unsigned differs = 0;
    for (size_t idx = 0; idx < GAUGE_HALF_BYTES; idx++) {
        differs |= (unsigned)(uint8_t)a[idx] ^ (unsigned)(uint8_t)b[idx];
    }
    return differs == 0;
}

/* 1: it knows the token; 0: it does not; -1: error. */
static int greet(int fd, const char *token, struct err *err)
{
    char shown[GAUGE_HALF_BYTES];
    struct err ignored = {0};
    set_patience(fd, HELLO_S);
    if (take_all(fd, shown, sizeof(shown), &ignored) < 0 || !is_token(shown, token)) {
        return 0;
    }
    set_patience(fd, WAIT_S);
    return send_all(fd, token + GAUGE_HALF_BYTES, GAUGE_HALF_BYTES, err) < 0 ? -1 : 1;
}

static int serve_one(int fd, const struct net_command *command, char *bytes, struct err *err)
{
    for (uint64_t idx = 0; idx < command->count; idx++) {
        if ((command->op != NET_GIVE && take_all(fd, bytes, command->size, err) < 0) ||
            (command->op != NET_TAKE && send_all(fd, bytes, command->size, err) < 0)) {
            return -1;
        }
    }
    return command->op == NET_TAKE ? send_all(fd, bytes, 1, err) : 0;
}

static int serve(int fd, char *bytes, struct err *err)
{
    for (;;) {
        char text[sizeof(struct net_command)];
        struct net_command command;
        if (take_all(fd, text, sizeof(text), err) < 0) {
            return -1;
        }
        command = (struct net_command){get_u64(text), get_u64(text + 8), get_u64(text + 16)};
        if (command.op == NET_END) {
            return 0;
        }
        if (command.op < NET_PING || command.op > NET_END || !command.size ||
            command.size > SIZE_MAX_BYTES || command.count > BYTES_MAX / command.size) {
            return err_set(err, ERR_NET, "the other end sent an unknown command");
        }
        if (serve_one(fd, &command, bytes, err) < 0) {
            return -1;
        }
    }
}

static int listen_on(const struct gauge_peer *self, int *ret_fd, struct err *err)
{
    struct net_address address[NET_ADDRESSES_MAX];
    int on = 1;
    CLEANUP(fd) int fd = -1;
    if (find_address(self, address, err) < 0) {
        return -1;
    }
    fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &address->at.any, address->len) < 0 || listen(fd, 1) < 0) {
        return err_set(err, ERR_NET, "listen on %.60s port %u: %s", self->address,
                       (unsigned)self->port, err_errno_text(errno));
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

int gauge_listen(const struct gauge_peer *self, struct err *err)
{
    CLEANUP(free) char *bytes = xcalloc(1, SIZE_MAX_BYTES);
    CLEANUP(fd) int listener = -1;
    if (listen_on(self, &listener, err) < 0) {
        return -1;
    }
    set_patience(listener, PEER_S);
    for (int n = 0; n < STRANGERS_MAX; n++) {
        CLEANUP(fd) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int rc;
        if (fd < 0) {
            return errno == EAGAIN ? err_set(err, ERR_NET, "no connection within %d s", PEER_S)
                                   : fail("accept", err);
        }
        rc = greet(fd, self->token, err);
        if (rc != 0) {
            fd_close(&listener);
            return rc < 0 ? -1 : serve(fd, bytes, err);
        }
    }
    return err_set(err, ERR_NET, "%d connections without the token", STRANGERS_MAX);
}

/* ---- the one that connects ---- */

struct gauge_link {
    struct gauge *gauge;
    int fd;
    char *bytes;
    int64_t sample_ns;
    size_t n_repeats;
};

static int connect_to(const struct gauge_peer *peer, int *ret_fd, struct err *err)
{
    int64_t until_ns = clock_now_ns() + CONNECT_NS;
    struct net_address address[NET_ADDRESSES_MAX];
    if (find_address(peer, address, err) < 0) {
        return -1;
    }
    for (;;) { /* it may not listen yet */
        struct timespec pause = {.tv_nsec = RETRY_NS};
        CLEANUP(fd) int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            return fail("socket", err);
        }
        set_patience(fd, WAIT_S);
        if (connect(fd, &address->at.any, address->len) == 0) {
            *ret_fd = take_fd(&fd);
            return 0;
        }
        if (clock_now_ns() >= until_ns) {
            int why = errno == EINPROGRESS ? ETIMEDOUT : errno; /* how SO_SNDTIMEO reports it */
            return err_set(err, ERR_NET, "connect to %.60s port %u: %s", peer->address,
                           (unsigned)peer->port, err_errno_text(why));
        }
        (void)nanosleep(&pause, NULL);
    }
}

static int show_token(int fd, const char *token, struct err *err)
{
    char shown[GAUGE_HALF_BYTES];
    if (send_all(fd, token, GAUGE_HALF_BYTES, err) < 0 ||
        take_all(fd, shown, sizeof(shown), err) < 0) {
        return -1;
    }
    return is_token(shown, token + GAUGE_HALF_BYTES)
               ? 0
               : err_set(err, ERR_AUTH, "the program that listens there is not the expected node");
}

static int run_command(struct gauge_link *link, struct net_command command, int64_t *ret_ns,
                       struct err *err)
{
    char text[sizeof(struct net_command)];
    int64_t begin_ns = clock_now_ns();
    put_u64(text, command.op);
    put_u64(text + 8, command.size);
    put_u64(text + 16, command.count);
    if (send_all(link->fd, text, sizeof(text), err) < 0) {
        return -1;
    }
    for (uint64_t idx = 0; idx < command.count && command.op != NET_END; idx++) {
        if ((command.op != NET_GIVE && send_all(link->fd, link->bytes, command.size, err) < 0) ||
            (command.op != NET_TAKE && take_all(link->fd, link->bytes, command.size, err) < 0)) {
            return -1;
        }
    }
    if (command.op == NET_TAKE && take_all(link->fd, link->bytes, 1, err) < 0) {
        return -1;
    }
    *ret_ns = clock_now_ns() - begin_ns;
    return 0;
}

static int measure(struct gauge_link *link, const char *name, struct net_command command,
                   struct err *err)
{
    int64_t ns[GAUGE_REPEATS_MAX];
    int64_t took_ns = 0, best_ns = INT64_MAX;
    bool is_ping = command.op == NET_PING;
    uint64_t least = is_ping ? PINGS_MIN : 1;
    uint64_t most = is_ping ? PINGS_MAX : BYTES_MAX / command.size;
    double wanted;
    command.count = is_ping ? PINGS_MIN : (PROBE_BYTES + command.size - 1) / command.size;
    /* To warm up, and to find how many fill the time. */
    for (int idx = 0; idx < TRIES && took_ns < TRY_SAMPLES * link->sample_ns; idx++) {
        if (run_command(link, command, &took_ns, err) < 0) {
            return -1;
        }
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    wanted = (double)command.count * (double)link->sample_ns / (double)(best_ns > 0 ? best_ns : 1);
    command.count = wanted < (double)least  ? least
                    : wanted > (double)most ? most
                                            : (uint64_t)wanted;
    for (size_t idx = 0; idx < link->n_repeats; idx++) {
        if (run_command(link, command, &ns[idx], err) < 0) {
            return -1;
        }
    }
    gauge_add(link->gauge,
              &(struct gauge_series){
                  .measure = name,
                  .size_bytes = (int64_t)command.size,
                  .work = (int64_t)(is_ping ? command.count : command.count * command.size),
                  .ns = ns,
                  .n = link->n_repeats});
    return 0;
}

static int measure_all(struct gauge_link *link, bool is_ring, struct err *err)
{
    static const uint64_t SIZES[] = {4u << 10, 64u << 10, 1u << 20};
    int64_t ns;
    if (is_ring) {
        struct net_command command = {NET_TAKE, SIZES[ARRAY_LEN(SIZES) - 1], 0};
        return measure(link, "net.ring", command, err) < 0
                   ? -1
                   : run_command(link, (struct net_command){.op = NET_END}, &ns, err);
    }
    if (measure(link, "net.latency", (struct net_command){NET_PING, 1, 0}, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(SIZES); idx++) {
        if (measure(link, "net.send", (struct net_command){NET_TAKE, SIZES[idx], 0}, err) < 0 ||
            measure(link, "net.receive", (struct net_command){NET_GIVE, SIZES[idx], 0}, err) < 0) {
            return -1;
        }
    }
    return run_command(link, (struct net_command){.op = NET_END}, &ns, err);
}

int gauge_link(struct gauge *gauge, const struct gauge_peer *peer, int64_t sample_ns,
               size_t n_repeats, bool is_ring, struct err *err)
{
    CLEANUP(free) char *bytes = xcalloc(1, SIZE_MAX_BYTES);
    CLEANUP(fd) int fd = -1;
    struct gauge_link link = {
        .gauge = gauge, .bytes = bytes, .sample_ns = sample_ns, .n_repeats = n_repeats};
    if (connect_to(peer, &fd, err) < 0 || show_token(fd, peer->token, err) < 0) {
        return -1;
    }
    link.fd = fd;
    return measure_all(&link, is_ring, err);
}
