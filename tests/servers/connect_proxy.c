/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy for CONNECT only: prints its port on stdout, carries bytes both ways until it gets TERM or its parent ends. With an
   argument, that is what Proxy-Authorization must be ("Basic ..."), else 407. Nobody gets to port 9: 403. One line on stderr a
   connection: the request. */
#include "base/base.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_MAX 8192

static int open_port(void)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t place_size = sizeof(place);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&place, place_size) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&place, &place_size) < 0) {
        return -1;
    }
    printf("%d\n", ntohs(place.sin_port));
    fflush(stdout);
    return fd;
}

/* Byte by byte: what follows the head belongs to the tunnel. */
static int read_head(int client, char *head)
{
    size_t len = 0;
    while (len < HEAD_MAX && read(client, head + len, 1) == 1) {
        len++;
        head[len] = '\0';
        if (len >= 4 && strcmp(head + len - 4, "\r\n\r\n") == 0) {
            return 0;
        }
    }
    return -1;
}

static int connect_to(const char *head)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *colon = strncmp(head, "CONNECT ", 8) == 0 ? strchr(head + 8, ':') : NULL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!colon || fd < 0) {
        return -1;
    }
    place.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    return connect(fd, (const struct sockaddr *)&place, sizeof(place)) == 0 ? fd : -1;
}

static bool carry(int from, int to)
{
    char buf[65536];
    ssize_t got = read(from, buf, sizeof(buf));
    for (ssize_t at = 0; at < got;) {
        ssize_t put = send(to, buf + at, (size_t)(got - at), MSG_NOSIGNAL);
        if (put <= 0) {
            return false;
        }
        at += put;
    }
    return got > 0;
}

static void serve(int client, const char *login)
{
    static const char DENIED[] = "HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic realm=\"x\"\r\n"
                                 "Content-Length: 0\r\nConnection: close\r\n\r\n";
    static const char FORBIDDEN[] =
        "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    static const char DONE[] = "HTTP/1.1 200 Connected\r\n\r\n";
    static char head[HEAD_MAX + 1];
    struct pollfd ends[2] = {{.fd = client, .events = POLLIN}, {.events = POLLIN}};
    if (read_head(client, head) < 0) {
        return;
    }
    fprintf(stderr, "%.*s\n", (int)strcspn(head, "\r"), head);
    if (login && !strstr(head, login)) {
        (void)!send(client, DENIED, sizeof(DENIED) - 1, MSG_NOSIGNAL);
        return;
    }
    if (strstr(head, ":9 ")) {
        (void)!send(client, FORBIDDEN, sizeof(FORBIDDEN) - 1, MSG_NOSIGNAL);
        return;
    }
    ends[1].fd = connect_to(head);
    if (ends[1].fd < 0 || send(client, DONE, sizeof(DONE) - 1, MSG_NOSIGNAL) < 0) {
        return;
    }
    while (poll(ends, 2, -1) > 0) {
        for (int idx = 0; idx < 2; idx++) {
            if (ends[idx].revents && !carry(ends[idx].fd, ends[1 - idx].fd)) {
                return;
            }
        }
    }
}

int main(int argc, char **argv)
{
    int fd = open_port();
    signal(SIGCHLD, SIG_IGN);
    if (fd < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0) {
        perror("connect_proxy");
        return 1;
    }
    for (;;) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0 && fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            serve(client, argc > 1 ? argv[1] : NULL);
            _exit(0);
        }
        close(client);
    }
}
