/* SPDX-License-Identifier: Apache-2.0 */
/* The stream on a node: what has arrived is passed on, and then unpacked, a piece after another; between two nodes the sockets' own
   buffers keep the line busy meanwhile. So the slowest of the nodes sets the pace. */
#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/relay.h"
#include "node/name_find.h"
#include "node/relay_impl.h"
#include "sys/relay_net.h"

#define PIECE_BYTES (1u << 20)

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

static int receive(struct relay_flow *flow, uint8_t bytes[PIECE_BYTES], size_t *ret_len,
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

int relay_take_stream(struct relay *relay, int up_fd, const struct relay_way *way, struct err *err)
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
        result = receive(&flow, bytes, &len, err) < 0 || send_down(&flow, bytes, len, err) < 0 ||
                         unpack(&flow, bytes, len, err) < 0
                     ? -1
                     : 0;
    }
    relay_incoming_free(flow.incoming);
    fd_close(&flow.down_fd);
    return result;
}
