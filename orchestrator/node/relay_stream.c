/* SPDX-License-Identifier: Apache-2.0 */
/* A stream on a node: blocks arrive from the orchestrator's side in a ring; each is passed on, hashed and written, in order. A slot
   of the ring is free again when all three are done with it, so that the slowest sets the pace. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "node/name_find.h"
#include "node/relay_impl.h"
#include "sys/relay_net.h"

#define RING_BLOCKS 16
#define TICK_MS     500
#define QUIET_NS    (2 * NS_PER_S) /* after it a new connection may replace a stream */

struct relay_block {
    uint8_t bytes[RELAY_HEADER_BYTES + RELAY_BLOCK_BYTES];
    size_t len; /* header and body, once the header was received */
    struct relay_frame frame;
    struct relay_incoming *incoming; /* NULL: not wanted here */
    bool is_last;                    /* last of its file, which is wanted */
};

enum lane_kind { LANE_HASH, LANE_WRITE, LANE_COUNT };

struct relay_lane { /* what runs on the pool */
    enum lane_kind kind;
    struct pool_job job;
    struct relay_block *ring;
    uint64_t from, to; /* the blocks of the job that runs */
    uint64_t n_done;
    bool is_busy;
};

struct relay_flow {
    struct relay *relay;
    struct relay_block *ring;
    struct relay_lane lanes[LANE_COUNT];
    uint64_t n_in, n_out, n_over; /* blocks received, passed on, done with */
    size_t in_len, out_len;       /* of the blocks under way */
    int up_fd, down_fd;
    uint32_t down_node;
    int64_t down_ns, up_ns; /* of the last progress */
    struct relay_incoming *incoming;
    size_t incoming_idx; /* the file that is being received; SIZE_MAX: none */
    bool has_end;
};

/* ---- lanes ---- */

static int run_lane(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct relay_lane *lane = arg;
    for (uint64_t at = lane->from; at < lane->to; at++) {
        struct relay_block *block = &lane->ring[at % RING_BLOCKS];
        const uint8_t *body = block->bytes + RELAY_HEADER_BYTES;
        int result = 0;
        if (block->incoming) {
            result = lane->kind == LANE_HASH
                         ? relay_incoming_hash(block->incoming, block->frame.offset, body,
                                               block->frame.len, err)
                         : relay_incoming_write(block->incoming, block->frame.offset, body,
                                                block->frame.len, err);
        }
        if (result < 0) {
            return -1;
        }
    }
    return 0;
}

static int tend_lane(struct relay_flow *stream, struct relay_lane *lane, bool must_wait,
                     struct err *err)
{
    struct pool *pool = stream->relay->pool;
    if (lane->is_busy && (must_wait || pool_is_done(pool, &lane->job))) {
        lane->is_busy = false;
        if (pool_wait(pool, &lane->job, err) < 0) {
            return -1;
        }
        lane->n_done = lane->to;
    }
    if (!lane->is_busy && lane->n_done < stream->n_in) {
        lane->from = lane->n_done;
        lane->to = stream->n_in;
        lane->job = (struct pool_job){.fn = run_lane, .arg = lane};
        lane->is_busy = true;
        pool_submit(pool, &lane->job);
    }
    return 0;
}

/* Blocks done by both lanes: the last one of a file completes it. */
static int finish_blocks(struct relay_flow *stream, struct err *err)
{
    uint64_t done = stream->lanes[LANE_HASH].n_done;
    if (stream->lanes[LANE_WRITE].n_done < done) {
        done = stream->lanes[LANE_WRITE].n_done;
    }
    for (; stream->n_over < done; stream->n_over++) {
        struct relay_block *block = &stream->ring[stream->n_over % RING_BLOCKS];
        struct relay_incoming *incoming = block->incoming;
        block->incoming = NULL;
        if (!incoming || !block->is_last) {
            continue;
        }
        if (stream->incoming == incoming) {
            stream->incoming = NULL;
        }
        if (relay_incoming_finish(stream->relay, incoming, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int tend_lanes(struct relay_flow *stream, bool must_wait, struct err *err)
{
    do {
        for (size_t idx = 0; idx < LANE_COUNT; idx++) {
            if (tend_lane(stream, &stream->lanes[idx], must_wait, err) < 0) {
                return -1;
            }
        }
        if (finish_blocks(stream, err) < 0) {
            return -1;
        }
    } while (must_wait && stream->n_over < stream->n_in);
    return 0;
}

/* ---- the next node ---- */

static int lose_down(struct relay_flow *stream, const char *why, struct err *err)
{
    struct relay_line lost = {.word = RELAY_LOST, .a = stream->down_node, .text = str_of(why)};
    fd_close(&stream->down_fd);
    return relay_say(stream->relay, &lost, err);
}

static int begin_down(struct relay_flow *stream, const struct relay_block *block, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    struct str body = {(const char *)block->bytes + RELAY_HEADER_BYTES, block->frame.len};
    struct relay_hop *hops;
    struct err why = {0};
    uint8_t header[RELAY_HEADER_BYTES];
    size_t n;
    strbuf_init(&text, RELAY_BLOCK_BYTES);
    if (relay_hops_parse(&arena, body, &hops, &n, err) < 0) {
        return -1;
    }
    if (n == 0) {
        return 0;
    }
    stream->down_node = hops[0].node;
    stream->down_ns = relay_now_ns(stream->relay);
    relay_hops_write(hops + 1, n - 1, &text);
    relay_frame_encode(&(struct relay_frame){.kind = RELAY_CHAIN, .len = (uint32_t)text.len},
                       header);
    if (relay_connect(&hops[0], address_find, stream->relay->order.token, &stream->down_fd, &why) <
            0 ||
        relay_write(stream->down_fd, header, sizeof(header), RELAY_SHAKE_NS, &why) < 0 ||
        relay_write(stream->down_fd, text.ptr, text.len, RELAY_SHAKE_NS, &why) < 0) {
        return lose_down(stream, why.msg, err);
    }
    return 0;
}

static int send_down(struct relay_flow *stream, struct err *err)
{
    while (stream->n_out < stream->n_in) {
        const struct relay_block *block = &stream->ring[stream->n_out % RING_BLOCKS];
        size_t left = block->len - stream->out_len;
        ssize_t n = (ssize_t)left;
        if (stream->down_fd >= 0) {
            n = send(stream->down_fd, block->bytes + stream->out_len, left, MSG_NOSIGNAL);
        }
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            if (lose_down(stream, err_errno_text(errno), err) < 0) {
                return -1;
            }
            continue;
        }
        stream->out_len += n > 0 ? (size_t)n : 0;
        stream->down_ns = relay_now_ns(stream->relay);
        if (stream->out_len == block->len) {
            stream->out_len = 0;
            stream->n_out++;
        }
    }
    if (stream->down_fd >= 0 && stream->n_out < stream->n_in &&
        relay_now_ns(stream->relay) - stream->down_ns > RELAY_STALL_NS) {
        return lose_down(stream, "it no longer accepts data", err);
    }
    return 0;
}

/* The next node sends nothing after the proofs: if there is something to read, it has closed. */
static int look_down(struct relay_flow *stream, struct err *err)
{
    char byte;
    ssize_t n = recv(stream->down_fd, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (stream->has_end && stream->n_out == stream->n_in) { /* it has all, and may go */
        fd_close(&stream->down_fd);
        return 0;
    }
    return lose_down(stream, n < 0 ? err_errno_text(errno) : "closed by the other side", err);
}

/* ---- what comes in ---- */

/* Handles a complete block. */
static int take_block(struct relay_flow *stream, struct relay_block *block, struct err *err)
{
    struct relay *relay = stream->relay;
    const struct relay_frame *frame = &block->frame;
    const struct relay_file *file;
    block->incoming = NULL;
    block->is_last = false;
    stream->has_end = frame->kind == RELAY_END;
    if (frame->kind != RELAY_DATA) {
        return 0;
    }
    file = frame->file < relay->order.n_files ? &relay->order.files[frame->file] : NULL;
    if (!file || frame->offset + frame->len > file->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "stream: data outside any file");
    }
    relay->received_bytes += frame->len;
    if (frame->file != stream->incoming_idx) {
        if (stream->incoming) {
            return err_set(err, ERR_INTEGRITY, "stream: a file that does not end");
        }
        stream->incoming_idx = frame->file;
        if (!relay->is_right[frame->file] &&
            relay_incoming_open(relay, frame->file, frame->offset, &stream->incoming, err) < 0) {
            return -1;
        }
        if (stream->incoming) {
            stream->incoming->next_bytes = frame->offset;
        }
    }
    if (!stream->incoming) {
        return 0;
    }
    if (frame->offset != stream->incoming->next_bytes) {
        return err_set(err, ERR_INTEGRITY, "stream: a file out of order");
    }
    stream->incoming->next_bytes += frame->len;
    block->incoming = stream->incoming;
    block->is_last = stream->incoming->next_bytes == file->size_bytes;
    if (block->is_last) {
        stream->incoming = NULL; /* owned by the block from here on */
    }
    return 0;
}

/* One recv. 1: there may be more; 0: not now; -1: error. is_eof: the other side has closed. */
static int receive(struct relay_flow *stream, bool *ret_is_eof, struct err *err)
{
    struct relay_block *block = &stream->ring[stream->n_in % RING_BLOCKS];
    size_t want = stream->in_len < RELAY_HEADER_BYTES ? RELAY_HEADER_BYTES : block->len;
    ssize_t n = recv(stream->up_fd, block->bytes + stream->in_len, want - stream->in_len, 0);
    if (n <= 0) {
        *ret_is_eof = n == 0 || (errno != EAGAIN && errno != EINTR);
        return 0;
    }
    stream->up_ns = relay_now_ns(stream->relay);
    stream->in_len += (size_t)n;
    if (stream->in_len == RELAY_HEADER_BYTES && want == RELAY_HEADER_BYTES) {
        if (relay_frame_decode(block->bytes, &block->frame, err) < 0) {
            return -1;
        }
        block->len = RELAY_HEADER_BYTES + block->frame.len;
    }
    if (stream->in_len < RELAY_HEADER_BYTES || stream->in_len < block->len) {
        return 1;
    }
    stream->in_len = 0;
    if (block->frame.kind == RELAY_CHAIN) {
        if (stream->n_in > 0 || stream->down_fd >= 0) {
            return err_set(err, ERR_INTEGRITY, "stream: a second chain");
        }
        return begin_down(stream, block, err) < 0 ? -1 : 1;
    }
    if (take_block(stream, block, err) < 0) {
        return -1;
    }
    stream->n_in++;
    return 1;
}

static bool has_place(const struct relay_flow *stream)
{
    return !stream->has_end && stream->n_in - stream->n_out < RING_BLOCKS &&
           stream->n_in - stream->n_over < RING_BLOCKS;
}

/* ---- one stream ---- */

static int wait_for_work(struct relay_flow *stream, int listen_fd, struct err *err)
{
    struct relay *relay = stream->relay;
    bool is_quiet = relay_now_ns(relay) - stream->up_ns > QUIET_NS;
    struct pollfd fds[] = {
        {.fd = has_place(stream) ? stream->up_fd : -1, .events = POLLIN},
        {.fd = stream->down_fd,
         .events = (short)(stream->n_out < stream->n_in ? POLLOUT | POLLIN : POLLIN)},
        {.fd = pool_fd(relay->pool), .events = POLLIN},
        {.fd = relay->opts->out_fd, .events = 0},
        {.fd = is_quiet ? listen_fd : -1, .events = POLLIN},
    };
    struct err ignored = {0};
    eventfd_t count;
    if (poll(fds, ARRAY_LEN(fds), TICK_MS) < 0 && errno != EINTR) {
        return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
    }
    if (fds[2].revents && eventfd_read(fds[2].fd, &count) < 0 && errno != EAGAIN) {
        return err_set(err, ERR_INTERNAL, "eventfd: %s", err_errno_text(errno));
    }
    if (fds[3].revents & (POLLERR | POLLHUP)) {
        return err_set(err, ERR_INTERRUPTED, "the orchestrator is gone");
    }
    if (fds[1].revents && stream->down_fd >= 0 && look_down(stream, err) < 0) {
        return -1;
    }
    /* Only a peer that knows the token replaces it. */
    return fds[4].revents &&
                   relay_accept(listen_fd, relay->order.token, &relay->next_fd, &ignored) == 0
               ? 1
               : 0;
}

/* Runs until the stream ends, breaks off, or is replaced by another connection. 0, or -1: the relay ends. An error of the
   stream itself goes to ret_why. */
static int pump(struct relay_flow *stream, int listen_fd, struct err *ret_why, struct err *err)
{
    bool is_eof = false;
    while (!is_eof) {
        int more = 1;
        while (more > 0 && !is_eof && has_place(stream)) {
            more = receive(stream, &is_eof, ret_why);
        }
        if (tend_lanes(stream, false, err) < 0 || send_down(stream, err) < 0 ||
            relay_beat(stream->relay, err) < 0) {
            return -1;
        }
        if (more < 0 ||
            (stream->has_end && stream->n_over == stream->n_in && stream->n_out == stream->n_in)) {
            return 0;
        }
        if (!is_eof) {
            int woken = wait_for_work(stream, listen_fd, err);
            if (woken != 0) {
                return woken < 0 ? -1 : 0;
            }
        }
    }
    return 0;
}

/* A broken stream keeps what it delivered. */
static int end_stream(struct relay_flow *stream, struct err *err)
{
    int result = tend_lanes(stream, true, err);
    for (size_t idx = 0; idx < LANE_COUNT; idx++) {
        struct err ignored = {0};
        if (stream->lanes[idx].is_busy &&
            pool_wait(stream->relay->pool, &stream->lanes[idx].job, &ignored) < 0) {
            continue; /* the first error counts */
        }
    }
    for (uint64_t at = stream->n_over; result < 0 && at < stream->n_in; at++) {
        struct relay_block *block = &stream->ring[at % RING_BLOCKS];
        if (block->is_last) {
            relay_incoming_free(block->incoming);
        }
    }
    relay_incoming_free(stream->incoming);
    fd_close(&stream->up_fd);
    fd_close(&stream->down_fd);
    free(stream->ring);
    return result;
}

/* ---- one after the other ---- */

static int wait_for_stream(struct relay *relay, int listen_fd, int *ret_fd, bool *ret_is_fed,
                           struct err *err)
{
    int64_t until_ns = relay_now_ns(relay) + RELAY_IDLE_NS;
    if (relay->next_fd >= 0) {
        *ret_fd = take_fd(&relay->next_fd);
        return 0;
    }
    while (relay_now_ns(relay) < until_ns) {
        struct pollfd fds[] = {{.fd = listen_fd, .events = POLLIN},
                               {.fd = relay->opts->out_fd, .events = 0},
                               {.fd = relay->opts->feed_fd, .events = POLLIN}};
        struct err why = {0};
        if (poll(fds, ARRAY_LEN(fds), TICK_MS) < 0 && errno != EINTR) {
            return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
        }
        if (fds[1].revents & (POLLERR | POLLHUP)) {
            return err_set(err, ERR_INTERRUPTED, "the orchestrator is gone");
        }
        if (relay_beat(relay, err) < 0) {
            return -1;
        }
        if (fds[2].revents & POLLIN) {
            *ret_is_fed = true;
            *ret_fd = fcntl(relay->opts->feed_fd, F_DUPFD_CLOEXEC, 0);
            return *ret_fd < 0 ? err_set(err, ERR_INTERNAL, "fcntl: %s", err_errno_text(errno)) : 0;
        }
        /* A peer that does not know the token is rejected; waits for the next one. */
        if (fds[0].revents && relay_accept(listen_fd, relay->order.token, ret_fd, &why) == 0) {
            return 0;
        }
        if (why.code == ERR_INTERNAL) {
            *err = why;
            return -1;
        }
    }
    return err_set(err, ERR_TIMEOUT, "nothing is sent");
}

static int take_stream(struct relay *relay, int listen_fd, struct err *err)
{
    struct relay_flow stream = {
        .relay = relay, .up_fd = -1, .down_fd = -1, .incoming_idx = SIZE_MAX};
    struct err why = {0}, end_err = {0};
    bool is_fed = false;
    int result;
    if (wait_for_stream(relay, listen_fd, &stream.up_fd, &is_fed, err) < 0) {
        return -1;
    }
    if (relay_say(relay, &(struct relay_line){.word = RELAY_TAKEN}, err) < 0) {
        fd_close(&stream.up_fd);
        return -1;
    }
    stream.ring = xcalloc(RING_BLOCKS, sizeof(*stream.ring));
    stream.up_ns = relay_now_ns(relay);
    for (size_t idx = 0; idx < LANE_COUNT; idx++) {
        stream.lanes[idx].kind = (enum lane_kind)idx;
        stream.lanes[idx].ring = stream.ring;
    }
    result = pump(&stream, listen_fd, &why, err);
    if (end_stream(&stream, &end_err) < 0 && result == 0) {
        *err = end_err;
        result = -1;
    }
    /* A file that only its sender can have spoilt ends the relay; a broken stream does not, unless it arrived in requests: then the
       rest of it would be taken for the next one. */
    if (result == 0 && why.code == ERR_INTEGRITY && is_fed) {
        return err_set(err, ERR_NET, "%s", why.msg);
    }
    if (result == 0 && why.code != ERR_NONE && why.code != ERR_INTEGRITY) {
        *err = why;
        result = -1;
    }
    return result;
}

int relay_take_streams(struct relay *relay, struct err *err)
{
    CLEANUP(fd) int listen_fd = -1;
    struct relay_line ready = {.word = RELAY_READY};
    uint16_t port;
    if (relay_listen(&listen_fd, &port, err) < 0) {
        return -1;
    }
    while (relay->n_right < relay->order.n_files) {
        ready.a = port;
        ready.b = relay->there_bytes;
        if (relay_say_state(relay, err) < 0 || relay_say(relay, &ready, err) < 0 ||
            take_stream(relay, listen_fd, err) < 0) {
            return -1;
        }
    }
    return 0;
}
