/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes reach each other at a port: a listener that identifies itself, and threads that connect to all peers at once. The
   listener ends with the channel that requested it, or after a minute. */
#include "base/base.h"

#include "node/serve.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/facts.h"
#include "node/job.h"
#include "node/name_find.h"
#include "sys/pool.h"

#define NAMES_NS    (30 * NS_PER_S) /* for all peers' names, where name servers do not answer */
#define GREETING    "reperf-probe\n"
#define LISTEN_S    60
#define TRY_NS      (3 * NS_PER_S)
#define PORT_MAX    65535
#define PEERS_MAX   4096
#define GREETED_MAX 64
#define THREADS_MAX 64

/* ---- listening ---- */

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
    int64_t port;
    if (request->n_fields != 2 || !serve_number(request, 0, PORT_MAX, &port) || port < 1) {
        return serve_bad(text);
    }
    /* At the requested address; else at any. */
    size_t n = address_find(request->fields[1].ptr, (uint16_t)port, found);
    struct net_address any = {.at.v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)},
                              .len = sizeof(struct sockaddr_in)};
    CLEANUP(fd) int fd = n ? net_listen(&found[0]) : -1;
    fd = fd < 0 ? net_listen(&any) : fd;
    pid_t pid = fd < 0 ? -1 : wrapper_fork_tied();
    int failed = errno;
    if (pid == 0) {
        greet(fd);
    }
    if (pid > 0) {
        facts_printf(&facts, "listen", "%d", (int)pid);
    } else {
        facts_unknown(&facts, "listen", err_errno_text(failed));
    }
    arena_release(&facts.arena);
    return 0;
}

/* ---- trying ---- */

struct peer {
    struct net_address found[NET_ADDRESSES_MAX];
    size_t n; /* 0: its name does not resolve */
    struct err verdict;
};

static bool is_open(const struct net_address *address, struct err *ret_why)
{
    CLEANUP(fd) int fd = -1;
    char said[GREETED_MAX];
    size_t len = 0;
    ssize_t n = 1;
    if (net_connect(address, TRY_NS, &fd, ret_why) < 0) {
        return false;
    }
    while (n > 0 && len < sizeof(said) && !memchr(said, '\n', len)) {
        n = recv(fd, said + len, sizeof(said) - len, 0);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0 && errno == EAGAIN) {
        (void)!err_set(ret_why, ERR_TIMEOUT, "no answer within %d s", (int)(TRY_NS / NS_PER_S));
    } else if (n < 0) {
        (void)!err_set(ret_why, ERR_NET, "%s", err_errno_text(errno));
    } else if (!str_starts((struct str){said, len}, STR_LIT(GREETING))) {
        (void)!err_set(ret_why, ERR_NET, "something else answers");
    }
    return ret_why->code == ERR_NONE;
}

static int try_peer(void *ctx, size_t idx, const atomic_bool *is_stopped UNUSED,
                    struct err *err UNUSED)
{
    struct peer *peer = &((struct peer *)ctx)[idx];
    bool holds = false;
    for (size_t at = 0; at < peer->n && !holds; at++) {
        struct err why = {0};
        holds = is_open(&peer->found[at], &why);
        why.msg[0] = (char)tolower((unsigned char)why.msg[0]);
        if (holds || at == 0) {
            peer->verdict = why;
        }
    }
    return 0;
}

int serve_connect(struct server *server UNUSED, const struct node_request *request,
                  struct strbuf *text)
{
    struct facts facts = {.out = text};
    struct arena *arena = &facts.arena;
    CLEANUP(pool) struct pool *pool = NULL;
    struct err err = {0};
    int64_t port;
    size_t n = request->n_fields / 2;
    if (request->n_fields % 2 != 1 || n > PEERS_MAX || !serve_number(request, 0, PORT_MAX, &port) ||
        port < 1) {
        return serve_bad(text);
    }
    struct peer *peers = arena_array(arena, struct peer, n + 1);
    const int64_t until_ns = clock_now_ns() + NAMES_NS;
    for (size_t idx = 0; idx < n && clock_now_ns() < until_ns; idx++) {
        peers[idx].n =
            address_find(request->fields[2 * idx + 2].ptr, (uint16_t)port, peers[idx].found);
    }
    size_t n_threads = n < 1 ? 1 : n < THREADS_MAX ? n : THREADS_MAX;
    if (pool_new(n_threads, &pool, &err) < 0 ||
        pool_many(
            &(struct pool_many){
                .pool = pool, .n_threads = n_threads, .n = n, .each = try_peer, .ctx = peers},
            &err) < 0) {
        arena_release(arena);
        return serve_failed(text, "", &err);
    }
    for (size_t idx = 0; idx < n; idx++) {
        const struct peer *peer = &peers[idx];
        const char *name = request->fields[2 * idx + 1].ptr;
        facts_put(&facts, arena_printf(arena, "port.%s", name),
                  !peer->n             ? "the name does not resolve"
                  : peer->verdict.code ? peer->verdict.msg
                                       : "open");
    }
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
