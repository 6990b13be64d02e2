/* SPDX-License-Identifier: Apache-2.0 */
/* The relay of a staging, another process of this program: its order arrives in requests, its output goes back in their answers, and
   if its port cannot be reached its stream arrives in requests, too. It ends with this process, whose end of its pipe it watches. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "codec/relay.h"
#include "node/job.h"
#include "node/relay_server.h"

#define FEED_FD     3 /* of the child */
#define HEAR_MAX_MS 60000
#define SAID_MAX    (64u << 20)
#define ANSWER_MAX  (NODE_TEXT_MAX - 64)
#define CHUNK_BYTES 65536

struct relay_child {
    int order_fd;
    uint64_t order_bytes;
    pid_t pid; /* 0: not begun */
    int out_fd, feed_fd;
    struct strbuf said;
    bool is_over; /* its output has ended */
    int status;
};

void relay_child_end(struct server *server)
{
    struct relay_child *child = server->relay;
    if (child) {
        fd_close(&child->order_fd);
        fd_close(&child->out_fd);
        fd_close(&child->feed_fd);
        strbuf_release(&child->said);
        free(child);
        server->relay = NULL;
    }
}

pid_t relay_child_pid(const struct server *server)
{
    return server->relay ? server->relay->pid : 0;
}

/* ---- its order ---- */

static NORETURN void become_relay(const struct server *server, const struct relay_child *child,
                                  int out_fd, int feed_fd)
{
    wrapper_reset_signals();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)dup2(child->order_fd, STDIN_FILENO);
    (void)dup2(out_fd, STDOUT_FILENO);
    if (feed_fd == FEED_FD) {
        (void)fcntl(feed_fd, F_SETFD, 0);
    } else {
        (void)dup2(feed_fd, FEED_FD);
    }
    execl("/proc/self/exe", server->self, "relay", server->work_folder, "3", (char *)NULL);
    _exit(127);
}

static int begin(const struct server *server, struct relay_child *child, struct err *err)
{
    int out[2], feed[2];
    if (lseek(child->order_fd, 0, SEEK_SET) < 0 || pipe2(out, O_CLOEXEC) < 0) {
        return err_set(err, ERR_NODE, "a relay: %s", err_errno_text(errno));
    }
    child->out_fd = out[0];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, feed) < 0) {
        close(out[1]);
        return err_set(err, ERR_NODE, "a relay: %s", err_errno_text(errno));
    }
    child->feed_fd = feed[0];
    child->pid = fork();
    if (child->pid == 0) {
        become_relay(server, child, out[1], feed[1]);
    }
    close(out[1]);
    close(feed[1]);
    fd_close(&child->order_fd);
    (void)fcntl(child->out_fd, F_SETFL, O_NONBLOCK);
    return child->pid < 0 ? err_set(err, ERR_NODE, "fork: %s", err_errno_text(errno)) : 0;
}

static int new_child(struct server *server, struct err *err)
{
    int fd = memfd_create("order", MFD_CLOEXEC);
    relay_child_end(server);
    if (fd < 0) {
        return err_set(err, ERR_NODE, "memfd_create: %s", err_errno_text(errno));
    }
    server->relay = xcalloc(1, sizeof(*server->relay));
    *server->relay = (struct relay_child){.order_fd = fd, .out_fd = -1, .feed_fd = -1};
    strbuf_init(&server->relay->said, SAID_MAX);
    return 0;
}

int serve_relay(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct err err = {0};
    int64_t offset, is_last;
    if (request->n_fields != 3 || !serve_number(request, 0, RELAY_ORDER_MAX, &offset) ||
        !serve_number(request, 1, 1, &is_last)) {
        return serve_bad(text);
    }
    if (offset == 0 && new_child(server, &err) < 0) {
        return serve_failed(text, "", &err);
    }
    struct relay_child *child = server->relay;
    struct str bytes = request->fields[2];
    if (!child || child->pid || child->order_bytes != (uint64_t)offset ||
        bytes.len > RELAY_ORDER_MAX - child->order_bytes) {
        return serve_failed(text, "an earlier part of the relay's order is missing", NULL);
    }
    if (fs_write_all(child->order_fd, bytes.ptr, bytes.len, "a relay's order", &err) < 0 ||
        (is_last && begin(server, child, &err) < 0)) {
        relay_child_end(server);
        return serve_failed(text, "", &err);
    }
    child->order_bytes += bytes.len;
    return 0;
}

/* ---- what it says ---- */

static void take_said(struct relay_child *child)
{
    char chunk[CHUNK_BYTES];
    ssize_t len = 1;
    int status;
    while (len > 0 && !child->is_over && child->said.len + CHUNK_BYTES < SAID_MAX) {
        len = read(child->out_fd, chunk, sizeof(chunk));
        if (len > 0) {
            strbuf_add(&child->said, chunk, (size_t)len);
        } else if (len == 0) {
            child->is_over = true;
            while (waitpid(child->pid, &status, 0) < 0) {
                if (errno != EINTR) {
                    status = 127 << 8; /* already reaped: status unknown */
                    break;
                }
            }
            child->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
}

int serve_hear(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct clock_src clock = clock_system();
    struct relay_child *child = server->relay;
    int64_t wait_ms, until_ns;
    if (!serve_number(request, 0, HEAR_MAX_MS, &wait_ms)) {
        return serve_bad(text);
    }
    if (!child || !child->pid) {
        strbuf_add_z(text, "absent\n");
        return 0;
    }
    until_ns = clock.mono_ns(clock.ctx) + wait_ms * NS_PER_MS;
    take_said(child);
    while (!child->is_over && !child->said.len) {
        int64_t left_ns = until_ns - clock.mono_ns(clock.ctx);
        struct pollfd fds[] = {{.fd = child->out_fd, .events = POLLIN},
                               {.fd = server->input_fd, .events = POLLIN}};
        if (left_ns <= 0 || (poll(fds, 2, (int)(left_ns / NS_PER_MS) + 1) > 0 && fds[1].revents)) {
            break;
        }
        take_said(child);
    }
    size_t len = child->said.len < ANSWER_MAX ? child->said.len : ANSWER_MAX;
    if (child->is_over && len == child->said.len) {
        strbuf_printf(text, "ended %d\n", child->status);
    } else {
        strbuf_add_z(text, "running\n");
    }
    strbuf_add(text, child->said.ptr, len);
    memmove(child->said.ptr, child->said.ptr + len, child->said.len - len + 1);
    child->said.len -= len;
    return 0;
}

/* ---- a stream for it ---- */

/* Reads its output meanwhile, since it might wait for that. HEAR reports how it ended. */
int serve_feed(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct relay_child *child = server->relay;
    size_t sent = 0;
    if (request->n_fields != 1) {
        return serve_bad(text);
    }
    struct str bytes = request->fields[0];
    while (child && child->pid && !child->is_over && sent < bytes.len) {
        ssize_t n =
            send(child->feed_fd, bytes.ptr + sent, bytes.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
        take_said(child);
        if (n < 0) {
            struct pollfd fds[] = {{.fd = child->feed_fd, .events = POLLOUT},
                                   {.fd = child->out_fd, .events = POLLIN}};
            (void)poll(fds, 2, -1);
        }
    }
    if (sent < bytes.len) {
        strbuf_add_z(text, NODE_FEED_OVER);
    }
    return 0;
}

/* ---- the relay itself ---- */

int relay_main(const char *work_folder, int feed_fd)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct relay_opts opts = {.in_fd = STDIN_FILENO,
                              .out_fd = STDOUT_FILENO,
                              .feed_fd = feed_fd,
                              .clock = clock_system()};
    struct err err = {0};
    if (fs_mkdir_p(fs_join(&arena, work_folder, "cache"), &err) < 0) {
        return err_exit_status(err.code);
    }
    opts.cache_path = fs_join(&arena, work_folder, "cache/digests");
    return relay_serve(&opts, &err) < 0 ? err_exit_status(err.code) : 0;
}
