/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes reach each other at a port: a listener that identifies itself, and attempts to connect to all peers at once. The
   listener ends with the channel that requested it, or after a minute. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/facts.h"
#include "node/job.h"
#include "node/name_find.h"

#define NAMES_NS    (30 * NS_PER_S) /* for all peers' names, where name servers do not answer */
#define GREETING    "reperf-probe\n"
#define BEGIN       "reperf-probe 1 begin\n"
#define END         "reperf-probe 1 end\n"
#define OPEN        "open"
#define LISTEN_S    60
#define BACKLOG     128
#define TRY_NS      (3 * NS_PER_S)
#define PORT_MAX    65535
#define PEERS_MAX   4096
#define GREETED_MAX 64

/* ---- listening ---- */

static int bind_to(const struct net_address *address, struct err *err)
{
    int on = 1;
    CLEANUP(fd) int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &address->at.any, address->len) < 0 || listen(fd, BACKLOG) < 0) {
        return err_set(err, ERR_NET, "%s", err_errno_text(errno));
    }
    return take_fd(&fd);
}

static NORETURN void greet(int listen_fd)
{
    setsid();
    wrapper_reset_signals();
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; fd++) {
        (void)dup2(null_fd, fd);
    }
    alarm(LISTEN_S);
    for (;;) {
        CLEANUP(fd) int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)send(fd, GREETING, sizeof(GREETING) - 1, MSG_NOSIGNAL);
        }
    }
}

int serve_listen(struct server *server UNUSED, const struct node_request *request,
                 struct strbuf *text)
{
    struct facts facts = {.out = text};
    struct net_address found[NET_ADDRESSES_MAX];
    struct err first = {0}, err = {0};
    int64_t port;
    if (request->n_fields != 2 || !serve_number(request, 0, PORT_MAX, &port) || port < 1) {
        return serve_bad(text);
    }
    /* At the requested address; else at any. */
    size_t n = address_find(request->fields[1].ptr, (uint16_t)port, found);
    struct net_address any = {.at.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)},
                              .len = sizeof(struct sockaddr_in)};
    CLEANUP(fd) int fd = n ? bind_to(&found[0], &first) : -1;
    if (fd < 0) {
        fd = bind_to(&any, &err);
    }
    strbuf_add_z(text, BEGIN);
    pid_t pid = fd < 0 ? -1 : wrapper_fork_tied();
    if (pid == 0) {
        greet(fd);
    }
    if (pid > 0) {
        facts_printf(&facts, "listen", "%d", (int)pid);
    } else {
        facts_unknown(&facts, "listen", fd < 0 ? err.msg : err_errno_text(errno));
    }
    strbuf_add_z(text, END);
    arena_release(&facts.arena);
    return 0;
}

/* ---- trying ---- */

struct port_attempt { /* at one address */
    const struct net_address *address;
    int fd;
    bool is_connected;
    char said[GREETED_MAX];
    size_t len;
    const char *verdict; /* NULL: not known yet */
};

static const char *lower(struct arena *arena, int errnum)
{
    char *text = arena_printf(arena, "%s", err_errno_text(errnum));
    if (text[0] >= 'A' && text[0] <= 'Z') {
        text[0] = (char)(text[0] - 'A' + 'a');
    }
    return text;
}

static void end_attempt(struct port_attempt *attempt, const char *verdict)
{
    fd_close(&attempt->fd);
    attempt->verdict = verdict;
}

static void begin_attempt(struct arena *arena, struct port_attempt *attempt,
                          const struct net_address *address)
{
    *attempt = (struct port_attempt){.address = address};
    attempt->fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd < 0 ||
        (connect(attempt->fd, &address->at.any, address->len) < 0 && errno != EINPROGRESS)) {
        end_attempt(attempt, lower(arena, errno));
    }
}

static void go_on(struct arena *arena, struct port_attempt *attempt)
{
    int failure = 0;
    socklen_t size = sizeof(failure);
    if (!attempt->is_connected) {
        if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0 || failure) {
            end_attempt(attempt, lower(arena, failure ? failure : errno));
            return;
        }
        attempt->is_connected = true;
    }
    ssize_t n = recv(attempt->fd, attempt->said + attempt->len,
                     sizeof(attempt->said) - attempt->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n < 0) {
        end_attempt(attempt, lower(arena, errno));
        return;
    }
    attempt->len += (size_t)n;
    struct str said = {attempt->said, attempt->len};
    if (n == 0 || attempt->len == sizeof(attempt->said) || str_find(said, STR_LIT("\n")) >= 0) {
        end_attempt(attempt, str_starts(said, STR_LIT(GREETING)) ? OPEN : "something else answers");
    }
}

static void try_all(struct arena *arena, struct port_attempt *attempts, size_t n)
{
    struct clock_src clock = clock_system();
    int64_t until_ns = clock.mono_ns(clock.ctx) + TRY_NS;
    struct pollfd *fds = arena_array(arena, struct pollfd, n + 1);
    for (;;) {
        int64_t left_ns = until_ns - clock.mono_ns(clock.ctx);
        size_t n_open = 0;
        for (size_t idx = 0; idx < n; idx++) {
            bool is_open = !attempts[idx].verdict;
            fds[idx] = (struct pollfd){.fd = is_open ? attempts[idx].fd : -1,
                                       .events = attempts[idx].is_connected ? POLLIN : POLLOUT};
            n_open += is_open;
        }
        if (!n_open || left_ns <= 0) {
            break;
        }
        (void)poll(fds, n, (int)(left_ns / NS_PER_MS) + 1);
        for (size_t idx = 0; idx < n; idx++) {
            if (fds[idx].fd >= 0 && fds[idx].revents) {
                go_on(arena, &attempts[idx]);
            }
        }
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (!attempts[idx].verdict) {
            end_attempt(&attempts[idx], "no answer within 3 s");
        }
    }
}

struct peer {
    struct net_address found[NET_ADDRESSES_MAX];
    size_t n; /* 0: its name does not resolve */
};

/* Tries every address of every name at once, the first ones first. Returns how many. */
static size_t begin_all(struct arena *arena, struct port_attempt *attempts,
                        const struct peer *peers, size_t n_peers, struct port_attempt ***ret_of)
{
    struct port_attempt **of =
        arena_array(arena, struct port_attempt *, n_peers * NET_ADDRESSES_MAX + 1);
    size_t n = 0;
    for (size_t at = 0; at < NET_ADDRESSES_MAX; at++) {
        for (size_t idx = 0; idx < n_peers; idx++) {
            if (at < peers[idx].n) {
                begin_attempt(arena, &attempts[n], &peers[idx].found[at]);
                of[idx * NET_ADDRESSES_MAX + at] = &attempts[n++];
            }
        }
    }
    *ret_of = of;
    return n;
}

/* An address that is open, else the result of the first. */
static const struct port_attempt *best_of(struct port_attempt *const *of, size_t n)
{
    const struct port_attempt *best = of[0];
    for (size_t idx = n; idx-- > 0;) {
        best = strcmp(of[idx]->verdict, OPEN) == 0 ? of[idx] : best;
    }
    return best;
}

int serve_connect(struct server *server UNUSED, const struct node_request *request,
                  struct strbuf *text)
{
    struct facts facts = {.out = text};
    struct arena *arena = &facts.arena;
    struct port_attempt **of;
    int64_t port;
    size_t n = request->n_fields / 2, n_addresses = 0;
    if (request->n_fields % 2 != 1 || n > PEERS_MAX || !serve_number(request, 0, PORT_MAX, &port) ||
        port < 1) {
        return serve_bad(text);
    }
    struct peer *peers = arena_array(arena, struct peer, n + 1);
    const int64_t until_ns = clock_now_ns() + NAMES_NS;
    for (size_t idx = 0; idx < n && clock_now_ns() < until_ns; idx++) {
        peers[idx].n =
            address_find(request->fields[2 * idx + 2].ptr, (uint16_t)port, peers[idx].found);
        n_addresses += peers[idx].n;
    }
    struct port_attempt *attempts = arena_array(arena, struct port_attempt, n_addresses + 1);
    try_all(arena, attempts, begin_all(arena, attempts, peers, n, &of));
    strbuf_add_z(text, BEGIN);
    for (size_t idx = 0; idx < n; idx++) {
        const char *name = request->fields[2 * idx + 1].ptr;
        const struct port_attempt *best =
            peers[idx].n ? best_of(of + idx * NET_ADDRESSES_MAX, peers[idx].n) : NULL;
        const char *route = best ? address_route(arena, best->address) : NULL;
        facts_put(&facts, arena_printf(arena, "port.%s", name),
                  best ? best->verdict : "the name does not resolve");
        facts_say(&facts, arena_printf(arena, "route.%s", name), route ? route : "",
                  "no way to it");
    }
    strbuf_add_z(text, END);
    arena_release(&facts.arena);
    return 0;
}

/* ---- the time ---- */

int serve_clock(struct server *server UNUSED, const struct node_request *request UNUSED,
                struct strbuf *text)
{
    struct clock_src clock = clock_system();
    strbuf_printf(text, "%" PRId64 "\n", clock.wall_ns(clock.ctx));
    return 0;
}
