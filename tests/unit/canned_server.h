/* SPDX-License-Identifier: Apache-2.0 */
/* A server in a child process that answers the n-th connection's request with the n-th canned text, whatever the request, and
   writes the requests to a file. For tests that need every byte known; well-behaved servers are nginx's, in tests/integration. */
#pragma once

#include "base/base.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"

enum canned_end { CANNED_CLOSES, CANNED_STAYS, CANNED_TRICKLES /* a byte each 20 ms */ };

struct canned_reply {
    struct str text;
    enum canned_end end; /* what comes after the text */
};

struct canned_server {
    pid_t pid;
    int port;
    const char *log_path; /* the requests' heads, one after the other */
};

static UNUSED void canned_answer(int client, const struct canned_reply *reply, int log)
{
    char request[16384];
    size_t len = 0;
    struct err err = {0};
    while (len < sizeof(request)) {
        ssize_t got = read(client, request + len, sizeof(request) - len);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        if (memmem(request, len, "\r\n\r\n", 4)) {
            break;
        }
    }
    ASSERT(fs_write_all(log, request, len, "log", &err) == 0);
    /* MSG_NOSIGNAL: a client that has gone is part of some tests. */
    for (size_t at = 0; at < reply->text.len;) {
        ssize_t put = send(client, reply->text.ptr + at, reply->text.len - at, MSG_NOSIGNAL);
        if (put <= 0) {
            break;
        }
        at += (size_t)put;
    }
    while (reply->end == CANNED_TRICKLES && send(client, "x", 1, MSG_NOSIGNAL) == 1) {
        const struct timespec tick = {0, 20000000};
        (void)nanosleep(&tick, NULL);
    }
    while (reply->end == CANNED_STAYS && read(client, request, sizeof(request)) > 0) {
        continue;
    }
}

static UNUSED struct canned_server canned_start(const struct canned_reply *replies, size_t n)
{
    struct canned_server server = {0};
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t place_size = sizeof(place);
    static int n_started;
    char name[32];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int log;
    ASSERT(fd >= 0 && bind(fd, (const struct sockaddr *)&place, place_size) == 0);
    ASSERT(listen(fd, 16) == 0);
    ASSERT(getsockname(fd, (struct sockaddr *)&place, &place_size) == 0);
    snprintf(name, sizeof(name), "requests-%d", n_started++);
    server.port = ntohs(place.sin_port);
    server.log_path = scratch_path(name);
    log = scratch_create(server.log_path);
    server.pid = fork();
    ASSERT(server.pid >= 0);
    if (server.pid == 0) {
        for (size_t idx = 0; idx < n; idx++) {
            int client = accept(fd, NULL, NULL);
            ASSERT(client >= 0);
            canned_answer(client, &replies[idx], log);
            close(client);
        }
        _exit(0);
    }
    close(fd);
    close(log);
    return server;
}

/* Returns the requests. */
static UNUSED struct str canned_stop(struct canned_server *server)
{
    kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0) {
        continue;
    }
    return scratch_read(server->log_path);
}

static UNUSED const char *canned_url(const struct canned_server *server, const char *path)
{
    return arena_printf(&scratch_arena, "http://127.0.0.1:%d%s", server->port, path);
}
