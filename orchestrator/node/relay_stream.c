/* SPDX-License-Identifier: Apache-2.0 */
/* The stream on a node: bytes arrive in a ring, are passed on, and are unpacked by a thread of the pool, in order. A byte leaves the ring
   when both are done with it, so that the slowest of the nodes sets the pace. What the job of unpacking uses (tar, incoming, the files)
   is its own until it is done. */
#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/relay_tar.h"
#include "node/name_find.h"
#include "node/relay_impl.h"
#include "sys/relay_net.h"

#define RING_BYTES (16u << 20)
#define TAKE_BYTES (1u << 20) /* unpacked before the neighbours are looked after again */

struct relay_flow {
    struct relay *relay;
    const struct relay_way *way;
    uint8_t *ring;
    uint64_t n_in, n_out, n_taken; /* bytes received, passed on, unpacked */
    int up_fd, down_fd;
    int64_t up_ns, down_ns; /* of the last progress */
    bool has_ended;         /* nothing more comes */
    bool is_over;           /* the tar's end was unpacked */
    struct pool_job job;    /* which unpacks the next job_len bytes, if is_busy */
    size_t job_len;
    bool is_busy;
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

static int unpack(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    struct relay_flow *flow = arg;
    const struct relay_sink sink = {flow, begin_member, take_data, end_member};
    return relay_tar_take(&flow->tar, &sink, flow->ring + flow->n_taken % RING_BYTES, flow->job_len,
                          err);
}

/* A stream that is wrong ends as a broken one does: the rest of it is sent again. */
static int end_job(struct relay_flow *flow, struct err *err)
{
    flow->is_busy = false;
    if (pool_wait(flow->relay->pool, &flow->job, err) < 0) {
        err->code = err->code == ERR_INTEGRITY ? ERR_NET : err->code;
        return -1;
    }
    flow->n_taken += flow->job_len;
    flow->relay->received_bytes = flow->n_taken;
    flow->is_over = flow->tar.is_over;
    flow->has_ended = flow->has_ended || flow->is_over;
    return 0;
}

static int tend_job(struct relay_flow *flow, struct err *err)
{
    if (flow->is_busy && pool_is_done(flow->relay->pool, &flow->job) && end_job(flow, err) < 0) {
        return -1;
    }
    if (!flow->is_busy && flow->n_taken < flow->n_in) {
        size_t at = (size_t)(flow->n_taken % RING_BYTES);
        uint64_t left = flow->n_in - flow->n_taken;
        size_t most = left < TAKE_BYTES ? (size_t)left : TAKE_BYTES;
        flow->job_len = most < RING_BYTES - at ? most : RING_BYTES - at;
        flow->job = (struct pool_job){.fn = unpack, .arg = flow};
        flow->is_busy = true;
        pool_submit(flow->relay->pool, &flow->job);
    }
    return 0;
}

/* ---- the next node ---- */

static int lose_down(struct relay_flow *flow, const char *why, struct err *err)
{
    fd_close(&flow->down_fd);
    return relay_say(flow->relay, (struct relay_line){.word = RELAY_LOST, .text = str_of(why)},
                     err);
}

static int send_down(struct relay_flow *flow, struct err *err)
{
    while (flow->down_fd >= 0 && flow->n_out < flow->n_in) {
        size_t at = (size_t)(flow->n_out % RING_BYTES);
        uint64_t left = flow->n_in - flow->n_out;
        size_t len = left < RING_BYTES - at ? (size_t)left : RING_BYTES - at;
        ssize_t n = send(flow->down_fd, flow->ring + at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            return relay_now_ns(flow->relay) - flow->down_ns > RELAY_STALL_NS
                       ? lose_down(flow, "it no longer accepts data", err)
                       : 0;
        }
        if (n < 0 && errno != EINTR) {
            return lose_down(flow, err_errno_text(errno), err);
        }
        flow->n_out += n > 0 ? (uint64_t)n : 0;
        flow->down_ns = relay_now_ns(flow->relay);
    }
    if (flow->down_fd < 0) {
        flow->n_out = flow->n_in;
    } else if (flow->n_out == flow->n_in) {
        flow->down_ns = relay_now_ns(flow->relay); /* it waits for us */
    }
    return 0;
}

/* ---- what comes in ---- */

static size_t room(const struct relay_flow *flow)
{
    uint64_t kept = flow->n_out < flow->n_taken ? flow->n_out : flow->n_taken;
    return flow->has_ended ? 0 : RING_BYTES - (size_t)(flow->n_in - kept);
}

static void receive(struct relay_flow *flow)
{
    size_t at = (size_t)(flow->n_in % RING_BYTES);
    size_t len = room(flow);
    len = len < RING_BYTES - at ? len : RING_BYTES - at;
    ssize_t n = len ? read(flow->up_fd, flow->ring + at, len) : -1;
    if (n > 0) {
        flow->n_in += (uint64_t)n;
    }
    if (n > 0 || !len) {
        flow->up_ns = relay_now_ns(flow->relay);
    }
    flow->has_ended =
        flow->has_ended || (len && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)));
}

/* While the stream comes from a peer, stdin has nothing to say but that the orchestrator is gone, or gave this stream up. */
static int look_at_stdin(const struct relay *relay, struct err *err)
{
    char byte;
    return read(relay->in_fd, &byte, 1) > 0
               ? err_set(err, ERR_NET, "the stream was given up")
               : err_set(err, ERR_INTERRUPTED, "the orchestrator is gone");
}

static int wait_for_work(struct relay_flow *flow, struct err *err)
{
    struct pollfd fds[] = {{.fd = room(flow) ? flow->up_fd : -1, .events = POLLIN},
                           {.fd = flow->n_out < flow->n_in ? flow->down_fd : -1, .events = POLLOUT},
                           {.fd = flow->way->is_stdin ? -1 : flow->relay->in_fd, .events = POLLIN},
                           {.fd = pool_fd(flow->relay->pool), .events = POLLIN}};
    eventfd_t count;
    if (poll(fds, ARRAY_LEN(fds), RELAY_TICK_MS) < 0 && errno != EINTR) {
        return err_set(err, ERR_INTERNAL, "poll: %s", err_errno_text(errno));
    }
    if (fds[3].revents && eventfd_read(fds[3].fd, &count) < 0 && errno != EAGAIN) {
        return err_set(err, ERR_INTERNAL, "eventfd: %s", err_errno_text(errno));
    }
    if (fds[2].revents) {
        return look_at_stdin(flow->relay, err);
    }
    return relay_now_ns(flow->relay) - flow->up_ns > RELAY_STALL_NS && !flow->has_ended
               ? err_set(err, ERR_NET, "nothing has come for %d s",
                         (int)(RELAY_STALL_NS / NS_PER_S))
               : 0;
}

/* ---- the whole ---- */

static int pump(struct relay_flow *flow, struct err *err)
{
    while (!flow->is_over || flow->n_out < flow->n_in) {
        if (flow->has_ended && flow->n_taken == flow->n_in && !flow->is_over) {
            return err_set(err, ERR_NET, "the stream broke off");
        }
        if (wait_for_work(flow, err) < 0) {
            return -1;
        }
        receive(flow);
        if (send_down(flow, err) < 0 || tend_job(flow, err) < 0 ||
            relay_beat(flow->relay, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int relay_take_stream(struct relay *relay, int up_fd, const struct relay_way *way, struct err *err)
{
    struct relay_flow flow = {.relay = relay, .way = way, .up_fd = up_fd, .down_fd = -1};
    struct err why = {0};
    int result = 0;
    if (way->has_next &&
        relay_connect(&way->next, address_find, relay->order.token, &flow.down_fd, &why) < 0) {
        result = lose_down(&flow, why.msg, err);
    }
    flow.ring = xmalloc(RING_BYTES);
    flow.up_ns = flow.down_ns = relay_now_ns(relay);
    if (result == 0) {
        result = pump(&flow, err);
    }
    if (flow.is_busy) {
        struct err ignored = {0};
        (void)!pool_wait(relay->pool, &flow.job, &ignored); /* the first error counts */
    }
    relay_incoming_free(flow.incoming);
    fd_close(&flow.down_fd);
    free(flow.ring);
    return result;
}
