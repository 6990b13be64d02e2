/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server that misbehaves on demand: `fault_http FILE` says its port on stdout and serves FILE at /FAULT/NUMBER/any/name
   until it gets TERM or its parent ends. One process a connection; counters are shared. /stats gives them, /reset clears them.

   ok       as it should be                      cut      closes after NUMBER bytes of each body
   corrupt  flips a bit of byte NUMBER, once     corrupt_always  each time
   stall    silent after NUMBER bytes, once      mute     likewise, each time
   drip     request NUMBER gives 1000 bytes a second
   lie      says that the file is NUMBER longer  long     sends NUMBER bytes more than the file has, in chunks
   norange  the whole to a range                 chunked  likewise, and without a length
   chunkcut chunks, cut after NUMBER bytes       open     HTTP/1.0, without a length
   opencut  likewise, cut after NUMBER bytes     shift    a Content-Range NUMBER further on
   busy     503 to the first NUMBER requests     toomany  429 with Retry-After: 1, likewise
   circle   redirects to itself                  redirect to /ok/0/
   change   another ETag and other bytes after NUMBER requests
   etags    another ETag at each request, the same bytes and time
   garbage  no header at all                     gone     404        login  401        gzip  Content-Encoding: gzip
   toll     407, as a proxy's
   limit    503 beyond NUMBER connections        rate     NUMBER bytes a second and connection, few of them under way
   part     at most NUMBER bytes of a range */
#include "base/base.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdatomic.h>

#include "base/clock.h"

#define REQUEST_MAX 16384
#define WRITE_BYTES 65536u
#define RATE_BUFFER                                                                                \
    4096 /* of a connection with a rate: what was sent is soon there, or is not sent */

struct shared {
    atomic_uint_fast64_t n_requests, n_bytes, n_corrupted, n_stalled, n_open;
};

struct server {
    struct shared *shared;
    const uint8_t *file;
    uint64_t size_bytes;
};

struct asked {
    char fault[32];
    uint64_t number;
    bool has_range;
    uint64_t first, last;
    uint64_t request_idx; /* of all, from 0 */
};

/* How the answer is sent. */
struct answer {
    uint64_t first, last; /* inclusive; first > last: nothing */
    uint64_t cut_after;
    uint64_t rate; /* bytes/s; 0: none */
    uint64_t extra_bytes;
    bool is_chunked, stalls, is_other;
};

static bool is_fault(const struct asked *asked, const char *name)
{
    return strcmp(asked->fault, name) == 0;
}

static int send_all(int client, const void *ptr, size_t len)
{
    const char *bytes = ptr;
    while (len) {
        ssize_t put = send(client, bytes, len, MSG_NOSIGNAL);
        if (put <= 0) {
            return -1;
        }
        bytes += put;
        len -= (size_t)put;
    }
    return 0;
}

static PRINTF_LIKE(2, 3) int send_text(int client, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    int len;
    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return send_all(client, text, (size_t)len);
}

static void sleep_ns(int64_t span_ns)
{
    struct timespec span = {span_ns / NS_PER_S, span_ns % NS_PER_S};
    nanosleep(&span, NULL);
}

/* Bytes of the file from pos on, altered by the fault. */
static void fill(const struct server *server, const struct asked *asked,
                 const struct answer *answer, uint64_t pos, uint8_t *buf, size_t len)
{
    uint64_t left = pos < server->size_bytes ? server->size_bytes - pos : 0;
    size_t n = left < len ? (size_t)left : len;
    memcpy(buf, server->file + (n ? pos : 0), n);
    memset(buf + n, 0x5a, len - n);
    for (size_t idx = 0; answer->is_other && idx < len; idx++) {
        buf[idx] ^= 0xff;
    }
    if ((is_fault(asked, "corrupt") || is_fault(asked, "corrupt_always")) && asked->number >= pos &&
        asked->number < pos + len) {
        uint64_t n_before = atomic_fetch_add(&server->shared->n_corrupted, 1);
        if (n_before == 0 || is_fault(asked, "corrupt_always")) {
            buf[asked->number - pos] ^= 1;
        }
    }
}

static int send_piece(const struct server *server, int client, const struct answer *answer,
                      const uint8_t *buf, size_t len)
{
    if (answer->is_chunked && send_text(client, "%zx\r\n", len) < 0) {
        return -1;
    }
    if (send_all(client, buf, len) < 0) {
        return -1;
    }
    atomic_fetch_add(&server->shared->n_bytes, len);
    return answer->is_chunked ? send_text(client, "\r\n") : 0;
}

/* -1: the connection is over. */
static int send_body(const struct server *server, int client, const struct asked *asked,
                     const struct answer *answer)
{
    static uint8_t buf[WRITE_BYTES];
    uint64_t end = answer->first > answer->last ? answer->first : answer->last + 1;
    uint64_t sent = 0;
    int sent_max = answer->rate ? RATE_BUFFER : WRITE_BYTES;
    setsockopt(client, SOL_SOCKET, SO_SNDBUF, &sent_max, sizeof(sent_max));
    end += answer->extra_bytes;
    for (uint64_t pos = answer->first; pos < end;) {
        uint64_t left = end - pos;
        size_t len = left < sizeof(buf) ? (size_t)left : sizeof(buf);
        if (answer->rate) {
            uint64_t tick = answer->rate / 250 ? answer->rate / 250 : 1;
            len = len < tick ? len : (size_t)tick;
            sleep_ns((int64_t)(len * (uint64_t)NS_PER_S / answer->rate));
        }
        if (answer->cut_after - sent < len) {
            len = (size_t)(answer->cut_after - sent);
        }
        fill(server, asked, answer, pos, buf, len);
        if (len && send_piece(server, client, answer, buf, len) < 0) {
            return -1;
        }
        sent += len;
        pos += len;
        if (sent == answer->cut_after && pos < end) {
            while (answer->stalls && read(client, buf, sizeof(buf)) > 0) {
                continue;
            }
            return -1;
        }
    }
    return answer->is_chunked ? send_text(client, "0\r\n\r\n") : 0;
}

static int send_error(int client, const char *status, const char *headers)
{
    return send_text(client, "HTTP/1.1 %s\r\n%sContent-Length: 0\r\n\r\n", status, headers);
}

/* Faults that are an answer without a body. 1: another fault. */
static int answer_error(const struct server *server, int client, const struct asked *asked)
{
    char location[64];
    if (is_fault(asked, "gone")) {
        return send_error(client, "404 Gone", "");
    }
    if (is_fault(asked, "login")) {
        return send_error(client, "401 Who", "WWW-Authenticate: Basic realm=\"x\"\r\n");
    }
    if (is_fault(asked, "toll")) {
        return send_error(client, "407 Pay", "Proxy-Authenticate: Basic realm=\"x\"\r\n");
    }
    if (is_fault(asked, "busy") && asked->request_idx < asked->number) {
        return send_error(client, "503 Later", "");
    }
    if (is_fault(asked, "toomany") && asked->request_idx < asked->number) {
        return send_error(client, "429 Less", "Retry-After: 1\r\n");
    }
    if (is_fault(asked, "limit") && atomic_load(&server->shared->n_open) > asked->number) {
        (void)send_error(client, "503 Full", "Connection: close\r\n");
        return -1;
    }
    if (is_fault(asked, "circle") || is_fault(asked, "redirect")) {
        snprintf(location, sizeof(location), "Location: /%s/0/f\r\n",
                 is_fault(asked, "circle") ? "circle" : "ok");
        return send_error(client, "302 There", location);
    }
    if (is_fault(asked, "garbage")) {
        (void)send_text(client, "%c%c%c nothing of the kind\r\n\r\n", 1, 2, 0x7f);
        return -1;
    }
    return 1;
}

static void plan_answer(const struct server *server, const struct asked *asked,
                        struct answer *answer)
{
    *answer = (struct answer){.last = server->size_bytes - 1, .cut_after = UINT64_MAX};
    if (is_fault(asked, "cut") || is_fault(asked, "chunkcut") || is_fault(asked, "opencut") ||
        is_fault(asked, "stall") || is_fault(asked, "mute")) {
        answer->cut_after = asked->number;
    }
    answer->stalls = is_fault(asked, "stall") || is_fault(asked, "mute");
    if (is_fault(asked, "stall") && atomic_fetch_add(&server->shared->n_stalled, 1) > 0) {
        answer->cut_after = UINT64_MAX;
    }
    if (is_fault(asked, "rate") || is_fault(asked, "limit")) {
        answer->rate = is_fault(asked, "rate") ? asked->number : 20000000;
    }
    if (is_fault(asked, "drip") && asked->request_idx == asked->number) {
        answer->rate = 1000;
    }
    answer->is_chunked =
        is_fault(asked, "chunked") || is_fault(asked, "chunkcut") || is_fault(asked, "long");
    answer->extra_bytes = is_fault(asked, "long") ? asked->number : 0;
    answer->is_other = is_fault(asked, "change") && asked->request_idx >= asked->number;
}

static bool ignores_range(const struct asked *asked)
{
    static const char *const FAULTS[] = {"norange", "chunked", "chunkcut", "long",
                                         "open",    "opencut", "gzip"};
    for (size_t idx = 0; idx < ARRAY_LEN(FAULTS); idx++) {
        if (is_fault(asked, FAULTS[idx])) {
            return true;
        }
    }
    return false;
}

static int answer_file(const struct server *server, int client, struct asked *asked)
{
    struct answer answer;
    char etag[64];
    uint64_t total = server->size_bytes + (is_fault(asked, "lie") ? asked->number : 0);
    uint64_t shift = is_fault(asked, "shift") ? asked->number : 0;
    plan_answer(server, asked, &answer);
    snprintf(etag, sizeof(etag), "\"v%" PRIu64 "\"",
             is_fault(asked, "etags") ? asked->request_idx : (uint64_t)answer.is_other);
    if (is_fault(asked, "open") || is_fault(asked, "opencut")) {
        if (send_text(client, "HTTP/1.0 200 OK\r\n\r\n") == 0) {
            (void)send_body(server, client, asked, &answer);
        }
        return -1; /* the end of the connection is the end of the body */
    }
    if (answer.is_chunked) {
        return send_text(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") < 0
                   ? -1
                   : send_body(server, client, asked, &answer);
    }
    if (!asked->has_range || ignores_range(asked)) {
        return send_text(
                   client, "HTTP/1.1 200 OK\r\nContent-Length: %" PRIu64 "\r\nETag: %s\r\n%s\r\n",
                   total, etag, is_fault(asked, "gzip") ? "Content-Encoding: gzip\r\n" : "") < 0
                   ? -1
                   : send_body(server, client, asked, &answer);
    }
    if (asked->first >= total) {
        snprintf(etag, sizeof(etag), "Content-Range: bytes */%" PRIu64 "\r\n", total);
        return send_error(client, "416 No", etag);
    }
    answer.first = asked->first;
    answer.last = asked->last < total ? asked->last : total - 1;
    if (is_fault(asked, "part") && answer.last - answer.first >= asked->number) {
        answer.last = answer.first + asked->number - 1;
    }
    return send_text(client,
                     "HTTP/1.1 206 Part\r\nContent-Length: %" PRIu64 "\r\nETag: %s\r\n"
                     "Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n"
                     "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n\r\n",
                     answer.last - answer.first + 1, etag, answer.first + shift,
                     answer.last + shift, total + shift) < 0
               ? -1
               : send_body(server, client, asked, &answer);
}

static int answer_stats(const struct server *server, int client, bool clears)
{
    struct shared *shared = server->shared;
    char text[128];
    int len = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 "\n",
                       (uint64_t)atomic_load(&shared->n_requests),
                       (uint64_t)atomic_load(&shared->n_bytes));
    if (clears) {
        atomic_store(&shared->n_requests, 0);
        atomic_store(&shared->n_bytes, 0);
        atomic_store(&shared->n_corrupted, 0);
        atomic_store(&shared->n_stalled, 0);
    }
    return send_text(client, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len, text);
}

static uint64_t number_at(const char **at)
{
    uint64_t value = 0;
    while (**at >= '0' && **at <= '9') {
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    }
    return value;
}

static void read_request(const char *request, struct asked *asked)
{
    const char *at = strchr(request, '/');
    size_t len = at ? strcspn(at + 1, "/ ") : 0;
    const char *range = strcasestr(request, "\r\nRange: bytes=");
    *asked = (struct asked){.last = UINT64_MAX};
    if (!at || len >= sizeof(asked->fault)) {
        return;
    }
    memcpy(asked->fault, at + 1, len);
    at += 1 + len;
    at += *at == '/';
    asked->number = number_at(&at);
    if (range) {
        range += strlen("\r\nRange: bytes=");
        asked->has_range = true;
        asked->first = number_at(&range);
        range += *range == '-';
        asked->last = *range >= '0' && *range <= '9' ? number_at(&range) : UINT64_MAX;
    }
}

static int answer(const struct server *server, int client, const char *request)
{
    struct asked asked;
    int result;
    read_request(request, &asked);
    if (is_fault(&asked, "stats") || is_fault(&asked, "reset")) {
        return answer_stats(server, client, is_fault(&asked, "reset"));
    }
    asked.request_idx = atomic_fetch_add(&server->shared->n_requests, 1);
    result = answer_error(server, client, &asked);
    return result <= 0 ? result : answer_file(server, client, &asked);
}

/* Requests one after the other, until either side closes. */
static void serve(const struct server *server, int client)
{
    static char buf[REQUEST_MAX + 1];
    size_t len = 0;
    int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (;;) {
        char *end = memmem(buf, len, "\r\n\r\n", 4);
        if (end) {
            size_t used = (size_t)(end - buf) + 4;
            end[2] = '\0';
            if (answer(server, client, buf) < 0) {
                return;
            }
            memmove(buf, buf + used, len - used);
            len -= used;
            continue;
        }
        ssize_t got = read(client, buf + len, REQUEST_MAX - len);
        if (got <= 0) {
            return;
        }
        len += (size_t)got;
        buf[len] = '\0';
    }
}

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

static int map_file(const char *path, struct server *server)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 || info.st_size == 0) {
        return -1;
    }
    server->size_bytes = (uint64_t)info.st_size;
    server->file = mmap(NULL, server->size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    server->shared = mmap(NULL, sizeof(*server->shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return server->file == MAP_FAILED || server->shared == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct server server = {0};
    int fd;
    if (argc != 2 || map_file(argv[1], &server) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0) {
        fprintf(stderr, "usage: fault_http FILE (that is not empty)\n");
        return 2;
    }
    signal(SIGCHLD, SIG_IGN);
    fd = open_port();
    if (fd < 0) {
        perror("fault_http");
        return 1;
    }
    for (;;) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            continue;
        }
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            close(fd);
            atomic_fetch_add(&server.shared->n_open, 1);
            serve(&server, client);
            atomic_fetch_sub(&server.shared->n_open, 1);
            _exit(0);
        }
        close(client);
    }
}
