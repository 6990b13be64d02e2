/* SPDX-License-Identifier: Apache-2.0 */
/* The relay on a node (`reperf-node relay WORK`), which stages files (fleet/stage.h): it reads on stdin what the node is to have, checks
   what exists, and receives the rest as a tar stream, from a TCP connection or on stdin, which it passes on to the next node while it
   writes (codec/relay.h).

     order --> look --> ready --> next, last: a connection with the token --+--> stream --> complete
                         (waits)  stream: stdin ----------------------------+

   Invariants: a file grows in ROOT/.reperf-partial/HEX and gets its name only when its digest is the order's; what a broken stream
   left there is continued by the next relay; one relay takes one stream, and ends when stdin does, because then the orchestrator is
   gone. Its stdout and its exit status say how it went. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "node/relay_impl.h"
#include "sys/relay_net.h"

#define THREADS_MIN 2
#define THREADS_MAX 8

int64_t relay_now_ns(const struct relay *relay)
{
    return relay->clock.mono_ns(relay->clock.ctx);
}

int relay_say(const struct relay *relay, struct relay_line line, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(RELAY_LINE_MAX);
    relay_line_write(&line, &text);
    return fs_write_all(relay->out_fd, text.ptr, text.len, "the orchestrator", err);
}

int relay_beat(struct relay *relay, struct err *err)
{
    int64_t now_ns = relay_now_ns(relay);
    if (now_ns - relay->beat_ns < RELAY_BEAT_NS) {
        return 0;
    }
    relay->beat_ns = now_ns;
    return relay_say(relay, (struct relay_line){.word = RELAY_AT, .a = relay->received_bytes}, err);
}

/* ---- stdin ---- */

static int read_exactly(int fd, char *dst, size_t len, struct err *err)
{
    size_t have = 0;
    while (have < len) {
        ssize_t n = read(fd, dst + have, len - have);
        if (n == 0) {
            return err_set(err, ERR_PARSE, "stdin: cut off");
        }
        if (n < 0 && errno != EINTR) {
            return err_set(err, ERR_IO, "stdin: %s", err_errno_text(errno));
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* A line with its break, byte by byte: what follows it may be the stream. */
static int read_line(int fd, char *dst, size_t size, struct str *ret_line, struct err *err)
{
    size_t len = 0;
    do {
        if (len == size) {
            return err_set(err, ERR_PARSE, "stdin: a line of more than %zu bytes", size);
        }
        if (read_exactly(fd, dst + len, 1, err) < 0) {
            return -1;
        }
    } while (dst[len++] != '\n');
    *ret_line = (struct str){dst, len};
    return 0;
}

static int read_order(struct relay *relay, struct err *err)
{
    char head[RELAY_HEAD_MAX];
    struct str line;
    uint64_t size_bytes;
    if (read_line(relay->in_fd, head, sizeof(head), &line, err) < 0) {
        return -1;
    }
    if (!relay_order_head(line, &size_bytes)) {
        return err_set(err, ERR_PARSE, "stdin: not an order of this version");
    }
    char *text = arena_array(&relay->arena, char, (size_t)size_bytes);
    return read_exactly(relay->in_fd, text, (size_t)size_bytes, err) < 0
               ? -1
               : relay_order_parse(&relay->arena, (struct str){text, (size_t)size_bytes},
                                   &relay->order, err);
}

/* ---- where the stream comes from ---- */

static int read_way(struct relay *relay, struct relay_way *way, struct err *err)
{
    char text[RELAY_LINE_MAX];
    struct str line;
    struct str next = STR_LIT("next ");
    if (read_line(relay->in_fd, text, sizeof(text), &line, err) < 0) {
        if (err->code == ERR_PARSE) {
            err->code = ERR_INTERRUPTED; /* the orchestrator is gone */
        }
        return -1;
    }
    line.len--;
    *way = (struct relay_way){.is_stdin = str_eq_z(line, "stream"),
                              .has_peer = str_eq_z(line, "last")};
    if (str_starts(line, next)) {
        way->has_peer = way->has_next = relay_hop_parse(
            &relay->arena, str_sub(line, next.len, line.len - next.len), &way->next);
    }
    return way->is_stdin || way->has_peer ? 0
           : str_eq_z(line, "again")
               ? err_set(err, ERR_NET, "no stream came")
               : err_set(err, ERR_PARSE, "stdin: not where the stream comes from");
}

/* The stream's descriptor. */
static int await_stream(struct relay *relay, int listen_fd, struct relay_way *way, struct err *err)
{
    int64_t until_ns = relay_now_ns(relay) + RELAY_IDLE_NS;
    while (!way->is_stdin && relay_now_ns(relay) < until_ns) {
        struct pollfd fds[] = {{.fd = relay->in_fd, .events = POLLIN},
                               {.fd = way->has_peer ? listen_fd : -1, .events = POLLIN}};
        struct err why = {0};
        int fd;
        if (poll(fds, ARRAY_LEN(fds), RELAY_TICK_MS) < 0 && errno != EINTR) {
            return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
        }
        if (relay_beat(relay, err) < 0 || (fds[0].revents && read_way(relay, way, err) < 0)) {
            return -1;
        }
        /* A peer that does not know the token is turned away; the next one is waited for. */
        if (fds[1].revents && relay_accept(listen_fd, relay->order.token, &fd, &why) == 0) {
            return fd;
        }
    }
    return way->is_stdin ? fcntl(relay->in_fd, F_DUPFD_CLOEXEC, 0)
                         : err_set(err, ERR_TIMEOUT, "nothing is sent");
}

static int receive(struct relay *relay, struct err *err)
{
    struct relay_way way = {0};
    CLEANUP(fd) int listen_fd = -1;
    CLEANUP(fd) int up_fd = -1;
    uint16_t port;
    if (relay_listen(&listen_fd, &port, err) < 0 ||
        relay_say(relay,
                  (struct relay_line){.word = RELAY_READY, .a = port, .b = relay->there_bytes},
                  err) < 0) {
        return -1;
    }
    up_fd = await_stream(relay, listen_fd, &way, err);
    if (up_fd < 0) {
        return -1;
    }
    fd_close(&listen_fd);
    if (relay_say(relay, (struct relay_line){.word = RELAY_TAKEN}, err) < 0 ||
        fcntl(up_fd, F_SETFL, O_NONBLOCK) < 0 || relay_take_stream(relay, up_fd, &way, err) < 0) {
        return -1;
    }
    return relay->n_right == relay->order.n_files
               ? 0
               : err_set(err, ERR_NET, "%zu files did not arrive, or arrived damaged",
                         relay->order.n_files - relay->n_right);
}

/* ---- the whole ---- */

static int serve(struct relay *relay, const char *work_folder, struct err *err)
{
    const char *folder = fs_join(&relay->arena, work_folder, "cache");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (read_order(relay, err) < 0) {
        return -1;
    }
    relay->is_right = arena_array(&relay->arena, uint8_t, relay->order.n_files + 1);
    relay->roots = arena_array(&relay->arena, struct relay_root, relay->order.n_items);
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        relay->roots[idx].fd = relay->roots[idx].partials_fd = -1;
    }
    relay->n_threads = cores < THREADS_MIN   ? THREADS_MIN
                       : cores > THREADS_MAX ? THREADS_MAX
                                             : (size_t)cores;
    if (pool_new(relay->n_threads, &relay->pool, err) < 0 || fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    relay->cache = digest_cache_open(fs_join(&relay->arena, folder, "digests"), relay->clock);
    if (relay_look(relay, err) < 0 || relay_check_disk(relay, err) < 0 ||
        relay_say_missing(relay, err) < 0) {
        return -1;
    }
    if (relay->n_right < relay->order.n_files &&
        (receive(relay, err) < 0 || relay_sync(relay, err) < 0)) {
        return -1;
    }
    return relay_say(relay, (struct relay_line){.word = RELAY_COMPLETE, .b = relay->there_bytes},
                     err);
}

static void release(struct relay *relay)
{
    pool_free(relay->pool);
    digest_cache_save(relay->cache);
    digest_cache_free(relay->cache);
    for (size_t idx = 0; relay->roots && idx < relay->order.n_items; idx++) {
        relay_root_close(&relay->roots[idx]);
    }
    arena_release(&relay->arena);
}

int relay_main(const char *work_folder)
{
    struct relay relay = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO, .clock = clock_system()};
    struct err err = {0}, unheard = {0};
    int result = serve(&relay, work_folder, &err);
    struct relay_line fail = {.word = RELAY_FAIL, .a = (uint64_t)err.code, .text = str_of(err.msg)};
    if (result < 0 && relay_say(&relay, fail, &unheard) < 0) {
        log_line(LOG_DEBUG, "%s", unheard.msg);
    }
    release(&relay);
    return result < 0 ? err_exit_status(err.code) : 0;
}
