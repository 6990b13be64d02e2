/* SPDX-License-Identifier: Apache-2.0 */
/* The relay on a node (`reperf-node relay WORK`), which stages files (fleet/stage.h): it reads on stdin what the node is to have,
   checks what exists, and receives the rest as a stream, from a TCP connection or on stdin, which it passes on to the next node
   while it writes (codec/relay.h).

     order --> look --> ready --> next, last: a connection with the token --+--> stream --> complete
                         (waits)  stream: stdin ----------------------------+

   Invariants: (1) A file grows in a temporary folder in its item's root and gets its name only when its digest is the order's.
   (2) Below a root no symlink is followed. (3) One relay takes one stream, in which what has arrived is passed on and then
   written, a piece after another, so that the slowest of the nodes sets the pace. (4) It ends when nobody reads its stdout any
   more, because then the orchestrator is gone. Its stdout and its exit status say how it went. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fs.h"
#include "base/publish.h"
#include "base/temp.h"
#include "codec/relay.h"
#include "node/name_find.h"
#include "node/serve.h"
#include "sys/digest_cache.h"
#include "sys/relay_net.h"
#include "sys/tree.h"

#define GROWING       "file"         /* its name in the temporary folder */
#define BEAT_NS       (2 * NS_PER_S) /* between two signs of life */
#define TICK_MS       500
#define PIECE_BYTES   (1u << 20)
#define THREADS_MAX   8
#define SYNC_EACH_MAX 64 /* files; more are synced together at the end */

struct relay {
    struct clock_src clock;
    struct arena arena;
    struct relay_order order;
    uint8_t *is_right; /* parallel to order.files */
    size_t n_right;
    struct relay_root {
        int fd;            /* -1: the item lacks nothing */
        struct temp *temp; /* the folder of the file that grows */
    } * roots;             /* parallel to order.items */
    struct digest_cache *cache;
    struct pool *pool;
    size_t n_threads;
    int64_t beat_ns; /* when the last sign of life was given */
    uint64_t there_bytes, received_bytes;
};

static int64_t now_ns(const struct relay *relay)
{
    return relay->clock.mono_ns(relay->clock.ctx);
}

/* (4): it fails if nobody reads any more. */
static int say(const struct relay_line *line, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(RELAY_LINE_MAX);
    relay_line_write(line, &text);
    return fs_write_all(STDOUT_FILENO, text.ptr, text.len, "the orchestrator", err);
}

static int beat(struct relay *relay, struct err *err)
{
    if (now_ns(relay) - relay->beat_ns < BEAT_NS) {
        return 0;
    }
    relay->beat_ns = now_ns(relay);
    return say(&(struct relay_line){.word = RELAY_AT, .a = relay->received_bytes}, err);
}

/* ---- what the node has already ---- */

static void beat_on_bytes(void *ctx, uint64_t bytes UNUSED)
{
    if (beat(ctx, ERR_IGNORED) < 0) {
        return; /* the next line fails, too */
    }
}

/* Which of an item's files below folder have their size, and how many. Of the mode only the executable bit counts. */
static int look_at_sizes(struct relay *relay, const struct relay_item *item, const char *folder,
                         uint8_t *is_there, size_t *ret_n, struct err *err)
{
    CLEANUP(fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_n = 0;
    if (fd < 0) {
        return errno == ENOENT ? 0 : err_errno(err, "open folder", folder);
    }
    for (size_t idx = 0; idx < item->n; idx++) {
        const struct relay_file *file = &relay->order.files[item->first + idx];
        struct stat info;
        if (beat(relay, err) < 0) {
            return -1;
        }
        is_there[idx] = fstatat(fd, file->path, &info, 0) == 0 && S_ISREG(info.st_mode) &&
                        (uint64_t)info.st_size == file->size_bytes &&
                        (!file->is_executable || (info.st_mode & S_IXUSR));
        *ret_n += is_there[idx];
    }
    return 0;
}

/* Only those of the marked files that have their digest stay marked. */
static int look_at_bytes(struct relay *relay, const struct relay_item *item, const char *folder,
                         uint8_t *is_right, struct err *err)
{
    struct tree_file *files CLEANUP(free) = xcalloc(item->n + 1, sizeof(*files));
    struct tree_opts opts = {.folder = folder,
                             .pool = relay->pool,
                             .n_threads = relay->n_threads,
                             .cache = relay->cache,
                             .kinds = DIGEST_SHA256,
                             .on_bytes = beat_on_bytes,
                             .progress_ctx = relay};
    for (size_t idx = 0; idx < item->n; idx++) {
        const struct relay_file *file = &relay->order.files[item->first + idx];
        files[idx].path = file->path;
        memcpy(files[idx].sha256, file->sha256, SHA256_BYTES);
    }
    return tree_pick(&opts, files, item->n, is_right, err);
}

/* Each node checks the sizes of all files; the bytes are read once by all nodes together, each its part. */
static int look_at_shared(struct relay *relay, const struct relay_item *item, uint8_t *is_right,
                          bool *ret_is_shared, struct err *err)
{
    size_t len = (size_t)(strrchr(item->mark, '/') - item->mark);
    const char *folder = arena_strndup(&relay->arena, item->mark, len);
    size_t n;
    *ret_is_shared = false;
    if (look_at_sizes(relay, item, folder, is_right, &n, err) < 0) {
        return -1;
    }
    if (n < item->n) {
        return 0;
    }
    for (size_t idx = 0; idx < item->n; idx++) {
        is_right[idx] = idx % relay->order.n_parts == relay->order.part;
    }
    if (look_at_bytes(relay, item, folder, is_right, err) < 0) {
        return -1;
    }
    for (size_t idx = relay->order.part; idx < item->n; idx += relay->order.n_parts) {
        if (!is_right[idx]) {
            return 0;
        }
    }
    *ret_is_shared = true;
    memset(is_right, 1, item->n);
    return 0;
}

static int look_at(struct relay *relay, size_t idx, struct err *err)
{
    const struct relay_item *item = &relay->order.items[idx];
    uint8_t *is_right = relay->is_right + item->first;
    bool is_shared = false;
    size_t n;
    if (item->mark[0] && access(item->mark, F_OK) == 0 &&
        look_at_shared(relay, item, is_right, &is_shared, err) < 0) {
        return -1;
    }
    if (is_shared) {
        return say(&(struct relay_line){.word = RELAY_SHARED, .a = idx}, err);
    }
    memset(is_right, 0, item->n);
    return look_at_sizes(relay, item, item->root, is_right, &n, err) < 0 ? -1
           : n ? look_at_bytes(relay, item, item->root, is_right, err)
               : 0;
}

/* ---- what it lacks ---- */

static int open_root(struct relay *relay, size_t idx, struct err *err)
{
    const char *path = relay->order.items[idx].root;
    struct relay_root *root = &relay->roots[idx];
    if (fs_mkdir_p(path, err) < 0 ||
        temp_folder(fs_join(&relay->arena, path, ""), &root->temp, err) < 0) {
        return -1;
    }
    root->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root->fd < 0 ? err_errno(err, "open folder", path) : 0;
}

/* Makes the item's root, if it lacks something, and says what. */
static int find_lack(struct relay *relay, size_t idx, uint64_t *ret_bytes, struct err *err)
{
    const struct relay_order *order = &relay->order;
    const struct relay_item *item = &order->items[idx];
    struct relay_line missing = {.word = RELAY_MISSING};
    *ret_bytes = 0;
    for (size_t at = item->first; at < item->first + item->n; at++) {
        if (relay->is_right[at]) {
            relay->n_right++;
            relay->there_bytes += order->files[at].size_bytes;
            continue;
        }
        bool is_first = at == item->first || relay->is_right[at - 1];
        bool is_last = at + 1 == item->first + item->n || relay->is_right[at + 1];
        missing.a = is_first ? at : missing.a;
        missing.b = at;
        *ret_bytes += order->files[at].size_bytes;
        if (is_last && say(&missing, err) < 0) {
            return -1;
        }
        if (relay->roots[idx].fd < 0 && open_root(relay, idx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Items that follow each other on one disk need their bytes together. */
static int find_all_lacks(struct relay *relay, struct err *err)
{
    uint64_t needed_bytes = 0;
    dev_t device = 0;
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        const char *path = relay->order.items[idx].root;
        uint64_t own_bytes;
        struct stat info;
        if (find_lack(relay, idx, &own_bytes, err) < 0) {
            return -1;
        }
        const int fd = relay->roots[idx].fd;
        if (fd < 0) {
            continue;
        }
        if (fstat(fd, &info) < 0) {
            return err_errno(err, "look at", path);
        }
        needed_bytes = own_bytes + (info.st_dev == device ? needed_bytes : 0);
        device = info.st_dev;
        if (fs_expect_room(fd, needed_bytes, path, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- the stream ---- */

struct relay_flow {
    struct relay *relay;
    int up_fd, down_fd;
    size_t n_head;   /* bytes of the file's number that have come */
    uint64_t number; /* the file's */
    uint64_t left_bytes;
    int fd; /* the file that grows; -1: it is here already */
    struct digest digest;
    bool is_over;
    struct err damage; /* the first file that arrived damaged */
};

static int begin_file(struct relay_flow *flow, struct err *err)
{
    const struct relay *relay = flow->relay;
    if (flow->number == RELAY_END) {
        flow->is_over = true;
        return 0;
    }
    if (flow->number >= relay->order.n_files) {
        return err_set(err, ERR_NET, "the stream has a file that was not ordered");
    }
    const struct relay_file *file = &relay->order.files[flow->number];
    flow->left_bytes = file->size_bytes;
    if (relay->is_right[flow->number]) {
        return 0;
    }
    digest_start(&flow->digest, DIGEST_SHA256);
    flow->fd = openat(relay->roots[file->item].temp->fd, GROWING,
                      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return flow->fd < 0 ? err_errno(err, "write", file->path) : 0;
}

static int take_data(struct relay_flow *flow, const uint8_t *bytes, size_t len, struct err *err)
{
    const struct relay_file *file = &flow->relay->order.files[flow->number];
    uint64_t offset = file->size_bytes - flow->left_bytes;
    flow->left_bytes -= len;
    if (flow->fd < 0) {
        return 0;
    }
    digest_update(&flow->digest, bytes, len);
    if (fs_write_all(flow->fd, bytes, len, file->path, err) < 0) {
        return -1;
    }
    /* Starts writing to disk at once, so that the end of a large file does not mean a long wait. */
    (void)sync_file_range(flow->fd, (off64_t)offset, (off64_t)len, SYNC_FILE_RANGE_WRITE);
    return 0;
}

/* (2): the folder that holds the path, made if it is not there. */
static int open_parent(int root_fd, const char *path)
{
    char parent[RELAY_PATH_MAX] = ".";
    int fd = -1;
    for (int i = 0; i < 2 && fd < 0; i++) {
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
            memcpy(parent, path, (size_t)(slash - path));
            parent[slash - path] = '\0';
            if (i && beneath_mkdir(root_fd, parent, 0755) < 0) {
                return -1;
            }
        }
        fd = beneath_open(root_fd, parent, O_RDONLY | O_DIRECTORY, 0);
    }
    return fd;
}

static int name_it(struct relay_flow *flow, const struct relay_file *file, struct err *err)
{
    const struct relay_root *root = &flow->relay->roots[file->item];
    bool is_synced = flow->relay->order.n_files <= SYNC_EACH_MAX;
    const char *slash = strrchr(file->path, '/');
    if (is_synced && publish_data(flow->fd, file->path, err) < 0) {
        return -1;
    }
    CLEANUP(fd) int parent_fd = open_parent(root->fd, file->path);
    if (parent_fd < 0 || fchmod(flow->fd, file->is_executable ? 0755 : 0644) < 0 ||
        renameat(root->temp->fd, GROWING, parent_fd, slash ? slash + 1 : file->path) < 0) {
        return err_errno(err, "name", file->path);
    }
    return is_synced ? publish_data(parent_fd, file->path, err) : 0;
}

/* (1): what has another digest than the order's is never named. */
static int end_file(struct relay_flow *flow, struct err *err)
{
    struct relay *relay = flow->relay;
    const struct relay_file *file = &relay->order.files[flow->number];
    if (flow->fd < 0) {
        return 0;
    }
    if (memcmp(digest_finish(&flow->digest).sha256, file->sha256, SHA256_BYTES) != 0) {
        if (flow->damage.code == ERR_NONE) {
            (void)!err_set(&flow->damage, ERR_INTEGRITY,
                           "%s arrived with another SHA-256 than it has here", file->path);
        }
        fd_close(&flow->fd);
        return 0;
    }
    if (name_it(flow, file, err) < 0) {
        return -1;
    }
    fd_close(&flow->fd);
    relay->is_right[flow->number] = 1;
    relay->n_right++;
    return 0;
}

static int take(struct relay_flow *flow, const uint8_t *bytes, size_t len, struct err *err)
{
    flow->relay->received_bytes += len;
    while (len && !flow->is_over) {
        size_t n = 1;
        if (flow->n_head < RELAY_HEAD_BYTES) {
            flow->number |= (uint64_t)bytes[0] << (8 * flow->n_head++);
            if (flow->n_head == RELAY_HEAD_BYTES && begin_file(flow, err) < 0) {
                return -1;
            }
        } else {
            n = len < flow->left_bytes ? len : (size_t)flow->left_bytes;
            if (take_data(flow, bytes, n, err) < 0) {
                return -1;
            }
        }
        bytes += n;
        len -= n;
        if (flow->n_head == RELAY_HEAD_BYTES && flow->left_bytes == 0 && !flow->is_over) {
            if (end_file(flow, err) < 0) {
                return -1;
            }
            flow->n_head = 0;
            flow->number = 0;
        }
    }
    return len ? err_set(err, ERR_NET, "the stream goes on after its end") : 0;
}

/* ---- the neighbours ---- */

/* 1: the neighbour is ready; 0: not for RELAY_STALL_NS; -1: nobody waits for the stream any more. */
static int await(struct relay *relay, int fd, short events, struct err *err)
{
    int64_t until_ns = now_ns(relay) + RELAY_STALL_NS;
    while (now_ns(relay) < until_ns) {
        struct pollfd wait = {.fd = fd, .events = events};
        if (poll(&wait, 1, TICK_MS) < 0 && errno != EINTR) {
            return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
        }
        if (beat(relay, err) < 0) {
            return -1;
        }
        if (wait.revents) {
            return 1;
        }
    }
    return 0;
}

static int lose_down(struct relay_flow *flow, const char *why, struct err *err)
{
    fd_close(&flow->down_fd);
    return say(&(struct relay_line){.word = RELAY_LOST, .text = str_of(why)}, err);
}

static int send_down(struct relay_flow *flow, const uint8_t *bytes, size_t len, struct err *err)
{
    while (flow->down_fd >= 0 && len) {
        ssize_t n = send(flow->down_fd, bytes, len, MSG_NOSIGNAL);
        int ready = 1;
        if (n < 0 && errno == EAGAIN) {
            ready = await(flow->relay, flow->down_fd, POLLOUT, err);
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
    int ready = await(flow->relay, flow->up_fd, POLLIN, err);
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

/* (3): each piece is passed on before it is written. */
static int take_stream(struct relay_flow *flow, struct str hop, struct err *err)
{
    struct relay *relay = flow->relay;
    CLEANUP(free) uint8_t *bytes = xmalloc(PIECE_BYTES);
    struct err why = {0};
    size_t len = 0;
    int result = say(&(struct relay_line){.word = RELAY_TAKEN}, err);
    if (result == 0 && hop.len &&
        relay_connect(hop, address_find, relay->order.token, &flow->down_fd, &why) < 0) {
        result = lose_down(flow, why.msg, err);
    }
    while (result == 0 && !flow->is_over) {
        result = read_up(flow, bytes, &len, err) < 0 || send_down(flow, bytes, len, err) < 0 ||
                         take(flow, bytes, len, err) < 0
                     ? -1
                     : 0;
    }
    fd_close(&flow->fd);
    digest_release(&flow->digest);
    fd_close(&flow->down_fd);
    if (result == 0 && relay->n_right < relay->order.n_files) {
        *err = flow->damage;
        return err->code ? -1 : err_set(err, ERR_NET, "the stream lacked what is missing here");
    }
    return result;
}

/* ---- stdin ---- */

static int read_exactly(char *dst, size_t len, struct err *err)
{
    size_t got;
    return fs_fill(STDIN_FILENO, dst, len, "stdin", &got, err) < 0 ? -1
           : got < len ? err_set(err, ERR_PARSE, "stdin: cut off")
                       : 0;
}

/* A line with its break, byte by byte: what follows it may be the stream. */
static int read_line(struct arena *arena, struct str *ret_line, struct err *err)
{
    char *line = arena_array(arena, char, RELAY_LINE_MAX);
    size_t len = 0;
    do {
        if (len == RELAY_LINE_MAX) {
            return err_set(err, ERR_PARSE, "stdin: a line of more than %d bytes", RELAY_LINE_MAX);
        }
        if (read_exactly(line + len, 1, err) < 0) {
            return -1;
        }
    } while (line[len++] != '\n');
    *ret_line = (struct str){line, len};
    return 0;
}

static int read_order(struct relay *relay, struct err *err)
{
    struct str line;
    uint64_t size_bytes;
    if (read_line(&relay->arena, &line, err) < 0) {
        return -1;
    }
    if (!relay_order_head(line, &size_bytes)) {
        return err_set(err, ERR_PARSE, "stdin: not an order of this version");
    }
    char *text = arena_array(&relay->arena, char, (size_t)size_bytes);
    return read_exactly(text, (size_t)size_bytes, err) < 0
               ? -1
               : relay_order_parse(&relay->arena, (struct str){text, (size_t)size_bytes},
                                   &relay->order, err);
}

/* The descriptor that the stream comes from, and where it is passed on to: the last line that stdin said is right. */
static int await_stream(struct relay *relay, int listen_fd, struct str *ret_hop, struct err *err)
{
    struct str line = STR_EMPTY;
    int fd = -1;
    while (fd < 0) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = line.len ? listen_fd : -1, .events = POLLIN}};
        if (poll(fds, ARRAY_LEN(fds), TICK_MS) < 0 && errno != EINTR) {
            return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
        }
        if (beat(relay, err) < 0 || (fds[0].revents && read_line(&relay->arena, &line, err) < 0)) {
            return -1;
        }
        if (str_eq_z(line, "stream\n")) {
            return STDIN_FILENO;
        }
        /* A peer that does not know the token is turned away; the next one is waited for. */
        fd = fds[1].revents ? relay_accept(listen_fd, relay->order.token) : -1;
    }
    *ret_hop = str_starts(line, STR_LIT("next ")) ? str_sub(line, 5, line.len - 6) : STR_EMPTY;
    return fd;
}

/* ---- the whole ---- */

static int receive(struct relay *relay, struct err *err)
{
    struct relay_flow flow = {.relay = relay, .up_fd = -1, .down_fd = -1, .fd = -1};
    struct relay_line ready = {.word = RELAY_READY, .b = relay->there_bytes};
    struct str hop = STR_EMPTY;
    uint16_t port;
    CLEANUP(fd) int listen_fd = -1;
    if (relay_listen(&listen_fd, &port, err) < 0) {
        return -1;
    }
    ready.a = port;
    if (say(&ready, err) < 0) {
        return -1;
    }
    flow.up_fd = await_stream(relay, listen_fd, &hop, err);
    fd_close(&listen_fd);
    if (flow.up_fd < 0 || take_stream(&flow, hop, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        if (relay->order.n_files > SYNC_EACH_MAX && relay->roots[idx].fd >= 0 &&
            publish_all(relay->roots[idx].fd, relay->order.items[idx].root, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int serve(struct relay *relay, const char *work_folder, struct err *err)
{
    const char *folder = fs_join(&relay->arena, work_folder, "cache");
    const size_t cores = pool_lanes().n;
    if (read_order(relay, err) < 0) {
        return -1;
    }
    relay->is_right = arena_array(&relay->arena, uint8_t, relay->order.n_files + 1);
    relay->roots = arena_array(&relay->arena, struct relay_root, relay->order.n_items);
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        relay->roots[idx].fd = -1;
    }
    relay->n_threads = cores < THREADS_MAX ? cores : THREADS_MAX;
    if (pool_new(relay->n_threads, &relay->pool, err) < 0 || fs_mkdir_p(folder, err) < 0) {
        return -1;
    }
    relay->cache = digest_cache_open(fs_join(&relay->arena, folder, "digests"), relay->clock);
    for (size_t idx = 0; idx < relay->order.n_items; idx++) {
        if (look_at(relay, idx, err) < 0) {
            return -1;
        }
    }
    if (find_all_lacks(relay, err) < 0 ||
        (relay->n_right < relay->order.n_files && receive(relay, err) < 0)) {
        return -1;
    }
    return 0;
}

int relay_main(const char *work_folder)
{
    struct relay relay = {.clock = clock_system()};
    struct err err = {0}, unheard = {0};
    int result = serve(&relay, work_folder, &err);
    struct relay_line last = {.word = RELAY_COMPLETE, .b = relay.there_bytes};
    if (result < 0) {
        last = (struct relay_line){
            .word = RELAY_FAIL, .a = (uint64_t)err.code, .text = str_of(err.msg)};
    }
    for (size_t idx = 0; relay.roots && idx < relay.order.n_items; idx++) {
        temp_free(relay.roots[idx].temp);
        fd_close(&relay.roots[idx].fd);
    }
    pool_free(relay.pool);
    digest_cache_save(relay.cache);
    digest_cache_free(relay.cache);
    arena_release(&relay.arena);
    if (say(&last, &unheard) < 0 && result == 0) {
        result = -1;
        err = unheard;
    }
    return result < 0 ? err_exit_status(err.code) : 0;
}
