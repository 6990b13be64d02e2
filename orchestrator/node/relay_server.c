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

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "codec/relay_tar.h"
#include "node/name_find.h"
#include "node/relay_impl.h"
#include "node/serve.h"
#include "sys/relay_net.h"
#include "sys/tree.h"

#define RELAY_IDLE_NS  (6LL * 3600 * NS_PER_S) /* without a stream: the orchestrator is gone */
#define RELAY_STALL_NS (60 * NS_PER_S)         /* without progress of a neighbour */
#define RELAY_BEAT_NS  (2 * NS_PER_S)          /* between two signs of life */
#define RELAY_TICK_MS  500
#define PIECE_BYTES    (1u << 20)
#define THREADS_MIN    2
#define THREADS_MAX    8

static int64_t relay_now_ns(const struct relay *relay)
{
    return relay->clock.mono_ns(relay->clock.ctx);
}

int relay_say(const struct relay *relay, struct relay_line line, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(RELAY_LINE_MAX);
    relay_line_write(&line, &text);
    return fs_write_all(relay->out_fd, text.ptr, text.len, "the orchestrator", err);
}

static int relay_beat(struct relay *relay, struct err *err)
{
    int64_t now_ns = relay_now_ns(relay);
    if (now_ns - relay->beat_ns < RELAY_BEAT_NS) {
        return 0;
    }
    relay->beat_ns = now_ns;
    return relay_say(relay, (struct relay_line){.word = RELAY_AT, .a = relay->received_bytes}, err);
}

/* ---- which files a node has already ---- */

struct beating { /* during a long reading */
    struct relay *relay;
    struct err err;
};

static void beat(void *ctx, uint64_t bytes UNUSED)
{
    struct beating *beating = ctx;
    if (beating->err.code == ERR_NONE && relay_beat(beating->relay, &beating->err) < 0) {
        return;
    }
}

/* Which of an item's files below folder are correct: is_right marks those to check. */
static int pick(struct relay *relay, const struct relay_item *item, const char *folder,
                uint8_t *is_right, struct err *err)
{
    struct tree_file *files CLEANUP(free) = xcalloc(item->n + 1, sizeof(*files));
    struct beating beating = {.relay = relay};
    struct tree_opts opts = {.folder = folder,
                             .pool = relay->pool,
                             .n_threads = relay->n_threads,
                             .cache = relay->cache,
                             .kinds = DIGEST_SHA256,
                             .on_bytes = beat,
                             .progress_ctx = &beating};
    for (size_t idx = 0; idx < item->n; idx++) {
        const struct relay_file *file = &relay->order.files[item->first + idx];
        files[idx].path = file->path;
        memcpy(files[idx].sha256, file->sha256, SHA256_BYTES);
    }
    if (tree_pick(&opts, files, item->n, is_right, err) < 0) {
        return -1;
    }
    if (beating.err.code != ERR_NONE) {
        *err = beating.err;
        return -1;
    }
    return 0;
}

/* A file of another size is another file and need not be read. Of the mode only the executable bit counts. */
static bool has_size(int folder_fd, const struct relay_file *file, bool must_run)
{
    struct stat info;
    return fstatat(folder_fd, file->path, &info, 0) == 0 && S_ISREG(info.st_mode) &&
           (uint64_t)info.st_size == file->size_bytes &&
           (!must_run || !file->is_executable || (info.st_mode & S_IXUSR));
}

static int look_at_own(struct relay *relay, const struct relay_item *item, struct err *err)
{
    uint8_t *is_right = relay->is_right + item->first;
    bool has_any = false;
    CLEANUP(fd) int fd = open(item->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) {
        return err_errno(err, "open folder", item->root);
    }
    for (size_t idx = 0; fd >= 0 && idx < item->n; idx++) {
        if (relay_beat(relay, err) < 0) {
            return -1;
        }
        is_right[idx] = has_size(fd, &relay->order.files[item->first + idx], true);
        has_any = has_any || is_right[idx];
    }
    return has_any ? pick(relay, item, item->root, is_right, err) : 0;
}

/* ---- shared folders ---- */

static bool sees_mark(const struct relay_item *item, int folder_fd)
{
    char text[RELAY_MARK_HEX + 1];
    CLEANUP(fd) int fd = openat(folder_fd, item->mark_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
    return len == RELAY_MARK_HEX && memcmp(text, item->mark_hex, RELAY_MARK_HEX) == 0;
}

/* Each node checks the sizes of all files; the bytes are read once by all nodes together, each its part. */
static int look_at_shared(struct relay *relay, const struct relay_item *item, bool *ret_is_shared,
                          struct err *err)
{
    uint8_t *is_right CLEANUP(free) = xcalloc(item->n + 1, 1);
    CLEANUP(fd) int fd = open(item->mark_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_is_shared = false;
    if (fd < 0 || !sees_mark(item, fd)) {
        return 0;
    }
    for (size_t idx = 0; idx < item->n; idx++) {
        if (relay_beat(relay, err) < 0) {
            return -1;
        }
        if (!has_size(fd, &relay->order.files[item->first + idx], false)) {
            return 0;
        }
        is_right[idx] = idx % relay->order.n_parts == relay->order.part;
    }
    if (pick(relay, item, item->mark_folder, is_right, err) < 0) {
        return -1;
    }
    for (size_t idx = relay->order.part; idx < item->n; idx += relay->order.n_parts) {
        if (!is_right[idx]) {
            return 0;
        }
    }
    *ret_is_shared = true;
    return 0;
}

static int relay_look(struct relay *relay, struct err *err)
{
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        const struct relay_item *item = &relay->order.items[idx];
        bool is_shared = false;
        if (item->mark_name && look_at_shared(relay, item, &is_shared, err) < 0) {
            return -1;
        }
        if (is_shared) {
            memset(relay->is_right + item->first, 1, item->n);
            if (relay_say(relay, (struct relay_line){.word = RELAY_SHARED, .a = idx}, err) < 0) {
                return -1;
            }
        } else if (look_at_own(relay, item, err) < 0) {
            return -1;
        }
        for (size_t file = item->first; file < item->first + item->n; file++) {
            relay->n_right += relay->is_right[file];
            relay->there_bytes += relay->is_right[file] ? relay->order.files[file].size_bytes : 0;
        }
    }
    return 0;
}

/* ---- disk space ---- */

/* What an item lacks; *ret_root NULL: nothing. */
static int find_need(struct relay *relay, size_t item, const struct relay_root **ret_root,
                     uint64_t *ret_bytes, struct err *err)
{
    const struct relay_item *spec = &relay->order.items[item];
    uint64_t have_bytes = 0;
    *ret_root = NULL;
    *ret_bytes = 0;
    for (size_t idx = spec->first; idx < spec->first + spec->n; idx++) {
        if (!relay->is_right[idx]) {
            if (relay_root(relay, item, ret_root, err) < 0 ||
                relay_partial_bytes(relay, idx, &have_bytes, err) < 0) {
                return -1;
            }
            *ret_bytes += relay->order.files[idx].size_bytes - have_bytes;
        }
    }
    return 0;
}

/* Items that follow each other on one disk need their bytes together. */
static int relay_check_disk(struct relay *relay, struct err *err)
{
    uint64_t needed_bytes = 0;
    dev_t device = 0;
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        const char *path = relay->order.items[idx].root;
        const struct relay_root *root;
        uint64_t own_bytes;
        struct statvfs room;
        struct stat info;
        if (find_need(relay, idx, &root, &own_bytes, err) < 0) {
            return -1;
        }
        if (!root) {
            continue;
        }
        if (fstat(root->fd, &info) < 0 || fstatvfs(root->fd, &room) < 0) {
            return err_set(err, ERR_IO, "%s: %s", path, err_errno_text(errno));
        }
        needed_bytes = own_bytes + (info.st_dev == device ? needed_bytes : 0);
        device = info.st_dev;
        if (needed_bytes > (uint64_t)room.f_bavail * room.f_frsize) {
            return err_set(err, ERR_DISK, "%s: %.3f GB needed, %.3f GB free", path,
                           (double)needed_bytes / 1e9,
                           (double)room.f_bavail * (double)room.f_frsize / 1e9);
        }
    }
    return 0;
}

/* ---- what is missing ---- */

static int say_partial(struct relay *relay, size_t idx, struct err *err)
{
    struct relay_line line = {.word = RELAY_PARTIAL, .a = idx};
    return relay_partial_bytes(relay, idx, &line.b, err) < 0 ? -1
           : line.b                                          ? relay_say(relay, line, err)
                                                             : 0;
}

static int relay_say_missing(struct relay *relay, struct err *err)
{
    const struct relay_order *order = &relay->order;
    struct relay_line missing = {.word = RELAY_MISSING};
    for (size_t idx = 0; idx < order->n_files; idx++) {
        if (relay->is_right[idx]) {
            continue;
        }
        bool is_first = idx == 0 || relay->is_right[idx - 1];
        bool is_last = idx + 1 == order->n_files || relay->is_right[idx + 1];
        missing.a = is_first ? idx : missing.a;
        missing.b = idx;
        if ((is_last && relay_say(relay, missing, err) < 0) || say_partial(relay, idx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The stream on a node: what has arrived is passed on, and then unpacked, a piece after another; between two nodes the sockets' own
   buffers keep the line busy meanwhile. So the slowest of the nodes sets the pace. */

struct relay_way { /* where the stream comes from */
    bool is_stdin, has_peer;
    bool has_next; /* a peer to which it is passed on */
    struct relay_hop next;
};

struct relay_flow {
    struct relay *relay;
    const struct relay_way *way;
    int up_fd, down_fd;
    struct relay_tar tar;
    struct relay_incoming *incoming; /* NULL: what comes is not wanted here */
};

/* ---- unpacking ---- */

static int begin_member(void *ctx, const struct relay_member *member, struct err *err)
{
    struct relay_flow *flow = ctx;
    struct relay *relay = flow->relay;
    const struct relay_file *file =
        member->file < relay->order.n_files ? &relay->order.files[member->file] : NULL;
    uint64_t at_bytes = 0;
    if (!file || member->offset > file->size_bytes ||
        member->size_bytes > file->size_bytes - member->offset) {
        return err_set(err, ERR_INTEGRITY, "stream: data outside any file");
    }
    if (flow->incoming && (relay_incoming_file(flow->incoming, &at_bytes) != member->file ||
                           at_bytes != member->offset)) {
        return err_set(err, ERR_INTEGRITY, "stream: a file that does not end");
    }
    return flow->incoming || relay->is_right[member->file]
               ? 0
               : relay_incoming_open(relay, (size_t)member->file, member->offset, &flow->incoming,
                                     err);
}

static int take_data(void *ctx, const void *bytes, size_t len, struct err *err)
{
    struct relay_flow *flow = ctx;
    return flow->incoming ? relay_incoming_take(flow->incoming, bytes, len, err) : 0;
}

static int end_member(void *ctx, struct err *err)
{
    struct relay_flow *flow = ctx;
    struct relay_incoming *incoming = flow->incoming;
    uint64_t at_bytes = 0;
    if (!incoming ||
        flow->relay->order.files[relay_incoming_file(incoming, &at_bytes)].size_bytes > at_bytes) {
        return 0;
    }
    flow->incoming = NULL;
    return relay_incoming_finish(flow->relay, incoming, err);
}

/* A stream that is wrong ends as a broken one does: the rest of it is sent again. */
static int unpack(struct relay_flow *flow, const uint8_t *bytes, size_t len, struct err *err)
{
    const struct relay_sink sink = {flow, begin_member, take_data, end_member};
    if (relay_tar_take(&flow->tar, &sink, bytes, len, err) < 0) {
        err->code = err->code == ERR_INTEGRITY ? ERR_NET : err->code;
        return -1;
    }
    flow->relay->received_bytes += len;
    return 0;
}

/* ---- waiting ---- */

/* While the stream comes from a peer, stdin has nothing to say but that the orchestrator is gone, or gave this stream up. */
static int look_at_stdin(const struct relay *relay, struct err *err)
{
    char byte;
    return read(relay->in_fd, &byte, 1) > 0
               ? err_set(err, ERR_NET, "the stream was given up")
               : err_set(err, ERR_INTERRUPTED, "the orchestrator is gone");
}

/* 1: the neighbour is ready; 0: not for RELAY_STALL_NS; -1: nobody waits for the stream any more. */
static int await(const struct relay_flow *flow, int fd, short events, struct err *err)
{
    int64_t until_ns = relay_now_ns(flow->relay) + RELAY_STALL_NS;
    while (relay_now_ns(flow->relay) < until_ns) {
        struct pollfd fds[] = {
            {.fd = fd, .events = events},
            {.fd = flow->way->is_stdin ? -1 : flow->relay->in_fd, .events = POLLIN}};
        if (poll(fds, ARRAY_LEN(fds), RELAY_TICK_MS) < 0 && errno != EINTR) {
            return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
        }
        if (fds[1].revents) {
            return look_at_stdin(flow->relay, err);
        }
        if (relay_beat(flow->relay, err) < 0) {
            return -1;
        }
        if (fds[0].revents) {
            return 1;
        }
    }
    return 0;
}

/* ---- the neighbours ---- */

static int lose_down(struct relay_flow *flow, const char *why, struct err *err)
{
    fd_close(&flow->down_fd);
    return relay_say(flow->relay, (struct relay_line){.word = RELAY_LOST, .text = str_of(why)},
                     err);
}

static int send_down(struct relay_flow *flow, const uint8_t *bytes, size_t len, struct err *err)
{
    while (flow->down_fd >= 0 && len) {
        ssize_t n = send(flow->down_fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        int ready = 1;
        if (n < 0 && errno == EAGAIN) {
            ready = await(flow, flow->down_fd, POLLOUT, err);
        } else if (n < 0 && errno != EINTR) {
            return lose_down(flow, err_errno_text(errno), err);
        }
        if (ready <= 0) {
            return ready < 0 ? -1 : lose_down(flow, "it no longer accepts data", err);
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int read_up(struct relay_flow *flow, uint8_t bytes[PIECE_BYTES], size_t *ret_len,
                   struct err *err)
{
    int ready = await(flow, flow->up_fd, POLLIN, err);
    if (ready <= 0) {
        return ready < 0 ? -1
                         : err_set(err, ERR_NET, "nothing has come for %d s",
                                   (int)(RELAY_STALL_NS / NS_PER_S));
    }
    ssize_t n = read(flow->up_fd, bytes, PIECE_BYTES);
    *ret_len = n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))
               ? 0
               : err_set(err, ERR_NET, "the stream broke off");
}

/* ---- the whole ---- */

static int relay_take_stream(struct relay *relay, int up_fd, const struct relay_way *way,
                             struct err *err)
{
    struct relay_flow flow = {.relay = relay, .way = way, .up_fd = up_fd, .down_fd = -1};
    CLEANUP(free) uint8_t *bytes = xmalloc(PIECE_BYTES);
    struct err why = {0};
    size_t len = 0;
    int result = 0;
    if (way->has_next &&
        relay_connect(&way->next, address_find, relay->order.token, &flow.down_fd, &why) < 0) {
        result = lose_down(&flow, why.msg, err);
    }
    while (result == 0 && !flow.tar.is_over) {
        result = read_up(&flow, bytes, &len, err) < 0 || send_down(&flow, bytes, len, err) < 0 ||
                         unpack(&flow, bytes, len, err) < 0
                     ? -1
                     : 0;
    }
    relay_incoming_free(flow.incoming);
    fd_close(&flow.down_fd);
    return result;
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
